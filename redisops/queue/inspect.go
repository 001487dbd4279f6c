package queue

import (
	"context"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/internal/queuemessage"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Stats returns the statistics of the queue. It runs one script, whose cost does
// not grow with the queue.
func (q *Queue) Stats(ctx context.Context) (wakebelltype.QueueStats, error) {
	k := q.keys
	list, err := q.timers.RunList(ctx, 9, statsScript,
		[]string{k.pending, k.processing, k.deadlines, k.completed, k.failed, k.dlq, k.gone})
	if err != nil {
		return wakebelltype.QueueStats{}, fmt.Errorf("stats of queue %q: %w", q.Name(), err)
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return wakebelltype.QueueStats{}, err
	}
	var st wakebelltype.QueueStats
	var leased int64
	for i, into := range []*int64{&st.Pending, &st.Processing, &leased, &st.Ended, &st.Completed, &st.Failed, &st.Dead} {
		if *into, err = strconv.ParseInt(values[1+i], 10, 64); err != nil {
			return wakebelltype.QueueStats{}, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
	}
	st.Processing = max(st.Processing, 0) // Python may have removed messages that gone still lists
	st.Unleased = max(st.Processing-leased, 0)
	st.Now = scripts.ReadInstant(values[0])
	if oldest, err := queuemessage.Decode(values[8]); err == nil {
		if at := publishedAt(oldest.ID, st.Now); at.Before(st.Now) {
			st.Oldest = at
		}
	}
	return st, nil
}

// Messages reads a page of a queue: the waiting messages in the order in which they
// are claimed or, with running, the leased ones by lease expiry and then those without a
// lease, longest held first. From is the number of messages to skip; limit is 1 to 1000. A
// message that changes meanwhile may be returned twice or not at all.
func (q *Queue) Messages(ctx context.Context, running bool, from int64, limit int) ([]wakebelltype.QueueMessage, error) {
	found, err := q.read(ctx, running, from, limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	out := make([]wakebelltype.QueueMessage, len(found))
	for i, f := range found {
		out[i] = f.message
	}
	return out, nil
}

// Purge deletes the waiting messages and, with running, the leased ones too, whose
// holders then lose their leases. It returns the number of deleted messages. It
// works in steps of 500 until none are left or ctx ends.
func (q *Queue) Purge(ctx context.Context, running bool) (deleted int64, err error) {
	lists := []string{"pending"}
	if running {
		lists = append(lists, "processing")
	}
	k := q.keys
	keys := []string{k.pending, k.processing, k.deadlines, k.tokens, k.counts, k.refs, k.ids, k.backrefs, k.gone, k.hint, k.freed, k.flow}
	for _, what := range lists {
		for left := "1"; left != "0"; {
			list, err := q.timers.RunList(ctx, 2, purgeScript, keys, what, k.owners)
			if err != nil {
				return deleted, fmt.Errorf("purge queue %q: %w", q.Name(), err)
			}
			values, err := scripts.Texts(list)
			if err != nil {
				return deleted, err
			}
			n, err := strconv.ParseInt(values[0], 10, 64)
			if err != nil {
				return deleted, fmt.Errorf("%w: %w", scripts.ErrReply, err)
			}
			deleted += n
			left = values[1]
		}
	}
	return deleted, nil
}

// PurgeKept deletes the stored payloads of handled and failed messages and returns
// their number.
func (q *Queue) PurgeKept(ctx context.Context) (int64, error) {
	pipe := q.timers.RDB.TxPipeline()
	completed, failed := pipe.LLen(ctx, q.keys.completed), pipe.LLen(ctx, q.keys.failed)
	pipe.Unlink(ctx, q.keys.completed, q.keys.failed)
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("purge queue %q: %w", q.Name(), scripts.Wrap(ctx, nil, err))
	}
	return completed.Val() + failed.Val(), nil
}
