package outbox

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/actors/relay"
)

// parked is the store of the rows that were refused: those of parked lanes, and those
// that were refused alone.
type parked struct {
	*store
	adopted *bool // the first claim adopts lanes
	leases  *laneLeases
}

// claimedLane is a parked lane that is tried.
type claimedLane struct {
	lane     int64
	attempts int   // refusals in a row; 0: its rows are being relayed
	retryAt  int64 // in the database: the end of its lease once it is claimed
}

// laneLeases are the leases of this relay that no batch has ended, because the database failed.
// It claims these lanes again before their leases end, if retry_at is still that of the lease.
type laneLeases struct {
	mu  sync.Mutex
	all []claimedLane
}

// open returns the leases that have not ended at an instant, and forgets others.
func (l *laneLeases) open(now int64) []claimedLane {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(c claimedLane) bool { return c.retryAt <= now })
	return slices.Clone(l.all)
}

func (l *laneLeases) add(c claimedLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
}

func (l *laneLeases) remove(ended ...claimedLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(c claimedLane) bool { return slices.Contains(ended, c) })
}

const (
	// maxClaimedLanes is how many lanes are tried at once.
	maxClaimedLanes = 16

	// probeRows is how many rows of a lane are tried after a refusal. More than one,
	// because timers of a topic may be on several servers.
	probeRows = 8

	// maxAhead is more than any relay leaves rows and lanes to wait. What is to wait for longer
	// was deferred by a relay whose clock was wrong, and is due.
	maxAhead = time.Hour
)

// Claim implements relay.Store. It returns the oldest rows of the lanes that are due, and
// rows that were refused alone and are due.
func (s parked) Claim(ctx context.Context) (relay.Batch, error) {
	if !*s.adopted {
		if err := s.adoptLanes(ctx); err != nil {
			return nil, fmt.Errorf("adopt lanes of %s: %w", s.table, err)
		}
		*s.adopted = true
	}
	lanes, err := s.claimLanes(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim lanes of %s: %w", s.table, err)
	}
	b, err := s.claimWith(ctx, func(b *batch, db DB) error { return b.readParked(ctx, db, lanes) })
	if err != nil {
		return nil, fmt.Errorf("claim from %s: %w", s.table, err)
	}
	b.leases = s.leases
	return b, nil
}

// claimLanes returns lanes that are due. Other relays do not try them until the lease
// ends. The lease does not lock the lane: rows are added to it meanwhile.
func (s parked) claimLanes(ctx context.Context) (claimed []claimedLane, err error) {
	now := s.now()
	lanes, err := s.dueLanes(ctx, now)
	if err != nil {
		return nil, err
	}
	lanes = append(s.leases.open(micros(now)), lanes...)
	until := micros(now.Add(s.lease))
	for _, l := range lanes[:min(len(lanes), maxClaimedLanes)] {
		leased := claimedLane{l.lane, l.attempts, until}
		s.leases.add(leased) // before the statement, which may have an effect and fail
		result, err := s.db.ExecContext(ctx, s.sql("UPDATE {parked} SET retry_at = ? WHERE lane = ? AND retry_at = ?"), until, l.lane, l.retryAt)
		if err != nil {
			return nil, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return nil, err
		}
		s.leases.remove(l)
		if n == 1 {
			claimed = append(claimed, leased)
		} else {
			s.leases.remove(leased)
		}
	}
	return claimed, nil
}

func (s parked) dueLanes(ctx context.Context, now time.Time) (due []claimedLane, err error) {
	err = s.each(ctx, s.db, "SELECT lane, attempts, retry_at FROM {parked} WHERE retry_at <= ? OR retry_at > ? ORDER BY retry_at LIMIT ?",
		[]any{micros(now), micros(now.Add(maxAhead)), maxClaimedLanes}, func(scan func(...any) error) error {
			var l claimedLane
			err := scan(&l.lane, &l.attempts, &l.retryAt)
			due = append(due, l)
			return err
		})
	return due, err
}

// readParked reads rows of the lanes, and rows that were refused alone.
func (b *batch) readParked(ctx context.Context, db DB, lanes []claimedLane) error {
	b.lanes = lanes
	half := max(b.store.batch/2, 1)
	share := max(half/max(len(lanes), 1), 1)
	for _, l := range lanes {
		limit, before := share, len(b.rows)
		if l.attempts > 0 {
			limit = min(limit, probeRows)
		}
		if err := b.read(ctx, db, l.lane, l.lane, limit); err != nil {
			return err
		}
		b.more = b.more || l.attempts == 0 && len(b.rows)-before == limit
	}
	before, now := len(b.rows), b.store.now()
	if err := b.read(ctx, db, 1, micros(now), half); err != nil {
		return err
	}
	if err := b.read(ctx, db, micros(now.Add(maxAhead))+1, math.MaxInt64, half); err != nil {
		return err
	}
	b.more = b.more || len(b.rows)-before >= half
	_, err := b.removeParked(ctx, db, lanes)
	return err
}

// adoptLanes parks the lanes that rows name although they are not parked, as after a
// backup of the one table alone was restored. Those that are parked are tried at once.
func (s parked) adoptLanes(ctx context.Context) error {
	for below := int64(0); ; {
		var l parkedLane
		err := s.reading(ctx, s.db, func(db DB) error {
			return s.scan(ctx, db, "SELECT retry_at, kind, target FROM {table} {by ready} WHERE failed_at IS NULL AND retry_at < ? ORDER BY retry_at DESC LIMIT 1",
				[]any{below}, &l.lane, &l.kind, &l.target)
		})
		if err != nil || l.lane == 0 {
			return err
		}
		if err := s.run(ctx, s.db, s.park(l)); err != nil {
			return err
		}
		below = l.lane
	}
}
