package wakebell

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/redisops/queue"
)

// QueueLetter is a dead letter of a queue.
type QueueLetter = queue.DeadLetter

// LetterOutcome says what became of a dead letter that was redriven.
type LetterOutcome = queue.LetterOutcome

const (
	// LetterRedriven: it is a message again, with a new id.
	LetterRedriven = queue.LetterRedriven
	// LetterDuplicate: it stays, because another message has its deduplication key.
	LetterDuplicate = queue.LetterDuplicate
	// LetterAbsent: somebody else has taken it.
	LetterAbsent = queue.LetterAbsent
)

// QueueLetters yields the dead letters of a queue, the oldest first, but for the
// first from of them, in pages as the loop goes on: what changes meanwhile may be
// seen twice or not. An error is yielded last.
func (c *Client) QueueLetters(ctx context.Context, name QueueName, from int64) iter.Seq2[QueueLetter, error] {
	return pages(func(after string) ([]QueueLetter, string, error) {
		q, err := c.queue(name)
		if err != nil {
			return nil, "", err
		}
		if after == "" {
			after = strconv.FormatInt(from, 10)
		}
		return q.DeadLetters(ctx, "", after, 0)
	})
}

// QueueLetter reads one dead letter by its Entry; ErrNotFound when there is none.
func (c *Client) QueueLetter(ctx context.Context, name QueueName, entry string) (QueueLetter, error) {
	q, err := c.queue(name)
	if err != nil {
		return QueueLetter{}, err
	}
	return q.DeadLetter(ctx, entry)
}

// DeleteQueueLetters deletes dead letters, and answers how many of them were
// there.
func (c *Client) DeleteQueueLetters(ctx context.Context, name QueueName, letters ...QueueLetter) (int, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, err
	}
	return q.DiscardLetters(ctx, letters...)
}

// QueueRedrive says how dead letters become messages again; the zero value
// redrives them without deduplication keys.
type QueueRedrive struct {
	// Key tells a letter's deduplication key, empty for none; nil: none has one. A
	// key that the dead message still holds passes to the new one. If another
	// message holds it, the letter stays.
	Key func(QueueLetter) string

	// Window is how long the keys suppress, as the option of the queue; 0: 1 h.
	Window time.Duration
	// FreesKeys is FreeKeyOnFailure of the queue.
	FreesKeys bool
}

// RedriveKeys are options for RedriveQueue with which letters get the
// deduplication keys that DeduplicateBy tells, for the queue's Window. A letter
// whose body cannot be read gets none.
func (q Queue[T]) RedriveKeys() QueueRedrive {
	o := QueueRedrive{Window: q.set.window, FreesKeys: q.set.freesKeys || q.set.whenFull == FullDropsOldest}
	if q.key == nil {
		return o
	}
	var zero T
	_, contentType, _ := q.codec.Encode(zero)
	o.Key = func(l QueueLetter) string {
		body, err := q.codec.Decode(l.Payload, contentType)
		if err != nil {
			return ""
		}
		return q.key(body)
	}
	return o
}

// RedriveQueueLetter makes a message of a dead letter again, with a fresh id, and
// deletes the letter, in one step. It answers what became of it and the new id.
func (c *Client) RedriveQueueLetter(ctx context.Context, name QueueName, l QueueLetter, o QueueRedrive) (LetterOutcome, string, error) {
	q, err := c.queue(name)
	if err != nil {
		return 0, "", err
	}
	key := ""
	if o.Key != nil {
		key = o.Key(l)
	}
	return q.RedriveLetter(ctx, l, key, queue.PublishOptions{Window: o.Window, OwnKeys: o.FreesKeys})
}

// redriveStep is how many letters RedriveQueue reads before it redrives them.
const redriveStep = 100

// RedriveQueue makes messages of all dead letters that there are when it begins,
// the oldest first, and answers how many became so. Calling again after an error
// goes on.
func RedriveQueue(ctx context.Context, of QueueOperator, name QueueName, o QueueRedrive) (redriven int64, err error) {
	st, err := of.QueueStats(ctx, name)
	if err != nil {
		return 0, err
	}
	for left, stayed := st.Dead, int64(0); left > 0; {
		letters := make([]QueueLetter, 0, redriveStep)
		for l, err := range of.QueueLetters(ctx, name, stayed) {
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
			outcome, _, err := of.RedriveQueueLetter(ctx, name, l, o)
			switch {
			case err != nil:
				return redriven, err
			case outcome == LetterRedriven:
				redriven++
			case outcome == LetterDuplicate:
				stayed++
			}
		}
	}
	return redriven, nil
}
