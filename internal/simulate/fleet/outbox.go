package fleet

import (
	"context"
	"database/sql"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/outbox"
)

// Outbox is a database with the rows of an outbox, and its relays. The simulation has no driver
// of its own.
type Outbox struct {
	DB  *sql.DB
	Box *outbox.Outbox
}

// relay starts a relay beside a System.
func (b *Outbox) relay(sys *wakebell.System) (stopper, error) {
	r, err := b.Box.StartRelay(sys, b.DB, outbox.RelayConfig{})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// commit writes a timer into the outbox and commits it, or rolls it back. A database that is locked
// is tried again.
func (f *fleet) commit(o Op) {
	t := timer{topic: topics[o.B%len(topics)], body: o.body(), in: f.plan.delay(o)}
	w := f.writing(subjectOf(t.topic, ""), t.body, "", "the outbox", t.in)
	w.single = true
	keep := o.C%4 > 0
	for range 100 {
		err := f.writeRow(t, keep)
		if err == nil {
			if f.wrote(w, answer{due: time.Now().Add(t.in)}, nil, true); !keep {
				w.result = refused
			}
			return
		}
		f.trace("write a row of %s: %v", t.body, err)
		<-time.After(100 * time.Millisecond)
	}
	f.wrote(w, answer{}, wakebell.ErrUnavailable, true)
}

// writeRow writes a row of the outbox in a transaction, which is rolled back unless it is to be kept.
func (f *fleet) writeRow(t timer, keep bool) error {
	box := f.plan.Outbox
	tx, err := box.DB.BeginTx(context.WithoutCancel(f.ctx), nil)
	if err != nil {
		return err
	}
	if err = box.Box.Schedule(f.ctx, tx, t.draft()); err != nil || !keep {
		_ = tx.Rollback() // it writes nothing either way
		return err
	}
	return tx.Commit()
}
