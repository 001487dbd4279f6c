// Package outbox schedules and cancels timers, and publishes messages, inside the
// caller's own SQL transaction: a transactional outbox.
//
// A program that writes an order to its database and then schedules a timer loses the
// timer if it crashes between the two, and has one too many if the transaction is
// rolled back. An [Outbox] writes the request as a row of a table of the same database,
// in the same transaction. A [Relay], an actor beside a System, sends the rows to Redis
// and deletes them. Nothing that was committed is lost, nothing that was rolled back is
// sent, and the requests carry idempotency keys, so that a row that is sent again has
// no further effect for 24 hours.
//
// The package needs no database driver: it works with database/sql, and with the
// transactions of pgx through [Pgx]. It supports PostgreSQL, MySQL and SQLite.
package outbox
