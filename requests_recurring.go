package wakebell

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/gateway"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// recurring carries out what the gateway is asked about recurring schedules.
func (r requests) recurring(ctx context.Context, request messages.Request) (messages.Answer, error) {
	schedules, changed := r.client.schedules, &messages.RecurringChanged{Request: request.GetRequest()}
	switch m := request.(type) {
	case *messages.PutRecurring:
		all := make([]recurring.Schedule, len(m.GetSchedules()))
		for i, s := range m.GetSchedules() {
			if s == nil {
				return nil, invalid("schedules", "number %d is nil", i)
			}
			all[i] = gateway.Recurring(s)
		}
		return changed, schedules.Put(ctx, all...)
	case *messages.DeleteRecurring:
		return changed, schedules.Delete(ctx, m.GetName())
	case *messages.EnableRecurring:
		enable := schedules.Pause
		if m.GetEnabled() {
			enable = schedules.Resume
		}
		return changed, enable(ctx, m.GetName())
	case *messages.RunRecurring:
		if len(m.GetKey()) > maxKey {
			return nil, invalid("key", "%d bytes, at most %d", len(m.GetKey()), maxKey)
		}
		run, err := schedules.RunNow(messages.WithOnce(ctx, m.GetKey()), m.GetName())
		return &messages.RecurringRun{
			Request: m.GetRequest(), Name: utf8(run.Name), Due: timestamp(run.Due), Fired: timestamp(run.Fired), Run: run.Number,
		}, err
	case *messages.GetRecurring:
		state, err := schedules.Get(ctx, m.GetName())
		answer := gateway.RecurringStateMessage(state)
		answer.Request = m.GetRequest()
		return answer, err
	case *messages.ListRecurring:
		return r.listRecurring(ctx, m)
	case *messages.PreviewRecurring:
		instants, err := schedules.Preview(ctx, m.GetName(), int(min(m.GetCount(), math.MaxInt32)))
		answer := &messages.RecurringInstants{Request: m.GetRequest()}
		for _, at := range instants {
			answer.Instants = append(answer.Instants, timestamppb.New(at))
		}
		return answer, err
	default:
		return nil, invalid("message", "the gateway takes no %T", m)
	}
}

func (r requests) listRecurring(ctx context.Context, m *messages.ListRecurring) (messages.Answer, error) {
	var cursor uint64
	if m.GetAfter() != "" {
		var err error
		if cursor, err = strconv.ParseUint(m.GetAfter(), 10, 64); err != nil {
			return nil, invalid("after", "%s is not of a page before", clip(m.GetAfter()))
		}
	}
	members, next, err := r.client.store.Beat().Names(ctx, cursor)
	if err != nil {
		return nil, err
	}
	answer := &messages.RecurringPage{Request: m.GetRequest()}
	for _, member := range members {
		name, ok := strings.CutPrefix(member.Name, r.client.prefix)
		if !ok {
			continue // of another prefix
		}
		state, err := r.client.schedules.Get(ctx, name)
		if errors.Is(err, recurring.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		answer.Schedules = append(answer.Schedules, gateway.RecurringStateMessage(state))
	}
	if next != 0 {
		answer.Next = strconv.FormatUint(next, 10)
	}
	return answer, nil
}
