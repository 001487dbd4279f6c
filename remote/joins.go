package remote

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

var _ wakebell.Joiner = (*Client)(nil)

// Join does what wakebell.Client.Join does.
func (c *Client) Join(ctx context.Context, topic, id string) (wakebelltype.Join, error) {
	answer, err := call[*messages.GetJoinResponse](ctx, c, &messages.GetJoinRequest{Topic: topic, Id: id})
	return convert.JoinOf(answer.GetJoin()), err
}

// Parts does what wakebell.Client.Parts does. It needs the right to read the topics of all
// parts.
func (c *Client) Parts(ctx context.Context, topic, id string, p wakebelltype.Page) iter.Seq2[wakebell.PartEnd, error] {
	return c.parts(ctx, &messages.ListPartsRequest{Topic: topic, Id: id}, p)
}

// PartsOf does for a lease what wakebell.Timer.Parts does for a timer. It needs the rights of
// Parts.
func (c *Client) PartsOf(ctx context.Context, l *messages.Lease) iter.Seq2[wakebell.PartEnd, error] {
	name, found := l.GetHeaders()[wakebelltype.JoinHeader]
	if !found {
		return func(yield func(wakebell.PartEnd, error) bool) {
			yield(wakebell.PartEnd{}, fmt.Errorf("%w: a join of %q on %q", wakebell.ErrNotFound, l.GetId(), l.GetTopic()))
		}
	}
	return c.parts(ctx, &messages.ListPartsRequest{Topic: l.GetTopic(), Id: l.GetId(), JoinName: name}, wakebelltype.Page{})
}

func (c *Client) parts(ctx context.Context, of *messages.ListPartsRequest, p wakebelltype.Page) iter.Seq2[wakebell.PartEnd, error] {
	return paging.All(p, func(after string, limit int) (page []wakebell.PartEnd, next string, err error) {
		answer, err := call[*messages.ListPartsResponse](ctx, c, &messages.ListPartsRequest{
			Topic: of.GetTopic(), Id: of.GetId(), JoinName: of.GetJoinName(), Running: of.GetRunning(), After: after, Limit: convert.Count(limit),
		})
		for _, m := range answer.GetParts() {
			page = append(page, wakebell.PartEnd{PartEnd: convert.PartEndOf(m), Result: wire.ResultOf(m.GetResult())})
		}
		return page, answer.GetNext(), err
	})
}

// AddParts does what wakebell.Client.AddParts does. Many parts are sent in several requests.
// It needs the rights to schedule and to read on their topics.
func (c *Client) AddParts(ctx context.Context, topic, id string, parts ...wakebelltype.Part) error {
	return c.addParts(ctx, &messages.TimerPart{Topic: topic, Id: id}, convert.PartMessages(parts))
}

func (c *Client) addParts(ctx context.Context, to *messages.TimerPart, parts []*messages.TimerPart) error {
	for len(parts) > 0 {
		n, size := 0, 0
		for n < min(len(parts), maxRequestParts) && size < c.cfg.MaxMessage/2 {
			size += partSize(parts[n])
			n++
		}
		if _, err := call[*messages.AddPartsResponse](ctx, c, &messages.AddPartsRequest{Topic: to.GetTopic(), Id: to.GetId(), Parts: parts[:n]}); err != nil {
			return err
		}
		parts = parts[n:]
	}
	return nil
}

// CloseJoin does what wakebell.Client.CloseJoin does.
func (c *Client) CloseJoin(ctx context.Context, topic, id string) error {
	_, err := call[*messages.CloseJoinResponse](ctx, c, &messages.CloseJoinRequest{Topic: topic, Id: id})
	return err
}

// CancelJoin does what wakebell.Client.CancelJoin does. It needs the rights to read, and to
// schedule on, the topics of all parts that have not ended: without them nothing is cancelled.
// If the link breaks, the count may be too low.
func (c *Client) CancelJoin(ctx context.Context, topic, id string) (int64, error) {
	request := &messages.CancelJoinRequest{Topic: topic, Id: id}
	for part, err := range c.parts(ctx, &messages.ListPartsRequest{Topic: topic, Id: id, Running: true}, wakebelltype.Page{}) {
		if err != nil {
			return 0, err
		}
		if part.Topic != topic && !slices.Contains(request.Topics, part.Topic) {
			request.Topics = append(request.Topics, part.Topic)
		}
	}
	answer, err := call[*messages.CancelJoinResponse](ctx, c, request)
	return answer.GetParts(), err
}

