package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/actors/relay"
	"github.com/wakebell/wakebell/internal/text"
)

// maxErrorText bounds the error of a row, in bytes.
const maxErrorText = 1024

// Settle implements relay.Batch: it deletes what was relayed, and records why the rest
// was not, in the transaction of the claim.
func (b *batch) Settle(ctx context.Context, results []relay.Result) error {
	if err := b.settle(ctx, results); err != nil {
		return fmt.Errorf("settle in %s: %w", b.store.table, err)
	}
	if b.leases != nil {
		b.leases.remove(b.lanes...)
	}
	return nil
}

func (b *batch) settle(ctx context.Context, results []relay.Result) error {
	changes := b.changes(results)
	tx := b.tx
	if tx == nil {
		if len(changes) == 0 {
			return nil
		}
		var err error
		if tx, err = b.store.db.BeginTx(ctx, nil); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := b.store.run(ctx, tx, c); err != nil {
			return errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}
	return tx.Commit()
}

// outcome is what a batch found out about a lane.
type outcome struct {
	kind     string
	target   string
	parked   []int64  // rows
	refusals []change // of parked rows
	refused  relay.Result
	relayed  bool
	progress bool // a row was relayed, set aside or deferred alone
}

// changes returns the statements that store the results. Lanes are changed, and so
// locked, in the order of their numbers.
func (b *batch) changes(results []relay.Result) (all []change) {
	now := b.store.now()
	var relayed []int64
	retryAt := map[string]int64{} // by stream
	lanes := map[int64]*outcome{}
	for i, r := range b.rows {
		if lanes[r.lane] == nil {
			lanes[r.lane] = &outcome{kind: r.kind, target: r.target}
		}
		lane, result := lanes[r.lane], results[i]
		switch result.Verdict {
		case relay.Relayed:
			relayed, lane.relayed = append(relayed, r.seq), true
		case relay.Rejected:
			all = append(all, b.store.refused(r.seq, "failed_at", micros(now), result.Err))
		case relay.Deferred:
			retryAt[r.stream] = micros(now.Add(deferral(r.attempts, result.Outage)))
			all = append(all, b.store.refused(r.seq, "retry_at", retryAt[r.stream], result.Err))
		case relay.Blocked:
			at := retryAt[r.stream]
			b.blocked[at] = append(b.blocked[at], r.seq)
		case relay.Parked:
			if lane.parked = append(lane.parked, r.seq); result.Err != nil {
				lane.refused = result
				lane.refusals = append(lane.refusals, b.store.refused(r.seq, "retry_at", r.lane, result.Err))
			}
		case relay.Left:
		}
		lane.progress = lane.progress || result.Verdict != relay.Left
	}
	for _, at := range slices.Sorted(maps.Keys(b.blocked)) {
		condition, args := among("seq", b.blocked[at])
		all = append(all, change{"UPDATE {table} SET retry_at = ? WHERE " + condition, append([]any{at}, args...)})
	}
	if len(relayed) > 0 {
		condition, args := among("seq", relayed)
		all = append(all, change{"DELETE FROM {table} WHERE " + condition, args})
	}
	return append(all, b.laneChanges(lanes, now)...)
}

// refused returns the statement that records a refusal of a row, with the value of a column.
func (o *Outbox) refused(seq int64, column string, value int64, err error) change {
	text := errorText(err)
	in := o.dialect.lettersOf(text)
	return change{
		"UPDATE {table} SET attempts = attempts + 1, " + column + " = ?, error = " + in.value + " WHERE seq = ?",
		slices.Concat([]any{value}, in.args(text), []any{seq}),
	}
}

// laneChanges returns the statements about lanes. A lane is locked before rows get its number:
// on MySQL, the statement that deletes a lane waits for them, so that two relays would wait for
// each other.
func (b *batch) laneChanges(lanes map[int64]*outcome, now time.Time) (all []change) {
	tried := map[int64]claimedLane{}
	for _, l := range b.lanes {
		tried[l.lane] = l
	}
	numbers := slices.Concat(slices.Collect(maps.Keys(lanes)), slices.Collect(maps.Keys(tried)), slices.Collect(maps.Keys(b.parking)))
	slices.Sort(numbers)
	for _, lane := range slices.Compact(numbers) {
		found := cmp.Or(lanes[lane], &outcome{})
		own, isOwn := tried[lane]
		switch {
		case len(found.parked) > 0:
			if found.relayed {
				own.attempts = 0
			}
			at := now.Add(deferral(own.attempts, found.refused.Outage))
			all = append(all, b.store.park(parkedLane{lane, found.kind, found.target, micros(at), own.attempts + 1, found.refused.Outage, errorText(found.refused.Err)}))
			all = append(append(all, found.refusals...), mark(lane, found.parked))
		case isOwn:
			all = append(all, release(own, found.progress, now)...)
		case len(b.parking[lane]) > 0:
			all = append(all, change{"UPDATE {parked} SET lane = lane WHERE lane = ?", []any{lane}}) // locks it
		}
		if seqs := b.parking[lane]; len(seqs) > 0 {
			all = append(all, mark(lane, seqs))
		}
	}
	return all
}

// release returns the statements for a lane that was not refused: its next rows are
// relayed at once, or later if none of it was sent. A lane without rows is deleted.
func release(l claimedLane, progress bool, now time.Time) []change {
	at := now.Add(firstDeferral)
	if progress {
		at, l.attempts = now, 0
	}
	return []change{
		{"UPDATE {parked} SET retry_at = ?, attempts = ?, outage = 0 WHERE lane = ?", []any{micros(at), l.attempts, l.lane}},
		{
			"DELETE FROM {parked} WHERE lane = ? AND NOT EXISTS (SELECT 1 FROM {table} w WHERE w.failed_at IS NULL AND w.retry_at = ?)",
			[]any{l.lane, l.lane},
		},
	}
}

// errorText returns the text of an error that every database can store.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return legible(strings.ToValidUTF8(text.Clip(err.Error(), maxErrorText), "\ufffd"))
}
