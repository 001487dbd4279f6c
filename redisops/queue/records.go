package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/records"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// records returns the store of what is recorded of the queue.
func (q *Queue) records() records.Store {
	return records.Store{Runner: q.timers.Runner, Name: q.Name(), Counts: q.keys.throughput, History: q.keys.history}
}

// WriteCounts adds what an incarnation of a node has done; see
// [timers.Timers.WriteCounts].
func (q *Queue) WriteCounts(ctx context.Context, incarnation string, call uint64, c wakebelltype.ThroughputCounts) error {
	return q.records().WriteCounts(ctx, q.keys.exchange+":"+incarnation+":counts", call, c)
}

// Throughput returns the counts since a duration ago; see [timers.Timers.Throughput].
// Scheduled has the messages that were published.
func (q *Queue) Throughput(ctx context.Context, since time.Duration) (wakebelltype.Throughput, error) {
	return q.records().Throughput(ctx, since)
}

// WriteHistory adds attempts of one node; see [timers.Timers.WriteHistory].
func (q *Queue) WriteHistory(ctx context.Context, node string, attempts []wakebelltype.Attempt) error {
	return q.records().WriteHistory(ctx, node, attempts)
}

// History reads a page of the attempts; see [timers.Timers.History].
func (q *Queue) History(ctx context.Context, f wakebelltype.HistoryFilter, after string, limit int) (attempts []wakebelltype.Attempt, next string, err error) {
	return q.records().ReadHistory(ctx, f, after, limit)
}

// LastHistory returns the newest attempts; see [timers.Timers.LastHistory].
func (q *Queue) LastHistory(ctx context.Context, f wakebelltype.HistoryFilter, n int) ([]wakebelltype.Attempt, error) {
	return q.records().LastHistory(ctx, f, n)
}

// PurgeRecords deletes the counts and the history.
func (q *Queue) PurgeRecords(ctx context.Context) error {
	err := q.timers.Again(ctx, func() error {
		return scripts.Wrap(ctx, nil, q.timers.RDB.Unlink(ctx, q.keys.throughput, q.keys.history).Err())
	})
	if err != nil {
		return fmt.Errorf("purge records of queue %q: %w", q.Name(), err)
	}
	return nil
}

// counted runs a call that counts what it publishes; place is that of the counts among
// its keys.
func (q *Queue) counted(ctx context.Context, keys []string, place int, call func() error) error {
	return q.timers.QueueCounted(ctx, q.keys.throughput, func(counting bool) error {
		if keys[place] = keys[0]; counting { // a key that is not used needs no right of its own
			keys[place] = q.keys.throughput
		}
		return call()
	})
}
