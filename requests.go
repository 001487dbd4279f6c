package wakebell

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// requests carries out the requests of the gateway. Each goes through the same
// checks as a call of the Client, because the sender is not trusted.
type requests struct {
	client *Client
	gates  *gate.Gates
}

// Do implements actors.Timers.
func (r requests) Do(ctx context.Context, request messages.Request) messages.Answer {
	answer, err := r.answer(ctx, request)
	if err != nil {
		failed := convert.ErrorMessage(err)
		failed.Request = request.GetRequest()
		return failed
	}
	return answer
}

func (r requests) answer(ctx context.Context, request messages.Request) (messages.Answer, error) {
	switch m := request.(type) {
	case *messages.ScheduleRequest:
		return r.schedule(ctx, m)
	case *messages.ScheduleBatchRequest:
		return r.scheduleBatch(ctx, m)
	case *messages.CancelRequest:
		return r.cancel(ctx, m)
	case *messages.GetTimerRequest:
		return r.get(ctx, m)
	case *messages.ListTimersRequest:
		return r.list(ctx, m)
	case *messages.RescheduleRequest:
		return r.reschedule(ctx, m)
	case *messages.RunNowRequest:
		return r.runNow(ctx, m)
	case *messages.GetTopicStatsRequest:
		return r.stats(ctx, m)
	case *messages.GetJoinRequest:
		join, err := r.client.Join(ctx, m.GetTopic(), m.GetId())
		return &messages.GetJoinResponse{Request: m.GetRequest(), Join: convert.JoinMessage(join)}, err
	case *messages.ListPartsRequest:
		return r.listParts(ctx, m)
	case *messages.AddPartsRequest:
		return &messages.AddPartsResponse{Request: m.GetRequest()}, r.client.AddParts(ctx, m.GetTopic(), m.GetId(), convert.Parts(m.GetParts())...)
	case *messages.CloseJoinRequest:
		return &messages.CloseJoinResponse{Request: m.GetRequest()}, r.client.CloseJoin(ctx, m.GetTopic(), m.GetId())
	case *messages.CancelJoinRequest:
		return r.cancelJoin(ctx, m)
	case *messages.PublishRequest:
		return r.publish(ctx, m)
	case *messages.GuardTurnRequest:
		return &messages.GuardTurnResponse{Request: m.GetRequest()}, r.gates.Guard(ctx, m.GetGate(), m.GetResource(), m.GetFence())
	default:
		return r.recurring(ctx, request)
	}
}

func (r requests) schedule(ctx context.Context, m *messages.ScheduleRequest) (messages.Answer, error) {
	key, err := keyOf(ctx, m.GetKey(), m)
	if err != nil {
		return nil, err
	}
	stored, err := r.write(ctx, m.GetTrace(), key, draftOf(m, key))
	if err != nil {
		return nil, err
	}
	return scheduledMessage(m.GetRequest(), stored[0]), nil
}

func (r requests) scheduleBatch(ctx context.Context, m *messages.ScheduleBatchRequest) (messages.Answer, error) {
	key, err := keyOf(ctx, m.GetKey(), m)
	if err != nil {
		return nil, err
	}
	drafts := make([]Draft, len(m.GetTimers()))
	for i, s := range m.GetTimers() {
		if s == nil {
			return nil, argument.Invalid("timers", "number %d is nil", i)
		}
		drafts[i] = draftOf(s, key.Number(i))
	}
	stored, err := r.write(ctx, m.GetTrace(), key, drafts...)
	if err != nil {
		return nil, err
	}
	answer := &messages.ScheduleBatchResponse{Request: m.GetRequest()}
	for i, s := range stored {
		answer.Timers = append(answer.Timers, scheduledMessage(m.GetTimers()[i].GetRequest(), s))
	}
	return answer, nil
}

