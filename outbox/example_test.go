package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Order is an order of the examples.
type Order struct{ ID string }

var (
	// Unpaid is the topic of the examples: it cancels orders that are not paid.
	Unpaid = wakebell.NewTopic[Order]("unpaid")
	// Mails is the queue of the examples.
	Mails = queue.New[Order]("mails")
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A program writes its own rows and the timers in one transaction.
func Example() {
	box, err := outbox.New(nil, outbox.PostgreSQL, outbox.Config{})
	check(err)
	place := func(ctx context.Context, db *sql.DB, order Order) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // without effect after Commit
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", order.ID); err != nil {
			return err
		}
		if err := box.Schedule(ctx, tx, Unpaid.Draft(order, wakebell.ID(order.ID), wakebell.In(30*time.Minute))); err != nil {
			return err
		}
		if err := box.Publish(ctx, tx, Mails.Draft(order)); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = place
}

// The order is paid: the timer is cancelled if, and only if, the payment is committed.
func ExampleOutbox_Cancel() {
	box, err := outbox.New(nil, outbox.MySQL, outbox.Config{Table: "shop.outbox"})
	check(err)
	pay := func(ctx context.Context, tx *sql.Tx, order Order) error {
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = 1 WHERE id = ?", order.ID); err != nil {
			return err
		}
		return box.Cancel(ctx, tx, Unpaid.Name(), order.ID)
	}
	_ = pay
}

// printing is an Execer that prints.
type printing struct{}

func (printing) Exec(_ context.Context, query string, args ...any) (string, error) {
	fmt.Println(query)
	fmt.Println(args[2], args[3])
	return "INSERT 0 1", nil
}

// A pgx.Tx needs an adapter.
func ExamplePgx() {
	box, err := outbox.New(nil, outbox.PostgreSQL, outbox.Config{})
	check(err)
	var tx printing // yours: a pgx.Tx, in pgx.BeginFunc
	check(box.Cancel(context.Background(), outbox.Pgx(tx), Unpaid.Name(), "42"))
	// Output:
	// WITH added AS (INSERT INTO "wakebell_outbox" (request_key, stream, kind, target, timer, body, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)) SELECT pg_notify('wakebell_outbox', '')
	// cancel unpaid
}

// conn stands for a *pgx.Conn.
type conn struct{ printing }

var _ outbox.PgxConn[string, any] = conn{}

func (conn) WaitForNotification(context.Context) (any, error) { return nil, nil }
func (conn) Close(context.Context) error                      { return nil }

// A node relays the rows.
func ExampleOutbox_StartRelay() {
	run := func(ctx context.Context, sys *wakebell.System, db *sql.DB) error {
		box, err := outbox.New(nil, outbox.PostgreSQL, outbox.Config{})
		if err != nil {
			return err
		}
		if err := box.Migrate(ctx, db); err != nil {
			return err
		}
		if err := sys.Start(ctx); err != nil {
			return err
		}
		connect := func(context.Context) (conn, error) { return conn{}, nil } // yours: pgx.Connect(ctx, url)
		relay, err := box.StartRelay(sys, db, outbox.RelayConfig{Listen: outbox.PgxListen(box, connect)})
		if err != nil {
			return err
		}
		<-ctx.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := relay.Stop(within); err != nil {
			log.Print(err) // the rows stay in the outbox
		}
		return sys.Stop()
	}
	_ = run
}

// A health check reads the status of the relay; a program without LISTEN wakes it.
func ExampleRelay_Status() {
	healthy := func(r *outbox.Relay) error {
		switch s := r.Status(); {
		case s.Err != nil:
			return s.Err
		case s.Stats.Lag > time.Minute:
			return fmt.Errorf("%d rows wait, the oldest for %v", s.Stats.Waiting, s.Stats.Lag)
		}
		return nil
	}
	commit := func(tx *sql.Tx, r *outbox.Relay) error {
		defer r.Wake()
		return tx.Commit()
	}
	_, _ = healthy, commit
}

// Check complements the findings of Diagnose.
func ExampleOutbox_Check() {
	doctor := func(ctx context.Context, c *wakebell.Client, box *outbox.Outbox, db outbox.DB) error {
		findings, err := c.Diagnose(ctx, Unpaid.Name())
		if err != nil {
			return err
		}
		for _, f := range append(findings, box.Check(ctx, db)...) {
			if f.Grade != wakebelltype.GradeGood {
				fmt.Println(f.Check, f.Grade, f.Found, f.Do)
			}
		}
		return nil
	}
	_ = doctor
}

// An operator reads what was set aside, and relays it again after mending the cause.
func ExampleOutbox_Failed() {
	mend := func(ctx context.Context, box *outbox.Outbox, db outbox.DB) error {
		stats, err := box.Stats(ctx, db)
		if err != nil || stats.Failed == 0 {
			return err
		}
		for row, err := range box.Failed(ctx, db, wakebelltype.Page{}) {
			if err != nil {
				return err
			}
			change := box.Retry
			if row.Target == "no longer in use" {
				change = box.Discard
			}
			if _, err := change(ctx, db, row.Seq); err != nil {
				return err
			}
		}
		return nil
	}
	_ = mend
}

// A program with a migration tool of its own takes the statements.
func ExampleOutbox_Migrations() {
	box, err := outbox.New(nil, outbox.SQLite, outbox.Config{Table: "requests"})
	check(err)
	steps, err := box.Migrations()
	check(err)
	for _, step := range steps {
		fmt.Println(outbox.SQLite.String(), box.Table(), step.Version, step.Name, len(step.SQL) > 0)
	}
	// Output:
	// sqlite requests 1 create true
	// sqlite requests 2 lanes true
}

// A System without a database has no relay.
func ExampleNew() {
	_, err := outbox.New(nil, outbox.SQLite, outbox.Config{Table: "select *"})
	fmt.Println(err)

	redis := embedded.Start()
	defer redis.Close()
	conn, err := connection.New(redis.Client(), connection.Config{})
	check(err)
	sys, err := wakebell.New(nil, conn, wakebell.Config{})
	check(err)
	box, err := outbox.New(nil, outbox.SQLite, outbox.Config{})
	check(err)
	_, err = box.StartRelay(sys, nil, outbox.RelayConfig{})
	fmt.Println(err)
	// Output:
	// invalid argument: Table: "select *", want letters, digits and underscores, without quotes
	// invalid argument: db: nil
}