// maxRequestParts bounds the parts of joins in one request of a Client.
const maxRequestParts = 5000

// partSize is an upper bound of what a part takes in a request, in bytes.
func partSize(p *messages.TimerPart) int { return len(p.GetTopic()) + len(p.GetId()) + 16 }

// partsSize is that of all parts of a timer.
func partsSize(t *messages.ScheduleRequest) (size, n int) {
	for _, list := range [][]*messages.TimerPart{t.GetAfter(), t.GetPartOf()} {
		for _, p := range list {
			size += partSize(p)
		}
		n += len(list)
	}
	return size + len(t.GetJoinName()), n
}

// joinSteps schedules the timers of a call with joins that do not fit into one request: the
// timers of open joins, then the others as their parts, then it adds the other parts and closes
// the joins. All of it may be repeated.
type joinSteps struct {
	timers      []*messages.ScheduleRequest
	first, rest []int // indexes of timers with joins, and of the others
	late        map[int][]*messages.TimerPart
	closes      []int
}

// stepsOf returns how to schedule timers, and changes them.
func stepsOf(timers []*messages.ScheduleRequest) joinSteps {
	s := joinSteps{timers: timers, late: map[int][]*messages.TimerPart{}}
	at := make(map[wakebelltype.Part]int, len(timers))
	for i, t := range timers {
		at[wakebelltype.Part{Topic: t.GetTopic(), ID: t.GetId()}] = i
		if t.GetJoinName() == "" {
			s.rest = append(s.rest, i)
			continue
		}
		s.first = append(s.first, i)
		if !t.GetOpen() {
			s.closes = append(s.closes, i)
		}
		t.Open = true
	}
	joined := func(p *messages.TimerPart) (int, bool) {
		i, together := at[wakebelltype.Part{Topic: p.GetTopic(), ID: p.GetId()}]
		return i, together
	}
	for _, i := range s.first {
		t := timers[i]
		own := &messages.TimerPart{Topic: t.GetTopic(), Id: t.GetId()}
		for _, p := range t.GetAfter() {
			if j, together := joined(p); together && timers[j].GetJoinName() == "" {
				timers[j].PartOf = append(timers[j].PartOf, own)
			} else {
				s.late[i] = append(s.late[i], p)
			}
		}
		t.After = nil
		t.PartOf = slices.DeleteFunc(t.GetPartOf(), func(p *messages.TimerPart) bool {
			j, together := joined(p)
			if together = together && timers[j].GetJoinName() != ""; together {
				s.late[j] = append(s.late[j], own)
			}
			return together
		})
	}
	return s
}

func (s *joinSteps) of(indexes []int) []*messages.ScheduleRequest {
	some := make([]*messages.ScheduleRequest, len(indexes))
	for k, i := range indexes {
		some[k] = s.timers[i]
	}
	return some
}

// scheduleInSteps schedules timers of which some have to do with joins.
func (c *Client) scheduleInSteps(ctx context.Context, timers []*messages.ScheduleRequest, span map[string]string) ([]wakebelltype.Scheduled, error) {
	s := stepsOf(timers)
	names := make([]*messages.TimerPart, len(timers)) // a request must not be used after it was sent
	for i, t := range timers {
		names[i] = &messages.TimerPart{Topic: t.GetTopic(), Id: t.GetId()}
	}
	stored := make([]wakebelltype.Scheduled, len(timers))
	sent := 0
	for _, indexes := range [][]int{s.first, s.rest} {
		done, err := c.inRequests(ctx, s.of(indexes), span, sent)
		if err != nil {
			return nil, err
		}
		for k, i := range indexes {
			stored[i] = done[k]
		}
		sent += len(indexes)
	}
	for _, i := range s.first {
		if err := c.addParts(ctx, names[i], s.late[i]); err != nil {
			return nil, err
		}
	}
	for _, i := range s.closes {
		if err := c.CloseJoin(ctx, names[i].GetTopic(), names[i].GetId()); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// inSteps reports whether timers have to do with joins, and do not fit into one request.
func (c *Client) inSteps(timers []*messages.ScheduleRequest) bool {
	parts, size, joined := 0, 0, false
	for _, t := range timers {
		bytes, n := partsSize(t)
		parts, size = parts+n, size+bytes
		joined = joined || bytes > 0
	}
	return joined && (parts > maxRequestParts || size > c.cfg.MaxMessage/2 || c.fitting(timers) < len(timers))
}
