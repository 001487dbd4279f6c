package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/queuemessage"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// unleasedAt is the position of the first message without a lease. Those before it are
// places among the leases, whose number changes.
const unleasedAt = int64(1) << 52

// messageAt is a message at a position of a listing.
type messageAt struct {
	position int64
	value    string // as it is stored
	message  wakebelltype.QueueMessage
}

// read reads a page of a listing from a position.
func (q *Queue) read(ctx context.Context, running bool, from int64, limit int) (found []messageAt, err error) {
	switch {
	case from < 0 || limit < 1 || limit > layout.MaxPage:
		return nil, fmt.Errorf("%w: page: %d from %d, want 1 to %d from 0", wakebelltype.ErrInvalid, limit, from, layout.MaxPage)
	case !running:
		found, err = q.waiting(ctx, from, limit)
	case from < unleasedAt:
		if found, err = q.leased(ctx, from, limit); err == nil && len(found) < limit {
			found, err = q.appendUnleased(ctx, found, from, limit)
		}
	default:
		found, err = q.unleased(ctx, from, 0, limit)
	}
	if err == nil && len(found) > 0 {
		err = q.describe(ctx, running, found)
	}
	return found, scripts.Wrap(ctx, nil, err)
}

func (q *Queue) waiting(ctx context.Context, from int64, limit int) (found []messageAt, err error) {
	values, err := q.timers.RDB.LRange(ctx, q.keys.pending, -from-int64(limit), -from-1).Result()
	for i, value := range slices.Backward(values) { // the list is claimed from its end
		found = append(found, messageAt{position: from + int64(len(values)-1-i), value: value})
	}
	return found, err
}

func (q *Queue) leased(ctx context.Context, from int64, limit int) (found []messageAt, err error) {
	deadlines, err := q.timers.RDB.ZRangeWithScores(ctx, q.keys.deadlines, from, from+int64(limit)-1).Result()
	for i, z := range deadlines {
		value, _ := z.Member.(string)
		found = append(found, messageAt{
			position: from + int64(i), value: value,
			message: wakebelltype.QueueMessage{Deadline: scripts.Instant(z.Score / 1e3)},
		})
	}
	return found, err
}

// appendUnleased continues a page of leases, which began at from, with messages without a
// lease, if there are any.
func (q *Queue) appendUnleased(ctx context.Context, page []messageAt, from int64, limit int) ([]messageAt, error) {
	pipe := q.timers.RDB.Pipeline()
	all, gone, leases := pipe.LLen(ctx, q.keys.processing), pipe.SCard(ctx, q.keys.gone), pipe.ZCard(ctx, q.keys.deadlines)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if all.Val()-gone.Val() <= leases.Val() { // the list may be long: it is only searched if there is something to find
		return page, nil
	}
	skip := int64(0)
	if len(page) == 0 {
		skip = max(0, from-leases.Val())
	}
	found, err := q.unleased(ctx, unleasedAt, skip, limit-len(page))
	return append(page, found...), err
}

// unleased reads messages without a lease, except the first ones of a number. Positions
// count from the end of the list, because messages are added at its head.
func (q *Queue) unleased(ctx context.Context, from, skip int64, limit int) (found []messageAt, err error) {
	for len(found) < limit {
		at := from - unleasedAt
		values, err := q.timers.RDB.LRange(ctx, q.keys.processing, -at-searchStep, -at-1).Result()
		if err != nil || len(values) == 0 {
			return found, err
		}
		notes := make([]any, len(values))
		for i, value := range values {
			notes[i] = noted(value)
		}
		pipe := q.timers.RDB.Pipeline()
		// An absent score differs from every lease, because leases end after 1970: it reads as 0.
		leases, gone := pipe.ZMScore(ctx, q.keys.deadlines, values...), pipe.SMIsMember(ctx, q.keys.gone, notes...)
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		for i, value := range slices.Backward(values) {
			position := from
			from++
			switch {
			case leases.Val()[i] != 0, gone.Val()[i]:
			case skip > 0:
				skip--
			case len(found) < limit:
				found = append(found, messageAt{position: position, value: value})
			}
		}
	}
	return found, nil
}

// noted names a message in the set of those that are gone, as noted of lua/shared.lua does.
func noted(value string) string {
	if strings.HasPrefix(value, queuemessage.Prefix) {
		return value
	}
	return "\x01" + value
}

// describe decodes the messages of a page.
func (q *Queue) describe(ctx context.Context, running bool, page []messageAt) error {
	values := make([]string, len(page))
	for i := range page {
		values[i] = page[i].value
	}
	counts, err := q.timers.RDB.HMGet(ctx, q.keys.counts, values...).Result()
	if err != nil {
		return err
	}
	for i := range page {
		m := &page[i].message
		m.Running = running
		decoded, err := queuemessage.Decode(page[i].value)
		if m.ID, m.Payload = decoded.ID, decoded.Payload; err != nil {
			m.Fault, m.Payload = err.Error(), []byte(page[i].value)
		}
		if text, ok := counts[i].(string); ok {
			m.Deliveries, _ = strconv.Atoi(text)
		}
	}
	return nil
}
