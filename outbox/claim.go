package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/actors/relay"
	"github.com/wakebell/wakebell/messages"
)

// maxClaimBytes bounds the bodies of a batch, beyond its first row.
const maxClaimBytes = 4 << 20

// store is the table as the relay uses it.
type store struct {
	*Outbox
	db    *sql.DB
	batch int
	stats *latest
}

// batch is a claimed batch. Its rows are locked by its transaction, where the dialect
// has locks. Elsewhere several relays may send the same rows: the idempotency keys make
// the second request ineffective, also when it is late.
type batch struct {
	store     *store
	tx        *sql.Tx // nil: none
	rows      []claimedRow
	more      bool
	contended bool
	blocked   map[int64][]int64 // rows behind deferred ones, by the instant until which they wait
}

type claimedRow struct {
	seq      int64
	stream   string
	attempts int
	request  messages.Request
	err      error
}

// predecessor is the row before a row in its stream.
type predecessor struct{ seq, retryAt int64 }

// Claim implements relay.Store.
func (s *store) Claim(ctx context.Context) (relay.Batch, error) {
	b := &batch{store: s, blocked: map[int64][]int64{}}
	var from DB = s.db
	if s.dialect.locks {
		// READ COMMITTED: the query of predecessors sees what the locking query saw.
		tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return nil, fmt.Errorf("claim from %s: %w", s.table, err)
		}
		b.tx, from = tx, tx
	}
	if err := b.claim(ctx, from); err != nil {
		if b.tx != nil {
			err = errors.Join(err, ignoreDone(b.tx.Rollback()))
		}
		return nil, fmt.Errorf("claim from %s: %w", s.table, err)
	}
	return b, nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func (b *batch) claim(ctx context.Context, db DB) error {
	if err := b.read(ctx, db); err != nil || len(b.rows) == 0 {
		return err
	}
	before, err := b.predecessors(ctx, db)
	if err != nil {
		return err
	}
	b.order(before, micros(b.store.now()))
	return nil
}

// read reads, and locks, the oldest rows that wait and are not deferred.
func (b *batch) read(ctx context.Context, db DB) error {
	s := b.store
	query := "SELECT seq, request_key, stream, kind, body, attempts FROM {table} WHERE failed_at IS NULL AND retry_at <= ? ORDER BY seq LIMIT ?"
	if s.dialect.locks {
		query += " FOR UPDATE SKIP LOCKED"
	}
	rows, err := db.QueryContext(ctx, s.sql(query), micros(s.now()), s.batch)
	if err != nil {
		return err
	}
	size := 0
	for rows.Next() {
		var r claimedRow
		var key, kind string
		var body []byte
		if err := rows.Scan(&r.seq, &key, &r.stream, &kind, &body, &r.attempts); err != nil {
			return errors.Join(err, rows.Close())
		}
		size += len(body)
		if len(b.rows) > 0 && size > maxClaimBytes {
			b.more = true
			break
		}
		r.request, r.err = requestOf(kind, key, body)
		b.rows = append(b.rows, r)
	}
	b.more = b.more || len(b.rows) == s.batch
	return errors.Join(rows.Err(), rows.Close())
}

// requestOf reads the request of a row.
func requestOf(kind, key string, body []byte) (messages.Request, error) {
	key = "outbox:" + key
	var request messages.Request
	switch kind {
	case kindSchedule:
		request = &messages.ScheduleRequest{Key: key}
	case kindCancel:
		request = &messages.CancelRequest{Key: key}
	case kindPublish:
		request = &messages.PublishRequest{} // its messages have keys
	default:
		return nil, fmt.Errorf("unknown kind %q of a row", kind)
	}
	if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(body, request); err != nil {
		return nil, fmt.Errorf("unreadable %s request: %w", kind, err)
	}
	return request, nil
}

// predecessors returns the rows directly before those of the batch in their streams.
func (b *batch) predecessors(ctx context.Context, db DB) (map[int64]predecessor, error) {
	seqs := make([]int64, len(b.rows))
	for i, r := range b.rows {
		seqs[i] = r.seq
	}
	condition, args := among("o.seq", seqs)
	rows, err := db.QueryContext(ctx, b.store.sql(
		"SELECT o.seq, p.seq, p.retry_at FROM {table} o JOIN {table} p ON p.seq = "+
			"(SELECT MAX(e.seq) FROM {table} e WHERE e.stream = o.stream AND e.seq < o.seq AND e.failed_at IS NULL) WHERE "+condition), args...)
	if err != nil {
		return nil, err
	}
	before := map[int64]predecessor{}
	for rows.Next() {
		var seq int64
		var p predecessor
		if err := rows.Scan(&seq, &p.seq, &p.retryAt); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		before[seq] = p
	}
	return before, errors.Join(rows.Err(), rows.Close())
}

// order removes the rows that would overtake another: one that is deferred, or one
// that another relay holds.
func (b *batch) order(before map[int64]predecessor, now int64) {
	until := map[int64]int64{} // by row: 0 if it may be sent, -1 if another relay is ahead, or an instant
	kept := b.rows[:0]
	for _, r := range b.rows {
		wait := int64(0)
		if p, ok := before[r.seq]; ok {
			held, ours := until[p.seq]
			switch {
			case ours:
				wait = held
			case p.retryAt > now:
				wait = p.retryAt
			default:
				wait = -1
			}
		}
		until[r.seq] = wait
		switch {
		case wait == 0:
			kept = append(kept, r)
		case wait < 0:
			b.contended = true
		default:
			b.blocked[wait] = append(b.blocked[wait], r.seq)
		}
	}
	clear(b.rows[len(kept):])
	b.rows = kept
}

// Items implements relay.Batch.
func (b *batch) Items() []relay.Item {
	items := make([]relay.Item, len(b.rows))
	for i, r := range b.rows {
		items[i] = relay.Item{Stream: r.stream, Request: r.request, Err: r.err}
	}
	return items
}

// More implements relay.Batch.
func (b *batch) More() bool { return b.more || b.contended }

// Contended implements relay.Batch.
func (b *batch) Contended() bool { return b.contended }

const (
	// firstDeferral and maxDeferral bound the delay until a deferred row is tried
	// again, which doubles with each attempt.
	firstDeferral = time.Second
	maxDeferral   = time.Minute
)

func deferral(attempts int) time.Duration {
	return min(firstDeferral<<min(attempts, 10), maxDeferral)
}
