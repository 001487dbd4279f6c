package queue

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/redisops"
)

// DeadLetter is a dead letter of a queue.
type DeadLetter = redisops.QueueLetter

// RedriveOutcome says what became of a dead letter that was redriven.
type RedriveOutcome = redisops.LetterOutcome

const (
	// Redriven: it is a message again, with a new id.
	Redriven = redisops.LetterRedriven
	// Duplicate: it stays, because another message has its deduplication key.
	Duplicate = redisops.LetterDuplicate
	// Absent: somebody else has taken it.
	Absent = redisops.LetterAbsent
)

// DeadLetters yields the dead letters of a queue, the oldest first, but for the
// first from of them, in pages as the loop goes on: what changes meanwhile may be
// seen twice or not. An error is yielded last.
func (c *Client) DeadLetters(ctx context.Context, name Keys, from int64) iter.Seq2[DeadLetter, error] {
	return paging.All(func(after string) ([]DeadLetter, string, error) {
		q, err := c.queue(name)
		if err != nil {
			return nil, "", err
		}
		if after == "" {
			after = strconv.FormatInt(from, 10)
		}
		return q.QueueLetters(ctx, "", after, 0)
	})
}

// DeadLetter reads one dead letter by its Entry; ErrNotFound when there is none.
func (c *Client) DeadLetter(ctx context.Context, name Keys, entry string) (DeadLetter, error) {
	q, err := c.queue(name)
	if err != nil {
		return DeadLetter{}, err
	}
	return q.QueueLetter(ctx, entry)
}

// DeleteDeadLetters deletes dead letters, and answers how many of them were
// there.
func (c *Client) DeleteDeadLetters(ctx context.Context, name Keys, letters ...DeadLetter) (int, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	return q.DiscardLetters(ctx, letters...)
}

// RedriveOptions says how dead letters become messages again; the zero value
// redrives them without deduplication keys.
type RedriveOptions struct {
	// Key tells a letter's deduplication key, empty for none; nil: none has one. A
	// key that the dead message still holds passes to the new one. If another
	// message holds it, the letter stays.
	Key func(DeadLetter) string

	// Window is how long the keys suppress, as the option of the queue; 0: 1 h.
	Window time.Duration
	// FreeKeyOnFailure is the option of the queue.
	FreeKeyOnFailure bool
}

// RedriveOptions are options for Redrive with which letters get the
// deduplication keys that DeduplicateBy tells, for the queue's Window. A letter
// whose body cannot be read gets none.
func (q Queue[T]) RedriveOptions() RedriveOptions {
	o := RedriveOptions{Window: q.set.DeduplicationWindow, FreeKeyOnFailure: q.set.FreeKeyOnFailure || q.set.WhenFull == FullDropsOldest}
	if q.key == nil {
		return o
	}
	o.Key = func(l DeadLetter) string {
		body, err := q.codec.Decode(l.Payload, q.codec.PayloadType())
		if err != nil {
			return ""
		}
		return q.key(body)
	}
	return o
}

// RedriveDeadLetter makes a message of a dead letter again, with a fresh id, and
// deletes the letter, in one step. It answers what became of it and the new id.
func (c *Client) RedriveDeadLetter(ctx context.Context, name Keys, l DeadLetter, o RedriveOptions) (RedriveOutcome, string, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, "", err
	}
	key := ""
	if o.Key != nil {
		key = o.Key(l)
	}
	return q.RedriveLetter(ctx, l, key, redisops.PublishOptions{Window: o.Window, OwnKeys: o.FreeKeyOnFailure})
}

// redriveStep is how many letters Redrive reads before it redrives them.
const redriveStep = 100

// Redrive makes messages of all dead letters that there are when it begins,
// the oldest first, and answers how many became so. Calling again after an error
// goes on.
func Redrive(ctx context.Context, of Operator, name Keys, o RedriveOptions) (redriven int64, err error) {
	st, err := of.Stats(ctx, name)
	if err != nil {
		return 0, err
	}
	for left, stayed := st.Dead, int64(0); left > 0; {
		letters := make([]DeadLetter, 0, redriveStep)
		for l, err := range of.DeadLetters(ctx, name, stayed) {
			if err != nil {
				return redriven, err
			}
			if letters = append(letters, l); len(letters) == int(min(left, redriveStep)) {
				break
			}
		}
		if len(letters) == 0 {
			return redriven, nil
		}
		for _, l := range letters {
			left--
			outcome, _, err := of.RedriveDeadLetter(ctx, name, l, o)
			switch {
			case err != nil:
				return redriven, err
			case outcome == Redriven:
				redriven++
			case outcome == Duplicate:
				stayed++
			}
		}
	}
	return redriven, nil
}
