package wakebell

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ScheduleMessage converts a draft to a request for the gateway. Its error is
// that of the draft; the gateway checks the size.
func ScheduleMessage(d Draft) (*messages.ScheduleRequest, error) {
	if d.err != nil {
		return nil, d.err
	}
	m := &messages.ScheduleRequest{
		Topic:         d.topic,
		Id:            d.id,
		Body:          d.env.Body,
		ContentType:   d.env.ContentType,
		CorrelationId: d.env.CorrelationID,
		Headers:       Headers(d.env.Headers).Map(),
		TimerKey:      []byte(d.key),
	}
	switch {
	case d.policy == wakebelltype.PolicyDebounce:
		debounce := &messages.Debounce{Delay: durationpb.New(d.in)}
		if d.maxDelay > 0 {
			debounce.Limit = durationpb.New(d.maxDelay)
		}
		m.When = &messages.ScheduleRequest_Debounce{Debounce: debounce}
	case !d.at.IsZero():
		m.When = &messages.ScheduleRequest_At{At: timestamppb.New(d.at)}
	case d.planned:
		m.When = &messages.ScheduleRequest_In{In: durationpb.New(d.in)}
	}
	if d.policy == wakebelltype.PolicyKeep || d.policy == wakebelltype.PolicyEarliest {
		m.IfExists = messages.Policy(d.policy) + messages.Policy_POLICY_REPLACE
	}
	if d.once != 0 {
		m.Once = durationpb.New(d.once)
	}
	return m, nil
}

// draftOf converts a request to a draft. If the request is invalid, scheduling
// the draft returns the error.
func draftOf(m *messages.ScheduleRequest, key *timers.Key) Draft {
	var opts []ScheduleOption
	switch {
	case m.GetId() != "":
		opts = append(opts, ID(m.GetId()))
	case key != nil: // a repeated request needs the same id
		opts = append(opts, ID(key.ID()))
	}
	opts = append(opts, ContentType(m.GetContentType()), CorrelationID(m.GetCorrelationId()))
	for _, key := range slices.Sorted(maps.Keys(m.GetHeaders())) {
		opts = append(opts, Header(key, m.GetHeaders()[key]))
	}
	if len(m.GetTimerKey()) > 0 {
		opts = append(opts, Key(string(m.GetTimerKey())))
	}
	switch m.GetIfExists() {
	case messages.Policy_POLICY_UNSPECIFIED:
	case messages.Policy_POLICY_REPLACE, messages.Policy_POLICY_KEEP, messages.Policy_POLICY_EARLIEST:
		opts = append(opts, IfExists(wakebelltype.Policy(m.GetIfExists()-messages.Policy_POLICY_REPLACE))) // one of three
	default:
		opts = append(opts, wrong(argument.Invalid("if_exists", "unknown policy %d", m.GetIfExists())))
	}
	switch when := m.GetWhen().(type) {
	case nil:
	case *messages.ScheduleRequest_At:
		opts = append(opts, at(when.At))
	case *messages.ScheduleRequest_In:
		opts = append(opts, in(when.In))
	case *messages.ScheduleRequest_Debounce:
		opts = append(opts, debounce(when.Debounce))
	}
	if m.GetOnce() != nil {
		opts = append(opts, spanning("once", m.GetOnce(), Once))
	}
	if m.GetId() == "" { // the id of the idempotency key is none of the caller's
		opts = append(opts, (*Draft).needsID)
	}
	return NewTopic[[]byte](m.GetTopic()).Draft(m.GetBody(), opts...)
}

// wrong returns an option that fails with err.
func wrong(err error) ScheduleOption { return func(*Draft) error { return err } }

func at(t *timestamppb.Timestamp) ScheduleOption {
	when, err := convert.Instant("at", t)
	if err != nil {
		return wrong(err)
	}
	return At(when)
}

func in(d *durationpb.Duration) ScheduleOption { return spanning("in", d, In) }

func debounce(m *messages.Debounce) ScheduleOption {
	return spanning("debounce.delay", m.GetDelay(), func(delay time.Duration) ScheduleOption {
		if m.GetLimit() == nil {
			return Debounce(delay, 0)
		}
		return spanning("debounce.limit", m.GetLimit(), func(limit time.Duration) ScheduleOption {
			return Debounce(delay, limit)
		})
	})
}

// spanning returns the option for a duration, if it is valid.
func spanning(field string, d *durationpb.Duration, option func(time.Duration) ScheduleOption) ScheduleOption {
	span := d.AsDuration()
	switch {
	case d == nil:
		return wrong(argument.Invalid(field, "absent"))
	case d.CheckValid() != nil, durationpb.New(span).GetSeconds() != d.GetSeconds():
		return wrong(argument.Invalid(field, "%d s and %d ns, want a duration of at most 292 years", d.GetSeconds(), d.GetNanos()))
	}
	return option(span)
}
