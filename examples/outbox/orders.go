package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/outbox"
)

// service has the orders. An order is new, paid or cancelled.
type service struct {
	db        *sql.DB
	box       *outbox.Outbox
	relay     *outbox.Relay
	payWithin time.Duration
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{id}", s.answer(s.place))
	mux.HandleFunc("POST /orders/{id}/payment", s.answer(s.pay))
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var state string
		err := s.db.QueryRowContext(r.Context(), "SELECT state FROM orders WHERE id = ?", r.PathValue("id")).Scan(&state)
		if err != nil {
			fail(w, err)
			return
		}
		_, _ = fmt.Fprintln(w, state)
	})
	return mux
}

// errConflict means that the order is in another state.
var errConflict = errors.New("the order is not in the state for that")

// answer runs a change in a transaction.
func (s *service) answer(change func(ctx context.Context, tx *sql.Tx, id string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := s.commit(r.Context(), func(tx *sql.Tx) error { return change(r.Context(), tx, r.PathValue("id")) })
		if err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *service) commit(ctx context.Context, change func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // without effect after Commit
	if err := change(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.relay.Wake() // on PostgreSQL, outbox.PgxListen does this, also for other processes
	return nil
}

func (s *service) place(ctx context.Context, tx *sql.Tx, id string) error {
	result, err := tx.ExecContext(ctx, "INSERT INTO orders (id, state) VALUES (?, 'new') ON CONFLICT DO NOTHING", id)
	if err := changed(result, err); err != nil {
		return err
	}
	if err := s.box.Schedule(ctx, tx, Unpaid.Draft(id, wakebell.ID(id), wakebell.In(s.payWithin))); err != nil {
		return err
	}
	return s.box.Publish(ctx, tx, Mails.Draft("thank you for order "+id))
}

func (s *service) pay(ctx context.Context, tx *sql.Tx, id string) error {
	result, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE id = ? AND state = 'new'", id)
	if err := changed(result, err); err != nil {
		return err
	}
	return s.box.Cancel(ctx, tx, Unpaid.Name(), id)
}

// cancelUnpaid is the handler of the timers. A payment may be committed meanwhile: the
// state of the order decides, and a second delivery changes nothing.
func (s *service) cancelUnpaid(ctx context.Context, timer wakebell.Timer[string]) error {
	err := s.commit(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'cancelled' WHERE id = ? AND state = 'new'", timer.Body)
		if err := changed(result, err); err != nil {
			return err
		}
		return s.box.Publish(ctx, tx, Mails.Draft("order "+timer.Body+" was not paid"))
	})
	if errors.Is(err, errConflict) {
		return nil
	}
	return err
}

// changed returns errConflict if a statement changed no row.
func changed(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = errConflict
	}
	return err
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, sql.ErrNoRows):
		code = http.StatusNotFound
	case errors.Is(err, errConflict):
		code = http.StatusConflict
	case errors.Is(err, wakebell.ErrInvalid):
		code = http.StatusBadRequest
	}
	http.Error(w, err.Error(), code)
}
