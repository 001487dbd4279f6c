package outbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wakebell/wakebell/internal/backoff"
)

// A lane has the rows that Redis refuses together: those of a topic, or of a queue. While
// a lane is refused, it is parked: it has a row in the table of parked lanes, with the
// instant of its next attempt, and its rows have its number in retry_at, so that claims
// do not read them. A row is marked once, however often the lane is tried.
//
// Nothing deletes a parked lane that has rows: the statement that marks rows and the one
// that deletes the lane both lock the lane, or in SQLite the whole database.

// laneOf returns the number of a lane, which is negative. retry_at is an instant or 0
// otherwise.
func laneOf(kind, target string) int64 {
	class := "topic"
	if kind == kindPublish {
		class = "queue"
	}
	sum := sha256.Sum256([]byte(class + "\x00" + target))
	return -int64(binary.BigEndian.Uint64(sum[:])>>1 | 1) //nolint:gosec // shifted
}

const (
	// firstDeferral and maxDeferral bound the delay until a refused row or lane is tried
	// again, which doubles with each attempt; maxOutage bounds it when Redis did not
	// answer.
	firstDeferral = time.Second
	maxDeferral   = time.Minute
	maxOutage     = 5 * time.Second
)

// deferral returns the delay after a number of earlier refusals.
func deferral(attempts int, outage bool) time.Duration {
	most := maxDeferral
	if outage {
		most = maxOutage
	}
	return backoff.Exponential(firstDeferral, max(attempts, 0), most)
}

// parkedAmong returns those of the lanes that are parked. Where the dialect has locks,
// lock locks them until the end of the transaction, in the order of their numbers.
func (s *store) parkedAmong(ctx context.Context, db DB, lanes []int64, lock bool) (map[int64]bool, error) {
	parked := map[int64]bool{}
	for part := range slices.Chunk(lanes, maxBatch) {
		condition, args := among("lane", part)
		query := "SELECT lane FROM {parked} WHERE " + condition
		if lock && s.dialect.locks {
			query += " ORDER BY lane FOR UPDATE"
		}
		rows, err := db.QueryContext(ctx, s.sql(query), args...)
		if err != nil {
			return nil, err
		}
		var lane int64
		for rows.Next() {
			if err := rows.Scan(&lane); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			parked[lane] = true
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return parked, nil
}

// parkedLane is a row of the table of parked lanes.
type parkedLane struct {
	lane         int64
	kind, target string // of one of its rows, for people
	retryAt      int64
	attempts     int  // refusals in a row
	outage       bool // Redis did not answer, or has no memory
	err          string
}

// park returns the statement that parks a lane, and locks it.
func (o *Outbox) park(l parkedLane) change {
	outage := 0
	if l.outage {
		outage = 1
	}
	in := o.dialect.lettersOf(l.target, l.err)
	return change{
		"INSERT INTO {parked} (lane, kind, target, retry_at, attempts, outage, error) VALUES (?, ?, " + in.value + ", ?, ?, ?, " + in.value + ")" + o.dialect.replace,
		slices.Concat([]any{l.lane, l.kind}, in.args(l.target), []any{l.retryAt, l.attempts, outage}, in.args(l.err)),
	}
}

// mark returns the statement that gives rows to a parked lane. It changes nothing if the
// lane is not parked any more. It does not exclude rows that were set aside, for which
// retry_at has no meaning: a condition on failed_at makes PostgreSQL read a whole partial
// index for each statement.
func mark(lane int64, seqs []int64) change {
	condition, args := among("seq", seqs)
	return change{
		"UPDATE {table} SET retry_at = ? WHERE EXISTS (SELECT 1 FROM {parked} p WHERE p.lane = ?) AND " + condition,
		append([]any{lane, lane}, args...),
	}
}

const (
	// sweepRows is how many rows a sweep reads at once, without their bodies, and
	// maxSweeps how many times it reads before rows are sent again.
	sweepRows = maxBatch
	maxSweeps = 40
)

// sweep marks the rows of parked lanes, so that they are not claimed. It begins with the
// oldest and ends where fewer than half of the rows that it read were such.
func (s *store) sweep(ctx context.Context) error {
	after := int64(-1 << 62)
	for range maxSweeps {
		last, read, marked, err := s.sweepPart(ctx, after)
		if err != nil || 2*marked < read || read == 0 {
			return err
		}
		after = last
	}
	return nil
}

func (s *store) sweepPart(ctx context.Context, after int64) (last int64, read, marked int, err error) {
	if !s.dialect.locks {
		return s.sweepIn(ctx, s.db, after)
	}
	tx, err := s.begin(ctx, s.db)
	if err != nil {
		return 0, 0, 0, err
	}
	last, read, marked, err = s.sweepIn(ctx, tx, after)
	if err != nil {
		return 0, 0, 0, errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return last, read, marked, tx.Commit()
}

func (s *store) sweepIn(ctx context.Context, db DB, after int64) (last int64, read, marked int, err error) {
	condition, _ := s.dialect.at("0")
	query := "SELECT seq, kind, target FROM {table} {by ready} WHERE failed_at IS NULL AND " + condition + " AND seq > ? ORDER BY retry_at, seq LIMIT ?"
	if s.dialect.locks {
		query += " FOR UPDATE SKIP LOCKED"
	}
	rows, err := db.QueryContext(ctx, s.sql(query), after, sweepRows)
	if err != nil {
		return 0, 0, 0, err
	}
	lanes := map[int64][]int64{}
	for rows.Next() {
		var kind, target string
		if err := rows.Scan(&last, &kind, &target); err != nil {
			return 0, 0, 0, errors.Join(err, rows.Close())
		}
		lane := laneOf(kind, target)
		lanes[lane] = append(lanes[lane], last)
		read++
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return 0, 0, 0, err
	}
	parked, err := s.parkedAmong(ctx, db, slices.Sorted(maps.Keys(lanes)), true)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, lane := range slices.Sorted(maps.Keys(parked)) {
		if err := s.run(ctx, db, mark(lane, lanes[lane])); err != nil {
			return 0, 0, 0, err
		}
		marked += len(lanes[lane])
	}
	return last, read, marked, nil
}

// change is a statement.
type change struct {
	text string
	args []any
}

func (o *Outbox) run(ctx context.Context, db Execer, c change) error {
	_, err := db.ExecContext(ctx, o.sql(c.text), c.args...)
	return err
}

// begin starts a transaction in which queries read the table in the order of its indexes.
// In READ COMMITTED each statement sees what was committed before it.
func (o *Outbox) begin(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil || o.dialect.planning == "" {
		return tx, err
	}
	if _, err := tx.ExecContext(ctx, o.dialect.planning); err != nil {
		return nil, errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return tx, nil
}

// reading calls fn with the database, or in a transaction of it where that decides how
// queries are planned. A transaction of the caller stays as it is.
func (o *Outbox) reading(ctx context.Context, db DB, fn func(db DB) error) error {
	pool, ok := db.(*sql.DB)
	if !ok || o.dialect.planning == "" {
		return fn(db)
	}
	tx, err := o.begin(ctx, pool)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.table, err)
	}
	return errors.Join(fn(tx), ignoreDone(tx.Rollback()))
}
