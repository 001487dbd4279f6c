package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/queuemessage"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// DeadLetters reads a page of dead letters, the oldest first. After is empty for
// the first page, and the next value of the previous page otherwise; next is empty
// after the last page. Entry selects one dead letter; empty selects all. A page has
// at most limit dead letters (1 to 1000; 0 means 100) and about 1 MiB; with Entry
// it may be empty and have a next page.
func (q *Queue) DeadLetters(ctx context.Context, entry, after string, limit int) (letters []wakebelltype.QueueDeadLetter, next string, err error) {
	if limit == 0 {
		limit = layout.DefaultPage
	}
	if limit < 1 || limit > layout.MaxPage {
		return nil, "", fmt.Errorf("%w: limit: %d, want 1 to %d", wakebelltype.ErrInvalid, limit, layout.MaxPage)
	}
	if after == "" {
		after = "0"
	}
	if _, err := strconv.ParseUint(after, 10, 53); err != nil {
		return nil, "", fmt.Errorf("%w: after: %q is not a valid page cursor", wakebelltype.ErrInvalid, after)
	}
	values, err := q.deadPage(ctx, entry, after, limit)
	if err != nil {
		return nil, "", err
	}
	for v := values[1:]; len(v) >= 4; v = v[4:] {
		letters = append(letters, readDeadLetter(v[0], v[1], v[2]))
	}
	return letters, values[0], nil
}

// deadPage returns a page as lua/list_dead.lua returns it.
func (q *Queue) deadPage(ctx context.Context, entry, after string, limit int) ([]string, error) {
	list, err := q.timers.RunList(ctx, 1, listDeadScript, q.keys.deadKeys(), after, limit, layout.DeadPageBytes, entry)
	if err != nil {
		return nil, fmt.Errorf("dead letters of queue %q: %w", q.Name(), err)
	}
	return scripts.Texts(list)
}

// before returns how many dead letters precede the first one of an entry, or false
// if there is none.
func (q *Queue) before(ctx context.Context, entry string) (string, bool, error) {
	for after := "0"; after != ""; {
		values, err := q.deadPage(ctx, entry, after, 1)
		if err != nil {
			return "", false, err
		}
		if len(values) == 5 {
			return values[4], true, nil
		}
		after = values[0]
	}
	return "", false, nil
}

func readDeadLetter(entry, payload, record string) wakebelltype.QueueDeadLetter {
	l := wakebelltype.QueueDeadLetter{Entry: entry, Payload: []byte(payload)}
	if record == "" {
		return l
	}
	r := scripts.Reader{Text: record}
	at := r.Score()
	deliveries := r.Integer()
	id := r.Take(r.Count())
	if r.Err == nil {
		l.At, l.Deliveries, l.ID, l.Reason = scripts.Instant(at), deliveries, id, r.Text
	}
	return l
}

// DeadLetter reads one dead letter. The error wraps [wakebelltype.ErrNotFound] if there
// is none. For a dead letter that Python wrote it searches the list.
func (q *Queue) DeadLetter(ctx context.Context, entry string) (wakebelltype.QueueDeadLetter, error) {
	if entry == "" {
		return wakebelltype.QueueDeadLetter{}, fmt.Errorf("%w: entry: empty", wakebelltype.ErrInvalid)
	}
	for after := ""; ; {
		letters, next, err := q.DeadLetters(ctx, entry, after, 1)
		switch {
		case err != nil:
			return wakebelltype.QueueDeadLetter{}, err
		case len(letters) > 0:
			return letters[0], nil
		case next == "":
			return wakebelltype.QueueDeadLetter{}, fmt.Errorf("%w: dead letter %q of queue %q", wakebelltype.ErrNotFound, entry, q.Name())
		}
		after = next
	}
}

// RedriveLetter publishes a dead letter again and deletes it, in one step. The
// message has a new id and, if key is not empty, a deduplication key.
func (q *Queue) RedriveLetter(ctx context.Context, l wakebelltype.QueueDeadLetter, key string, o PublishOptions) (wakebelltype.QueueRedriveOutcome, string, error) {
	o, err := o.check()
	if err != nil {
		return 0, "", err
	}
	k := q.keys
	tail := newTail()
	keys := []string{k.pending, k.dlq, k.places, k.records, k.hint, k.published + tail, "", k.freed}
	if key != "" {
		keys = append(keys, k.deduplication+key)
	}
	owners := ""
	if o.OwnKeys {
		owners = k.owners
	}
	for before := ""; ; {
		var list []any
		err := q.counted(ctx, keys, 6, func() (err error) {
			list, err = q.timers.RunList(ctx, 2, redriveScript, keys,
				l.Payload, l.Entry, before, tail, queuemessage.Rest(l.Payload, nil), o.Window.Milliseconds(), owners)
			return err
		})
		if err != nil {
			return 0, "", fmt.Errorf("redrive in queue %q: %w", q.Name(), err)
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return 0, "", err
		}
		if values[0] == "f" {
			found := false
			if before, found, err = q.before(ctx, l.Entry); err != nil || !found {
				return wakebelltype.QueueRedriveAbsent, "", err
			}
			continue
		}
		outcome := wakebelltype.QueueRedriveOutcome(strings.Index("rda", values[0]) + 1) //nolint:gosec // 0 to 3
		if outcome == 0 {
			return 0, "", fmt.Errorf("%w: %q", scripts.ErrReply, values[0])
		}
		return outcome, values[1], nil
	}
}

// DiscardLetters deletes dead letters and returns how many of them existed.
func (q *Queue) DiscardLetters(ctx context.Context, letters ...wakebelltype.QueueDeadLetter) (int, error) {
	total, before := 0, "" // position before the first remaining one
	for len(letters) > 0 {
		examined, deleted, far, err := q.discard(ctx, letters, before)
		total, before, letters = total+deleted, "", letters[examined:]
		if err != nil {
			return total, fmt.Errorf("delete dead letters of queue %q: %w", q.Name(), err)
		}
		if !far {
			continue
		}
		found := false
		if before, found, err = q.before(ctx, letters[0].Entry); err != nil {
			return total, err
		}
		if !found {
			letters = letters[1:]
		}
	}
	return total, nil
}

// discard is one step of DiscardLetters. Far means that the first dead letter after
// the examined ones must be searched for.
func (q *Queue) discard(ctx context.Context, letters []wakebelltype.QueueDeadLetter, before string) (examined, deleted int, far bool, err error) {
	args := make([]any, 0, 3*layout.BatchEntries)
	for size := 0; len(args) < 3*min(len(letters), layout.BatchEntries); before = "" {
		l := letters[len(args)/3]
		if size += len(l.Payload); len(args) > 0 && size > layout.BatchBytes {
			break
		}
		args = append(args, l.Entry, l.Payload, before)
	}
	list, err := q.timers.RunList(ctx, 3, discardScript, append(q.keys.deadKeys(), q.keys.freed), args...)
	if err != nil {
		return 0, 0, false, err
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return 0, 0, false, err
	}
	examined, err1 := strconv.Atoi(values[0])
	deleted, err2 := strconv.Atoi(values[1])
	far = values[2] == "1"
	if err := errors.Join(err1, err2); err != nil || examined > len(letters) || examined == 0 && !far {
		return 0, 0, false, fmt.Errorf("%w: %q, %w", scripts.ErrReply, values, err)
	}
	return examined, deleted, far && examined < len(letters), nil
}

// deadKeys are the keys of dead letters.
func (k queueKeys) deadKeys() []string { return []string{k.dlq, k.places, k.records} }
