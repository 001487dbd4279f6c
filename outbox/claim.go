package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
	lease time.Duration // of a claimed lane
	stats *latest
}

// ready is the store of the rows that were not refused.
type ready struct{ *store }

// batch is a claimed batch. Its rows are locked by its transaction, where the dialect
// has locks. Elsewhere several relays may send the same rows: the idempotency keys make
// the second request ineffective, also when it is late.
type batch struct {
	store     *store
	tx        *sql.Tx // nil: none
	rows      []claimedRow
	size      int // bytes of the bodies
	more      bool
	contended bool
	blocked   map[int64][]int64 // rows behind deferred ones, by the instant until which they wait
	parking   map[int64][]int64 // rows of lanes that others parked, by lane
	lanes     []claimedLane
	leases    *laneLeases // has the lanes; nil: there are none
}

type claimedRow struct {
	seq      int64
	stream   string
	kind     string
	target   string
	lane     int64
	attempts int
	request  messages.Request
	err      error
}

// predecessor is the row before a row in its stream.
type predecessor struct{ seq, retryAt int64 }

// Claim implements relay.Store. It returns the oldest rows that were not refused.
func (s ready) Claim(ctx context.Context) (relay.Batch, error) {
	b, parked, err := s.claim(ctx)
	if err == nil && parked {
		if err = errors.Join(b.abandon(), s.sweep(ctx)); err == nil {
			b, _, err = s.claim(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("claim from %s: %w", s.table, err)
	}
	return b, nil
}

// claim returns a batch without rows of parked lanes, and whether there were any.
func (s ready) claim(ctx context.Context) (b *batch, parked bool, err error) {
	b, err = s.claimWith(ctx, func(b *batch, db DB) error {
		if err := b.read(ctx, db, 0, 0, s.batch); err != nil {
			return err
		}
		b.more = b.more || len(b.rows) == s.batch
		parked, err = b.removeParked(ctx, db, nil)
		return err
	})
	return b, parked, err
}

// claimWith returns a batch with the rows that read reads.
func (s *store) claimWith(ctx context.Context, read func(b *batch, db DB) error) (*batch, error) {
	b := &batch{store: s, blocked: map[int64][]int64{}, parking: map[int64][]int64{}}
	var from DB = s.db
	if s.dialect.locks {
		tx, err := s.begin(ctx, s.db)
		if err != nil {
			return nil, err
		}
		b.tx, from = tx, tx
	}
	err := read(b, from)
	if err == nil {
		err = b.order(ctx, from)
	}
	if err != nil {
		err = errors.Join(err, b.abandon())
	}
	return b, err
}

// abandon frees the rows of the batch.
func (b *batch) abandon() error {
	if b.tx == nil {
		return nil
	}
	return ignoreDone(b.tx.Rollback())
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// read reads, and locks, up to limit waiting rows with a retry_at from and to, in its
// order.
func (b *batch) read(ctx context.Context, db DB, from, to int64, limit int) error {
	condition, args := "retry_at BETWEEN ? AND ?", []any{from, to}
	if from == to {
		condition, args = b.store.dialect.at("?", from)
	}
	query := "SELECT seq, request_key, stream, kind, target, body, attempts FROM {table} {by ready} " +
		"WHERE failed_at IS NULL AND " + condition + " ORDER BY retry_at, seq LIMIT ?"
	if b.store.dialect.locks {
		query += " FOR UPDATE SKIP LOCKED"
	}
	rows, err := db.QueryContext(ctx, b.store.sql(query), append(args, limit)...)
	if err != nil {
		return err
	}
	for rows.Next() {
		var r claimedRow
		var key string
		var body []byte
		if err := rows.Scan(&r.seq, &key, &r.stream, &r.kind, &r.target, &body, &r.attempts); err != nil {
			return errors.Join(err, rows.Close())
		}
		b.size += len(body)
		if len(b.rows) > 0 && b.size > maxClaimBytes {
			b.more = true
			break
		}
		r.lane = laneOf(r.kind, r.target)
		r.request, r.err = requestOf(r.kind, key, body)
		b.rows = append(b.rows, r)
	}
	return errors.Join(rows.Err(), rows.Close())
}

// removeParked removes the rows of parked lanes other than own, and reports whether
// there were any.
func (b *batch) removeParked(ctx context.Context, db DB, own []claimedLane) (removed bool, err error) {
	var lanes []int64
	for _, r := range b.rows {
		if !slices.Contains(lanes, r.lane) && !slices.ContainsFunc(own, func(l claimedLane) bool { return l.lane == r.lane }) {
			lanes = append(lanes, r.lane)
		}
	}
	if len(lanes) == 0 {
		return false, nil
	}
	parked, err := b.store.parkedAmong(ctx, db, lanes, false)
	if err != nil || len(parked) == 0 {
		return false, err
	}
	b.rows = slices.DeleteFunc(b.rows, func(r claimedRow) bool {
		if parked[r.lane] {
			b.parking[r.lane] = append(b.parking[r.lane], r.seq)
		}
		return parked[r.lane]
	})
	return true, nil
}

// requestOf reads the request of a row.
func requestOf(kind, key string, body []byte) (messages.Request, error) {
	key = "outbox:" + key
	var request messages.Request
	switch kind {
	case kindSchedule:
		request = &messages.ScheduleRequest{Key: key}
	case kindBatch:
		request = &messages.ScheduleBatchRequest{Key: key}
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

// Items implements relay.Batch.
func (b *batch) Items() []relay.Item {
	items := make([]relay.Item, len(b.rows))
	for i, r := range b.rows {
		items[i] = relay.Item{Stream: r.stream, Lane: r.lane, Alone: r.kind == kindPublish, Request: r.request, Err: r.err}
	}
	return items
}

// More implements relay.Batch.
func (b *batch) More() bool { return b.more || b.contended }

// Contended implements relay.Batch.
func (b *batch) Contended() bool { return b.contended }
