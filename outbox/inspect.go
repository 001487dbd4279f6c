package outbox

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Stats are the rows of an outbox. Counts end at 10,000.
type Stats struct {
	Waiting  int64 `json:"waiting"`  // not relayed yet
	Deferred int64 `json:"deferred"` // of those: refused by Redis for now, or behind such, as when a queue is full
	Failed   int64 `json:"failed"`   // set aside; see Failed

	// Lag is the age of the oldest row that waits, of those that are counted; 0: none
	// does. It compares the clocks of the process that wrote the row and of this one.
	Lag time.Duration `json:"lag"`
}

// maxCount is how many rows Stats reads.
const maxCount = 10_000

// Stats counts the rows.
func (o *Outbox) Stats(ctx context.Context, db DB) (s Stats, err error) {
	err = o.reading(ctx, db, func(db DB) error {
		s, err = o.count(ctx, db)
		return err
	})
	return s, err
}

func (o *Outbox) count(ctx context.Context, db DB) (s Stats, err error) {
	now := o.now()
	var oldest int64
	// Each part is read in the order of an index, so that a long backlog costs no more
	// than a short one. With a hint that is so without ORDER BY, for which MySQL reads and
	// sorts the whole range.
	order := " ORDER BY retry_at, seq"
	if o.dialect.hints {
		order = ""
	}
	ready, _ := o.dialect.at("0")
	for _, part := range []struct {
		condition string
		deferred  bool
	}{{"retry_at < 0", true}, {ready, false}, {"retry_at > 0", true}} {
		var rows, first int64
		query := "SELECT COUNT(*), COALESCE(MIN(created_at), 0) FROM (SELECT created_at FROM {table} {by ready} WHERE failed_at IS NULL AND " +
			part.condition + order + " LIMIT ?) w"
		if err := o.scan(ctx, db, query, []any{maxCount}, &rows, &first); err != nil {
			return Stats{}, err
		}
		if rows > 0 && (s.Waiting == 0 || first < oldest) {
			oldest = first
		}
		s.Waiting = min(s.Waiting+rows, maxCount)
		if part.deferred {
			s.Deferred = min(s.Deferred+rows, maxCount)
		}
	}
	const failed = "SELECT COUNT(*) FROM (SELECT seq FROM {table} WHERE failed_at IS NOT NULL LIMIT ?) f"
	if err := o.scan(ctx, db, failed, []any{maxCount}, &s.Failed); err != nil {
		return Stats{}, err
	}
	if s.Waiting > 0 {
		s.Lag = max(now.Sub(instant(oldest)), 0)
	}
	return s, nil
}

// scan reads the only row of a query.
func (o *Outbox) scan(ctx context.Context, db DB, query string, args []any, into ...any) error {
	if db == nil {
		return argument.Invalid("db", "nil")
	}
	rows, err := db.QueryContext(ctx, o.sql(query), args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.table, err)
	}
	if rows.Next() {
		err = rows.Scan(into...)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return fmt.Errorf("read %s: %w", o.table, err)
	}
	return nil
}

// Row is a row that was set aside. In a PostgreSQL database that has neither UTF-8 nor all bytes,
// letters beyond ASCII are as \u{e9}.
type Row struct {
	Seq      int64     `json:"seq"`
	Kind     string    `json:"kind"`   // schedule, batch (timers with joins), cancel or publish
	Target   string    `json:"target"` // topic or queue, without prefix
	Timer    string    `json:"timer"`  // id of the timer
	Created  time.Time `json:"created"`
	Failed   time.Time `json:"failed"`
	Attempts int       `json:"attempts"`
	Error    string    `json:"error"`
	Cursor   string    `json:"cursor"` // continues a listing after this row
}

const failedPage = 100

// Failed yields the rows that were set aside because they are unreadable or because
// Redis or the gateway refused them as invalid, oldest first. An error is yielded last.
func (o *Outbox) Failed(ctx context.Context, db DB, p wakebelltype.Page) iter.Seq2[Row, error] {
	return paging.All(p, func(after string, limit int) ([]Row, string, error) {
		from := int64(0)
		if after != "" {
			var err error
			if from, err = strconv.ParseInt(after, 10, 64); err != nil {
				return nil, "", argument.Invalid("after", "%s is not a cursor", argument.Quote(after))
			}
		}
		if limit <= 0 || limit > failedPage {
			limit = failedPage
		}
		rows, err := o.failed(ctx, db, from, limit)
		if err != nil || len(rows) < limit {
			return rows, "", err
		}
		return rows, rows[len(rows)-1].Cursor, nil
	})
}

func (o *Outbox) failed(ctx context.Context, db DB, after int64, limit int) (all []Row, err error) {
	if db == nil {
		return nil, argument.Invalid("db", "nil")
	}
	rows, err := db.QueryContext(ctx, o.sql("SELECT seq, kind, target, timer, created_at, failed_at, attempts, COALESCE(error, '') FROM {table} "+
		"WHERE failed_at IS NOT NULL AND seq > ? ORDER BY seq LIMIT ?"), after, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.table, err)
	}
	for rows.Next() {
		var r Row
		var created, failed int64
		if err := rows.Scan(&r.Seq, &r.Kind, &r.Target, &r.Timer, &created, &failed, &r.Attempts, &r.Error); err != nil {
			return nil, errors.Join(fmt.Errorf("read %s: %w", o.table, err), rows.Close())
		}
		r.Created, r.Failed, r.Cursor = instant(created), instant(failed), strconv.FormatInt(r.Seq, 10)
		all = append(all, r)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.table, err)
	}
	return all, nil
}

// Retry makes rows that were set aside wait again, and returns their number. They are
// relayed as soon as possible, so after rows of the same timer that were written later
// and have been relayed.
func (o *Outbox) Retry(ctx context.Context, db DB, seqs ...int64) (int64, error) {
	return o.change(ctx, db, "UPDATE {table} SET failed_at = NULL, error = NULL, retry_at = 0, attempts = 0 WHERE failed_at IS NOT NULL AND ", seqs)
}

// Discard deletes rows that were set aside, and returns their number.
func (o *Outbox) Discard(ctx context.Context, db DB, seqs ...int64) (int64, error) {
	return o.change(ctx, db, "DELETE FROM {table} WHERE failed_at IS NOT NULL AND ", seqs)
}

func (o *Outbox) change(ctx context.Context, db DB, statement string, seqs []int64) (changed int64, err error) {
	if db == nil {
		return 0, argument.Invalid("db", "nil")
	}
	for len(seqs) > 0 {
		part := seqs[:min(len(seqs), maxBatch)]
		seqs = seqs[len(part):]
		condition, args := among("seq", part)
		result, err := db.ExecContext(ctx, o.sql(statement+condition), args...)
		if err != nil {
			return changed, fmt.Errorf("change %s: %w", o.table, err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return changed, fmt.Errorf("change %s: %w", o.table, err)
		}
		changed += n
	}
	return changed, nil
}
