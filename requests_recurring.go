package wakebell

import (
	"cmp"
	"context"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/paging"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// recurring carries out requests about recurring schedules.
func (r requests) recurring(ctx context.Context, request messages.Request) (messages.Answer, error) {
	schedules := r.client.schedules
	switch m := request.(type) {
	case *messages.PutRecurringRequest:
		all := make([]recurring.Schedule, len(m.GetSchedules()))
		for i, s := range m.GetSchedules() {
			if s == nil {
				return nil, argument.Invalid("schedules", "number %d is nil", i)
			}
			all[i] = convert.Recurring(s)
		}
		ctx = r.client.on.Edge.Trace(ctx, m.GetTrace())
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
			return nil, argument.Invalid("key", "%d bytes, at most %d", len(m.GetKey()), maxKey)
		}
		ctx = r.client.on.Edge.Trace(ctx, m.GetTrace())
		run, err := schedules.RunNow(messages.WithOnce(ctx, m.GetKey()), m.GetName())
		return &messages.RunRecurringResponse{
			Request: m.GetRequest(), Name: text.Valid(run.Name), Due: convert.Timestamp(run.Due), Fired: convert.Timestamp(run.Fired), Run: run.Number,
		}, err
	case *messages.GetRecurringRequest:
		state, err := schedules.Get(ctx, m.GetName())
		return &messages.GetRecurringResponse{Request: m.GetRequest(), Schedule: convert.RecurringStateMessage(state)}, err
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
		return nil, argument.Invalid("message", "the gateway does not accept %T", m)
	}
}

func (r requests) listRecurring(ctx context.Context, m *messages.ListRecurringRequest) (messages.Answer, error) {
	if m.GetLimit() > paging.MaxPage {
		return nil, argument.Invalid("limit", "%d, want 1 to %d", m.GetLimit(), paging.MaxPage)
	}
	limit := int(cmp.Or(m.GetLimit(), recurringPage))
	answer := &messages.ListRecurringResponse{Request: m.GetRequest()}
	for state, err := range r.client.schedules.List(ctx, wakebelltype.Page{After: m.GetAfter()}) {
		if err != nil {
			return nil, err
		}
		answer.Schedules = append(answer.Schedules, convert.RecurringStateMessage(state))
		// A name that a message cannot have cannot be the cursor of the next page.
		if len(answer.GetSchedules()) >= limit && utf8.ValidString(state.Cursor) {
			answer.Next = state.Cursor
			break
		}
	}
	return answer, nil
}

// recurringPage is how many schedules a page has by default.
const recurringPage = 100
