package wakebell

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/gateway"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/wire"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
)

// recurring carries out requests about recurring schedules.
func (r requests) recurring(ctx context.Context, request messages.Request) (messages.Answer, error) {
	schedules := r.client.schedules
	switch m := request.(type) {
	case *messages.PutRecurringRequest:
		all := make([]recurring.Schedule, len(m.GetSchedules()))
		for i, s := range m.GetSchedules() {
			if s == nil {
				return nil, invalid("schedules", "number %d is nil", i)
			}
			all[i] = gateway.Recurring(s)
		}
		return &messages.PutRecurringResponse{Request: m.GetRequest()}, schedules.Put(ctx, all...)
	case *messages.DeleteRecurringRequest:
		return &messages.DeleteRecurringResponse{Request: m.GetRequest()}, schedules.Delete(ctx, m.GetName())
	case *messages.EnableRecurringRequest:
		enable := schedules.Pause
		if m.GetEnabled() {
			enable = schedules.Resume
		}
		return &messages.EnableRecurringResponse{Request: m.GetRequest()}, enable(ctx, m.GetName())
	case *messages.RunRecurringRequest:
		if len(m.GetKey()) > maxKey {
			return nil, invalid("key", "%d bytes, at most %d", len(m.GetKey()), maxKey)
		}
		run, err := schedules.RunNow(messages.WithOnce(ctx, m.GetKey()), m.GetName())
		return &messages.RunRecurringResponse{
			Request: m.GetRequest(), Name: text.Valid(run.Name), Due: wire.Timestamp(run.Due), Fired: wire.Timestamp(run.Fired), Run: run.Number,
		}, err
	case *messages.GetRecurringRequest:
		state, err := schedules.Get(ctx, m.GetName())
		return &messages.GetRecurringResponse{Request: m.GetRequest(), Schedule: gateway.RecurringStateMessage(state)}, err
	case *messages.ListRecurringRequest:
		return r.listRecurring(ctx, m)
	case *messages.PreviewRecurringRequest:
		instants, err := schedules.Preview(ctx, m.GetName(), int(min(m.GetCount(), math.MaxInt32)))
		answer := &messages.PreviewRecurringResponse{Request: m.GetRequest()}
		for _, at := range instants {
			answer.Instants = append(answer.Instants, timestamppb.New(at))
		}
		return answer, err
	default:
		return nil, invalid("message", "the gateway does not accept %T", m)
	}
}

func (r requests) listRecurring(ctx context.Context, m *messages.ListRecurringRequest) (messages.Answer, error) {
	var cursor uint64
	if m.GetAfter() != "" {
		var err error
		if cursor, err = strconv.ParseUint(m.GetAfter(), 10, 64); err != nil {
			return nil, invalid("after", "%s is not the next of an earlier answer", quoted(m.GetAfter()))
		}
	}
	members, next, err := schedulestore.New(r.client.store).Names(ctx, cursor)
	if err != nil {
		return nil, err
	}
	answer := &messages.ListRecurringResponse{Request: m.GetRequest()}
	for _, member := range members {
		name, ok := strings.CutPrefix(member.Name, r.client.prefix)
		if !ok {
			continue // a schedule with another prefix
		}
		state, err := r.client.schedules.Get(ctx, name)
		if errors.Is(err, recurring.ErrNotFound) {
			continue // it was deleted after Names
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
