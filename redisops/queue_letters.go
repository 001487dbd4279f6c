package redisops

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/stored"
)

// QueueLetter is a dead letter of a queue.
type QueueLetter struct {
	// Entry names it; letters with the same payload that Python wrote share one.
	Entry   string
	Payload []byte

	// What follows is zero of a letter that Python wrote.

	ID         string // of the message
	Reason     string
	Deliveries int
	At         time.Time // when it died
}

// QueueLetters reads a page of the dead letters, the oldest first. After is
// what next was of the page before, empty at the start; next is empty at the
// end. Entry chooses one, empty for all. A page holds at most limit letters (1
// to 1000; 0 means 100) and about 1 MiB; with Entry it may be empty and have a
// next one.
func (q *Queue) QueueLetters(ctx context.Context, entry, after string, limit int) (letters []QueueLetter, next string, err error) {
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 1 || limit > maxPage {
		return nil, "", fmt.Errorf("%w: limit: %d, want 1 to %d", ErrInvalid, limit, maxPage)
	}
	if after == "" {
		after = "0"
	}
	if _, err := strconv.ParseUint(after, 10, 53); err != nil {
		return nil, "", fmt.Errorf("%w: after: %q is not where a page ended", ErrInvalid, after)
	}
	list, err := q.timers.runList(ctx, 1, queueLettersScript, []string{q.keys.dlq, q.keys.letters}, after, limit, deadPageBytes, entry)
	if err != nil {
		return nil, "", fmt.Errorf("dead letters of queue %q: %w", q.Name(), err)
	}
	values, err := texts(list)
	if err != nil {
		return nil, "", err
	}
	for v := values[1:]; len(v) >= 3; v = v[3:] {
		letters = append(letters, readQueueLetter(v[0], v[1], v[2]))
	}
	return letters, values[0], nil
}

func readQueueLetter(entry, payload, record string) QueueLetter {
	l := QueueLetter{Entry: entry, Payload: []byte(payload)}
	if record == "" {
		return l
	}
	r := reader{text: record}
	at := r.score()
	deliveries := r.integer()
	id := r.take(r.count())
	if r.err == nil {
		l.At, l.Deliveries, l.ID, l.Reason = instant(at), deliveries, id, r.text
	}
	return l
}

// QueueLetter reads one dead letter; [ErrNotFound] when there is none. It looks
// through the list for it.
func (q *Queue) QueueLetter(ctx context.Context, entry string) (QueueLetter, error) {
	if entry == "" {
		return QueueLetter{}, fmt.Errorf("%w: entry: empty", ErrInvalid)
	}
	for after := ""; ; {
		letters, next, err := q.QueueLetters(ctx, entry, after, 1)
		switch {
		case err != nil:
			return QueueLetter{}, err
		case len(letters) > 0:
			return letters[0], nil
		case next == "":
			return QueueLetter{}, fmt.Errorf("%w: dead letter %q of queue %q", ErrNotFound, entry, q.Name())
		}
		after = next
	}
}

// LetterOutcome says what became of a dead letter of a queue.
type LetterOutcome uint8

const (
	// LetterRedriven: it is a message again, with a new id.
	LetterRedriven LetterOutcome = iota + 1
	// LetterDuplicate: it stays, for its deduplication key is taken.
	LetterDuplicate
	// LetterAbsent: it was not there.
	LetterAbsent
)

// RedriveLetter publishes a dead letter again, with a fresh id and, if it is not
// empty, with a deduplication key, and deletes it, in one step.
func (q *Queue) RedriveLetter(ctx context.Context, l QueueLetter, key string, o PublishOptions) (LetterOutcome, string, error) {
	o, err := o.check()
	if err != nil {
		return 0, "", err
	}
	k := q.keys
	tail := newTail()
	keys := []string{k.pending, k.dlq, k.letters, k.hint, k.published + tail}
	if key != "" {
		keys = append(keys, k.deduplication+key)
	}
	owners := ""
	if o.OwnKeys {
		owners = k.owners
	}
	list, err := q.timers.runList(ctx, 2, queueRedriveScript, keys,
		l.Payload, l.Entry, tail, stored.Rest(l.Payload), o.Window.Milliseconds(), owners)
	if err != nil {
		return 0, "", fmt.Errorf("redrive in queue %q: %w", q.Name(), err)
	}
	values, err := texts(list)
	if err != nil {
		return 0, "", err
	}
	outcome := LetterOutcome(strings.Index("rda", values[0]) + 1) //nolint:gosec // 0 to 3
	if outcome == 0 {
		return 0, "", fmt.Errorf("%w: %q", errReply, values[0])
	}
	return outcome, values[1], nil
}

// DiscardLetters deletes dead letters, and says how many of them were there.
func (q *Queue) DiscardLetters(ctx context.Context, letters ...QueueLetter) (int, error) {
	total := 0
	for part := range slices.Chunk(letters, batchEntries) {
		args := make([]any, 0, 2*len(part))
		for _, l := range part {
			args = append(args, l.Entry, l.Payload)
		}
		text, err := q.timers.runText(ctx, queueDiscardScript, []string{q.keys.dlq, q.keys.letters}, args...)
		if err != nil {
			return total, fmt.Errorf("delete dead letters of queue %q: %w", q.Name(), err)
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return total, fmt.Errorf("%w: %w", errReply, err)
		}
		total += n
	}
	return total, nil
}
