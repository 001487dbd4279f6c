package queue

import (
	"context"
	"iter"
	"time"

	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops/audit"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadLetters yields the dead letters of a queue, the oldest first. It reads pages
// while the loop runs. A dead letter that stays is yielded once, also by a listing
// that continues after a Cursor; if the one of the Cursor is gone and Python wrote
// it, some may be skipped. An error is yielded last.
func (c *Client) DeadLetters(ctx context.Context, name wakebelltype.QueueKeys, p wakebelltype.Page) iter.Seq2[wakebelltype.QueueDeadLetter, error] {
	return paging.All(p, func(after string, limit int) ([]wakebelltype.QueueDeadLetter, string, error) {
		q, err := c.listed(ctx, name)
		if err != nil {
			return nil, "", err
		}
		return q.DeadLettersAfter(ctx, after, limit)
	})
}

// DeadLetter returns one dead letter by its Entry. The error is wakebell.ErrNotFound
// if there is none.
func (c *Client) DeadLetter(ctx context.Context, name wakebelltype.QueueKeys, entry string) (wakebelltype.QueueDeadLetter, error) {
	q, err := c.listed(ctx, name)
	if err != nil {
		return wakebelltype.QueueDeadLetter{}, err
	}
	return q.DeadLetter(ctx, entry)
}

// DeleteDeadLetters deletes dead letters, and returns how many of them existed.
func (c *Client) DeleteDeadLetters(ctx context.Context, name wakebelltype.QueueKeys, dead ...wakebelltype.QueueDeadLetter) (int, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	n, err := q.DiscardLetters(ctx, dead...)
	c.record(ctx, wakebelltype.AuditQueueDeleteDead, q, audit.Result{Count: int64(n), Err: err})
	return n, err
}

// RedriveOptions says how dead letters become messages again; the zero value
// redrives them without deduplication keys.
type RedriveOptions struct {
	// Key returns the deduplication key of a dead letter, empty for none; nil: none
	// has one. The new message takes over a key that the dead one still holds. If
	// another message holds the key, the dead letter stays.
	Key func(wakebelltype.QueueDeadLetter) string

	// Window is how long the keys suppress, 1 ms to 100 years; 0 means 1 h.
	Window time.Duration
	// FreeKeyOnFailure is the option of the queue.
	FreeKeyOnFailure bool
}

// RedriveOptions returns options for Redrive that give dead letters the keys of
// DeduplicateBy for the queue's DeduplicationWindow. A dead letter whose body cannot
// be decoded gets none.
func (q Queue[T]) RedriveOptions() RedriveOptions {
	o := RedriveOptions{Window: q.set.DeduplicationWindow, FreeKeyOnFailure: q.set.FreeKeyOnFailure || q.set.WhenFull == FullDropsOldest}
	if q.key == nil {
		return o
	}
	o.Key = func(l wakebelltype.QueueDeadLetter) string {
		body, err := q.codec.Decode(l.Payload, q.codec.PayloadType())
		if err != nil {
			return ""
		}
		return q.key(body)
	}
	return o
}

// RedriveDeadLetter publishes a dead letter again with a new id and deletes it, in
// one step. It returns the outcome and the new id.
func (c *Client) RedriveDeadLetter(ctx context.Context, name wakebelltype.QueueKeys, l wakebelltype.QueueDeadLetter, o RedriveOptions) (wakebelltype.QueueRedriveOutcome, string, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, "", err
	}
	key := ""
	if o.Key != nil {
		key = o.Key(l)
	}
	outcome, id, err := q.RedriveLetter(ctx, l, key, queuestore.PublishOptions{Window: o.Window, OwnKeys: o.FreeKeyOnFailure})
	if outcome == wakebelltype.QueueRedriveSucceeded {
		c.record(ctx, wakebelltype.AuditQueueRedrive, q, audit.One("", err))
	}
	return outcome, id, err
}

// redriveStep is how many dead letters Redrive reads before it redrives them.
const redriveStep = 100

// Redrive publishes all dead letters that exist when it begins, the oldest first,
// and returns how many it redrove. A call after an error continues.
func Redrive(ctx context.Context, of Operator, name wakebelltype.QueueKeys, o RedriveOptions) (redriven int64, err error) {
	looking := opened.ByMasters(ctx)
	st, err := of.Stats(looking, name)
	if err != nil {
		return 0, err
	}
	for left, stayed := st.Dead, int64(0); left > 0; {
		dead := make([]wakebelltype.QueueDeadLetter, 0, redriveStep)
		for l, err := range of.DeadLetters(looking, name, wakebelltype.Page{After: queuestore.First(stayed), Limit: int(min(left, redriveStep))}) {
			if err != nil {
				return redriven, err
			}
			dead = append(dead, l)
		}
		if len(dead) == 0 {
			return redriven, nil
		}
		for _, l := range dead {
			left--
			outcome, _, err := of.RedriveDeadLetter(ctx, name, l, o)
			switch {
			case err != nil:
				return redriven, err
			case outcome == wakebelltype.QueueRedriveSucceeded:
				redriven++
			case outcome == wakebelltype.QueueRedriveDuplicate:
				stayed++
			}
		}
	}
	return redriven, nil
}