// write is Client.Schedule with the sender's span and an idempotency key; nil means
// none.
func (r requests) write(ctx context.Context, trace map[string]string, key *timers.Key, drafts ...Draft) ([]wakebelltype.Scheduled, error) {
	ctx = r.client.on.Edge.Trace(ctx, trace)
	joined, parts := false, 0
	for i := range drafts {
		if j := drafts[i].join; j != nil {
			joined, parts = true, parts+len(j.parts)+len(j.of)
		}
	}
	if parts > joins.MaxParts {
		return nil, argument.Invalid("after, part_of", "%d in a request, at most %d", parts, joins.MaxParts)
	}
	if joined {
		return r.client.scheduleJoined(ctx, key, drafts)
	}
	return r.client.send(ctx, key, drafts)
}

func (r requests) cancel(ctx context.Context, m *messages.CancelRequest) (messages.Answer, error) {
	for _, id := range m.GetIds() {
		if err := namesTimer(id); err != nil {
			return nil, err
		}
	}
	key, err := keyOf(ctx, m.GetKey(), m)
	if err != nil {
		return nil, err
	}
	full, err := r.client.fullName(m.GetTopic())
	if err != nil {
		return nil, err
	}
	found, err := r.client.store.CancelKeyed(ctx, full, key, m.GetIds()...)
	if err != nil {
		return nil, err
	}
	answer := &messages.CancelResponse{Request: m.GetRequest()}
	for _, p := range found {
		answer.Found = append(answer.Found, messages.Presence(p))
	}
	return answer, nil
}

func (r requests) get(ctx context.Context, m *messages.GetTimerRequest) (messages.Answer, error) {
	if err := namesTimer(m.GetId()); err != nil {
		return nil, err
	}
	info, content, err := r.client.Get(ctx, m.GetTopic(), m.GetId())
	if err != nil && (!m.GetWithoutContent() || !errors.Is(err, ErrTooLarge)) {
		return nil, err
	}
	timer := timerMessage(info)
	if !m.GetWithoutContent() {
		timer.Content = contentMessage(content)
	}
	return &messages.GetTimerResponse{Request: m.GetRequest(), Timer: timer}, nil
}

func contentMessage(c Content) *messages.Content {
	return convert.ContentMessage(envelope.Envelope{
		CorrelationID: c.CorrelationID, ContentType: c.ContentType, ReplyTo: c.ReplyTo, Headers: c.Headers, Body: c.Body,
	})
}

func (r requests) list(ctx context.Context, m *messages.ListTimersRequest) (messages.Answer, error) {
	full, err := r.client.fullName(m.GetTopic())
	if err != nil {
		return nil, err
	}
	filter := timers.Filter{Leased: m.GetRunning(), After: timers.Cursor(m.GetAfter()), Limit: int(m.GetLimit())}
	if m.GetDueBefore() != nil {
		if filter.DueBefore, err = convert.Instant("due_before", m.GetDueBefore()); err != nil {
			return nil, err
		}
	}
	timers, next, err := r.client.store.List(ctx, full, filter)
	if err != nil {
		return nil, err
	}
	answer := &messages.ListTimersResponse{Request: m.GetRequest(), Next: string(next)}
	for _, t := range timers {
		answer.Timers = append(answer.Timers, timerMessage(infoOf(full, t)))
	}
	return answer, nil
}

func (r requests) reschedule(ctx context.Context, m *messages.RescheduleRequest) (messages.Answer, error) {
	var when ScheduleOption
	switch w := m.GetWhen().(type) {
	case *messages.RescheduleRequest_At:
		when = at(w.At)
	case *messages.RescheduleRequest_In:
		when = in(w.In)
	default:
		return nil, argument.Invalid("when", "want at or in")
	}
	moved, err := r.client.Reschedule(ctx, m.GetTopic(), m.GetId(), when)
	if err != nil {
		return nil, err
	}
	return &messages.RescheduleResponse{
		Request: m.GetRequest(), Id: moved.ID, Due: convert.Timestamp(moved.Due),
		Outcome: messages.Outcome(moved.Outcome), Found: convert.Timestamp(moved.Found),
	}, nil
}

