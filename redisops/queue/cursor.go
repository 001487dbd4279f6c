package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/wakebelltype"
)

// A cursor of a queue has the position of an item and a mark of it, because lists
// have no order to continue in: the items before it may be removed meanwhile. The
// position is where to look first. A cursor without a mark, as First returns it, is
// a count of items.

// First returns the cursor of a listing that leaves out the n items that are first
// when the listing is read.
func First(n int64) string { return strconv.FormatInt(n, 10) }

// markBytes makes a mark that two messages of a queue do not share by chance.
const markBytes = 12

func markOf(m wakebelltype.QueueMessage) string {
	sum := sha256.Sum256([]byte(m.ID + "\x00" + string(m.Payload)))
	return hex.EncodeToString(sum[:markBytes])
}

func newCursor(position int64, mark string) string {
	return strconv.FormatInt(position, 10) + "-" + mark
}

func readCursor(cursor string) (position int64, mark string, err error) {
	if cursor == "" {
		return 0, "", nil
	}
	at, mark, marked := strings.Cut(cursor, "-")
	n, err := strconv.ParseUint(at, 10, 53)
	if err != nil || marked != (mark != "") {
		return 0, "", fmt.Errorf("%w: after: %q is not a cursor of this listing", wakebelltype.ErrInvalid, cursor)
	}
	return int64(n), mark, nil //nolint:gosec // 53 bits
}

// MessagesAfter reads a page of messages as Messages does, after the one with the
// cursor; empty means from the beginning. Next is empty after the last page.
//
// If messages before it were claimed, it is found at its new position. If it was
// claimed itself, so were all before it, and the page begins with the first pending
// message. The order of running messages changes with each heartbeat: if that of
// the cursor has gone, the page begins at its former position, among the leases or among
// the messages without one.
func (q *Queue) MessagesAfter(ctx context.Context, running bool, after string, limit int) (page []wakebelltype.QueueMessage, next string, err error) {
	from, err := q.positionAfter(ctx, running, after)
	if err != nil {
		return nil, "", err
	}
	found, err := q.read(ctx, running, from, limit)
	if err != nil {
		return nil, "", err
	}
	for _, f := range found {
		f.message.Cursor = newCursor(f.position, markOf(f.message))
		page = append(page, f.message)
	}
	if len(page) == limit {
		next = page[limit-1].Cursor
	}
	return page, next, nil
}

// searchStep is how many messages a search for a cursor reads at once.
const searchStep = 100

// positionAfter returns how many messages precede those after a cursor.
func (q *Queue) positionAfter(ctx context.Context, running bool, after string) (int64, error) {
	position, mark, err := readCursor(after)
	if err != nil || mark == "" {
		return position, err
	}
	least := int64(0)
	if running && position >= unleasedAt {
		least = unleasedAt
	}
	for upto, step := position+1, int64(1); upto > least; step = searchStep {
		from := max(least, upto-step)
		page, err := q.read(ctx, running, from, int(upto-from))
		if err != nil {
			return 0, err
		}
		for _, f := range slices.Backward(page) {
			if f.position < upto && markOf(f.message) == mark {
				return f.position + 1, nil
			}
		}
		upto = from
	}
	if running {
		return position, nil
	}
	return 0, nil
}

// DeadLettersAfter reads a page of dead letters as DeadLetters does, after the one
// with the cursor; empty means from the beginning. Next is empty after the last
// page. If others were deleted, it is found at its new position. If it was deleted
// itself, the page begins with the next younger one; for one that Python wrote,
// whose age is unknown, at its former position.
func (q *Queue) DeadLettersAfter(ctx context.Context, after string, limit int) (page []wakebelltype.QueueDeadLetter, next string, err error) {
	from, err := q.deadPositionAfter(ctx, after)
	if err != nil {
		return nil, "", err
	}
	page, next, err = q.DeadLetters(ctx, "", strconv.FormatInt(from, 10), limit)
	for i := range page {
		page[i].Cursor = newCursor(from+int64(i), page[i].Entry)
	}
	if next != "" && len(page) > 0 {
		next = page[len(page)-1].Cursor
	}
	return page, next, err
}

// deadPositionAfter returns how many dead letters precede those after a cursor.
func (q *Queue) deadPositionAfter(ctx context.Context, after string) (int64, error) {
	position, entry, err := readCursor(after)
	if err != nil || entry == "" {
		return position, err
	}
	place, numbered := placeOf(entry)
	for upto, step := position+1, int64(1); upto > 0; step = searchStep {
		from := max(0, upto-step)
		page, err := q.deadRange(ctx, from, upto)
		if err != nil {
			return 0, err
		}
		for i := len(page) - 1; i >= 0; i-- {
			other, ok := placeOf(page[i].Entry)
			if page[i].Entry == entry || numbered && ok && other < place {
				return from + int64(i) + 1, nil
			}
		}
		upto = from
	}
	if numbered {
		return 0, nil
	}
	return position, nil
}

// deadRange reads the dead letters from one position up to another.
func (q *Queue) deadRange(ctx context.Context, from, upto int64) (found []wakebelltype.QueueDeadLetter, err error) {
	for next := strconv.FormatInt(from, 10); next != "" && int64(len(found)) < upto-from; {
		var page []wakebelltype.QueueDeadLetter
		if page, next, err = q.DeadLetters(ctx, "", next, int(upto-from)-len(found)); err != nil {
			return nil, err
		}
		found = append(found, page...)
	}
	return found, nil
}

// placeOf returns the place of a dead letter that Wakebell wrote; places grow. The
// entry of one that Python wrote is a hash of its payload.
func placeOf(entry string) (uint64, bool) {
	const hashDigits = 40
	place, err := strconv.ParseUint(entry, 10, 64)
	return place, err == nil && len(entry) < hashDigits
}
