package outbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// order removes the rows that would overtake another of their stream.
func (b *batch) order(ctx context.Context, db DB) error {
	if len(b.rows) == 0 {
		return nil
	}
	slices.SortFunc(b.rows, func(x, y claimedRow) int { return cmp.Compare(x.seq, y.seq) })
	before, err := b.predecessors(ctx, db)
	if err != nil {
		return err
	}
	b.removeOvertaking(before, micros(b.store.now()))
	return nil
}

// predecessors returns the rows directly before those of the batch in their streams. It
// is a statement after the one that locked the rows, because in MySQL a subquery of a
// locking query reads an older state.
func (b *batch) predecessors(ctx context.Context, db DB) (map[int64]predecessor, error) {
	if b.store.dialect.hints {
		return b.streams(ctx, db)
	}
	seqs := make([]int64, len(b.rows))
	for i, r := range b.rows {
		seqs[i] = r.seq
	}
	condition, args := among("o.seq", seqs)
	before := map[int64]predecessor{}
	err := b.store.each(ctx, db, "SELECT o.seq, p.seq, p.retry_at FROM {table} o JOIN {table} p ON p.seq = "+
		"(SELECT e.seq FROM {table} e WHERE e.failed_at IS NULL AND "+b.store.dialect.before+" LIMIT 1) WHERE "+condition,
		args, func(scan func(...any) error) error {
			var seq int64
			var p predecessor
			err := scan(&seq, &p.seq, &p.retryAt)
			before[seq] = p
			return err
		})
	return before, err
}

// streams is predecessors for MySQL: for a subquery of each row, MariaDB also reads all
// rows of the stream behind that row. It reads the streams up to the last row of the
// batch: its rows, those that other relays hold, and those that were refused alone.
func (b *batch) streams(ctx context.Context, db DB) (map[int64]predecessor, error) {
	names := make([]string, len(b.rows))
	for i, r := range b.rows {
		names[i] = r.stream
	}
	slices.Sort(names)
	condition, args := among("stream", slices.Compact(names))
	before, last := map[int64]predecessor{}, map[string]predecessor{}
	err := b.store.each(ctx, db, "SELECT stream, seq, retry_at FROM {table} {by stream} WHERE failed_at IS NULL AND seq <= ? AND "+condition+" ORDER BY stream, seq",
		append([]any{b.rows[len(b.rows)-1].seq}, args...), func(scan func(...any) error) error {
			var stream string
			var r predecessor
			err := scan(&stream, &r.seq, &r.retryAt)
			if p, ok := last[stream]; ok {
				before[r.seq] = p
			}
			last[stream] = r
			return err
		})
	return before, err
}

// each calls fn for each row of a query.
func (o *Outbox) each(ctx context.Context, db DB, query string, args []any, fn func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, o.sql(query), args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := fn(rows.Scan); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// removeOvertaking removes the rows behind one that is deferred, or that is not in the
// batch: another relay holds it, or its lane is parked.
func (b *batch) removeOvertaking(before map[int64]predecessor, now int64) {
	until := map[int64]int64{} // by row: 0 if it may be sent, -1 if another relay is ahead, or an instant
	kept := b.rows[:0]
	for _, r := range b.rows {
		wait := int64(0)
		if p, ok := before[r.seq]; ok {
			held, ours := until[p.seq]
			switch {
			case ours:
				wait = held
			case p.retryAt > now && p.retryAt <= now+maxAhead.Microseconds():
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