func (r requests) runNow(ctx context.Context, m *messages.RunNowRequest) (messages.Answer, error) {
	found, err := r.client.RunNow(ctx, m.GetTopic(), m.GetId())
	if err != nil {
		return nil, err
	}
	return &messages.RunNowResponse{Request: m.GetRequest(), Found: messages.Presence(found)}, nil
}

func (r requests) stats(ctx context.Context, m *messages.GetTopicStatsRequest) (messages.Answer, error) {
	st, err := r.client.Stats(ctx, m.GetTopic())
	if err != nil {
		return nil, err
	}
	return &messages.GetTopicStatsResponse{Request: m.GetRequest(), Stats: convert.StatsMessage(st)}, nil
}

// maxKey bounds an idempotency key, in bytes.
const maxKey = 256

// keyOf returns the idempotency key of a request, or nil. The fields that differ
// when a request is repeated are not part of it.
func keyOf(ctx context.Context, key string, m proto.Message) (*timers.Key, error) {
	if key == "" {
		return nil, nil
	}
	if len(key) > maxKey {
		return nil, argument.Invalid("key", "%d bytes, at most %d", len(key), maxKey)
	}
	again := proto.Clone(m)
	for _, name := range []protoreflect.Name{"request", "timeout", "trace"} {
		if field := again.ProtoReflect().Descriptor().Fields().ByName(name); field != nil {
			again.ProtoReflect().Clear(field)
		}
	}
	forgetEncoded(again)
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(again)
	if err != nil {
		return nil, argument.Invalid("message", "%v", err)
	}
	kind := string(proto.MessageName(m))
	return timers.NewKey(messages.Principal(ctx), key, append([]byte(kind+"\x00"), content...)), nil
}

// forgetEncoded clears what the sender makes anew each time.
func forgetEncoded(m proto.Message) {
	switch m := m.(type) {
	case *messages.ScheduleRequest:
		m.JoinName = ""
		if m.GetEncoded() {
			m.Body, m.ContentType, m.Headers = nil, "", nil
		}
	case *messages.ScheduleBatchRequest:
		for _, s := range m.GetTimers() {
			forgetEncoded(s)
		}
	}
}

// namesTimer checks that a timer can have this id.
func namesTimer(id string) error {
	switch {
	case id == "":
		return argument.Invalid("id", "empty")
	case len(id) > wakebelltype.MaxName:
		return argument.Invalid("id", "%d bytes, at most %d", len(id), wakebelltype.MaxName)
	}
	return nil
}

// The values of outcomes and presences equal those of the messages, so they are
// converted by type.

func scheduledMessage(request uint64, s wakebelltype.Scheduled) *messages.ScheduleResponse {
	return &messages.ScheduleResponse{
		Request: request, Id: s.ID, Due: convert.Timestamp(s.Due),
		Outcome: messages.Outcome(s.Outcome), Found: convert.Timestamp(s.Found),
	}
}

var states = map[State]messages.State{
	StatePending:  messages.State_STATE_PENDING,
	StateRetrying: messages.State_STATE_RETRYING,
	StateRunning:  messages.State_STATE_RUNNING,
	StateNever:    messages.State_STATE_NEVER,
	StateParked:   messages.State_STATE_PARKED,
}

func timerMessage(i Info) *messages.Timer {
	return &messages.Timer{
		Id: text.Valid(i.ID), State: states[i.State],
		Due: convert.Timestamp(i.Due), Activation: convert.Timestamp(i.Activation),
		Attempts: convert.Count(i.Attempts), Failures: convert.Count(i.Failures), LastError: text.Valid(i.LastError), Cursor: i.Cursor,
		Key: []byte(i.Key),
	}
}
