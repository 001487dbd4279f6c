package wakebell

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/queue"
)

// Published says what became of a message.
type Published = queue.Published

// ErrQueueFull says that as many messages wait as PendingCap allows.
var ErrQueueFull = redisops.ErrQueueFull

const (
	roomFirst = 5 * time.Millisecond // until a full queue is tried again, doubled
	roomLast  = 250 * time.Millisecond
)

// Publish publishes messages, to one queue or to several, in their order; those
// of one queue that follow each other in one atomic round trip, up to 500 of them
// and 1 MiB. All are checked before the first is published. After an error those
// that are answered are published, and the same drafts may be given again: within
// a minute, or within the window where they have deduplication keys, each is
// published once.
func (c *Client) Publish(ctx context.Context, drafts ...Publication) ([]Published, error) {
	queues := make([]*queue.Queue, len(drafts))
	for i, d := range drafts {
		q, err := c.queue(d.queue)
		switch {
		case d.err != nil:
			err = d.err
		case err == nil && len(d.payload) > c.limit:
			err = invalid("body", "%d bytes, the limit is %d", len(d.payload), c.limit)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		queues[i] = q
	}
	out := make([]Published, 0, len(drafts))
	for from := 0; from < len(drafts); {
		to := from + 1
		for to < len(drafts) && drafts[to].alike(drafts[from]) {
			to++
		}
		part, err := publish(ctx, queues[from], drafts[from:to])
		out = append(out, part...)
		if err != nil {
			return out, err
		}
		from = to
	}
	return out, nil
}

// alike drafts can be published in one round trip.
func (p Publication) alike(other Publication) bool {
	return p.queue == other.queue && p.set.window == other.set.window && p.set.cap == other.set.cap &&
		p.set.whenFull == other.set.whenFull && p.set.freesKeys == other.set.freesKeys
}

func (s queueSettings) publishOptions() queue.PublishOptions {
	return queue.PublishOptions{
		Window: s.window, Cap: s.cap, DropOldest: s.whenFull == FullDropsOldest, OwnKeys: s.freesKeys,
	}
}

// publish publishes drafts of one queue, and waits for room where it is told to.
func publish(ctx context.Context, q *queue.Queue, drafts []Publication) (out []Published, err error) {
	all := make([]queue.Message, len(drafts))
	for i, d := range drafts {
		all[i] = d.message
	}
	set := drafts[0].set
	var full error
	for pause := roomFirst; ; pause = min(2*pause, roomLast) {
		part, _, err := q.Publish(ctx, set.publishOptions(), all[len(out):]...)
		out = append(out, part...)
		switch {
		case err == nil:
			return out, nil
		case !errors.Is(err, ErrQueueFull):
			return out, errors.Join(full, err)
		case set.whenFull != FullWaits:
			return out, err
		}
		full = err
		select {
		case <-ctx.Done():
			return out, errors.Join(full, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// queue is the store of a queue under its full name.
func (c *Client) queue(name QueueName) (*queue.Queue, error) {
	full, err := c.fullName(name.Name)
	if err != nil {
		return nil, err
	}
	name.Name = full
	return queue.New(c.store, name)
}

// QueueStats are a queue in numbers.
type QueueStats = queue.Stats

// QueueStats describes a queue in numbers.
func (c *Client) QueueStats(ctx context.Context, name QueueName) (QueueStats, error) {
	q, err := c.queue(name)
	if err != nil {
		return QueueStats{}, err
	}
	return q.Stats(ctx)
}

// QueueMessage is a message as it stands in its queue.
type QueueMessage = queue.StoredMessage

// QueueMessages yields the messages of a queue: with running those that are held
// by a consumer or wait for their next attempt, by their deadlines; else those
// that wait, in the order in which they are claimed. It reads them in pages as
// the loop goes on: what changes meanwhile may be seen twice or not. An error is
// yielded last.
func (c *Client) QueueMessages(ctx context.Context, name QueueName, running bool) iter.Seq2[QueueMessage, error] {
	const page = 100
	return pages(func(from int64) ([]QueueMessage, int64, error) {
		q, err := c.queue(name)
		if err != nil {
			return nil, 0, err
		}
		messages, err := q.Messages(ctx, running, from, page)
		if len(messages) < page {
			return messages, 0, err
		}
		return messages, from + page, err
	})
}

// PurgeQueue deletes the messages that wait, frees the deduplication keys that
// FreeKeyOnFailure knows of, and answers how many there were. With running it
// deletes those that are held as well: their handlers' contexts end with
// ErrLeaseLost. After an error it may have deleted some.
func (c *Client) PurgeQueue(ctx context.Context, name QueueName, running bool) (int64, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	return q.Purge(ctx, running)
}

// PurgeQueueKept deletes the payloads that are kept of completed and of failed
// messages, and answers how many there were.
func (c *Client) PurgeQueueKept(ctx context.Context, name QueueName) (int64, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	return q.PurgeKept(ctx)
}

// drainLook is how often DrainQueue looks.
const drainLook = 100 * time.Millisecond

// DrainQueue waits until nothing waits in the queue and nobody holds a message of
// it, which takes consumers, and publishers that have stopped. It answers what is
// left: nothing, or what was there when ctx ended, with its error.
func DrainQueue(ctx context.Context, of QueueOperator, name QueueName) (left QueueStats, err error) {
	for {
		st, err := of.QueueStats(ctx, name)
		switch {
		case ctx.Err() != nil && err != nil:
			return left, context.Cause(ctx)
		case err != nil:
			return left, err
		case st.Pending+st.Processing == 0:
			return st, nil
		}
		left = st
		select {
		case <-ctx.Done():
			return left, context.Cause(ctx)
		case <-time.After(drainLook):
		}
	}
}
