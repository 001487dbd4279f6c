package wakebell

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/internal/gateway"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops"
)

// requests carries out what the gateway is asked for. It trusts nothing in a
// request: whatever it is, it goes through the same checks as a call of the
// Client.
type requests struct {
	client *Client
	gates  *Gates
}

// Do implements actors.Timers.
func (r requests) Do(ctx context.Context, request messages.Request) messages.Answer {
	answer, err := r.answer(ctx, request)
	if err != nil {
		failed := ErrorMessage(err)
		failed.Request = request.GetRequest()
		return failed
	}
	return answer
}

func (r requests) answer(ctx context.Context, request messages.Request) (messages.Answer, error) {
	switch m := request.(type) {
	case *messages.Schedule:
		return r.schedule(ctx, m)
	case *messages.ScheduleBatch:
		return r.scheduleBatch(ctx, m)
	case *messages.Cancel:
		return r.cancel(ctx, m)
	case *messages.Get:
		return r.get(ctx, m)
	case *messages.List:
		return r.list(ctx, m)
	case *messages.Reschedule:
		return r.reschedule(ctx, m)
	case *messages.RunNow:
		return r.runNow(ctx, m)
	case *messages.Stats:
		return r.stats(ctx, m)
	case *messages.Publish:
		return r.publish(ctx, m)
	case *messages.GuardTurn:
		return &messages.TurnGuarded{Request: m.GetRequest()}, r.gates.Guard(ctx, m.GetGate(), m.GetResource(), m.GetFence())
	default:
		return r.recurring(ctx, request)
	}
}

func (r requests) schedule(ctx context.Context, m *messages.Schedule) (messages.Answer, error) {
	key, err := keyOf(ctx, m.GetKey(), m)
	if err != nil {
		return nil, err
	}
	stored, err := r.client.schedule(ctx, key, []Draft{draftOf(m, key)})
	if err != nil {
		return nil, err
	}
	return scheduledMessage(m.GetRequest(), stored[0]), nil
}

func (r requests) scheduleBatch(ctx context.Context, m *messages.ScheduleBatch) (messages.Answer, error) {
	key, err := keyOf(ctx, m.GetKey(), m)
	if err != nil {
		return nil, err
	}
	drafts := make([]Draft, len(m.GetTimers()))
	for i, s := range m.GetTimers() {
		if s == nil {
			return nil, invalid("timers", "number %d is nil", i)
		}
		drafts[i] = draftOf(s, key.Number(i))
	}
	stored, err := r.client.schedule(ctx, key, drafts)
	if err != nil {
		return nil, err
	}
	answer := &messages.BatchScheduled{Request: m.GetRequest()}
	for i, s := range stored {
		answer.Timers = append(answer.Timers, scheduledMessage(m.GetTimers()[i].GetRequest(), s))
	}
	return answer, nil
}

func (r requests) cancel(ctx context.Context, m *messages.Cancel) (messages.Answer, error) {
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
	answer := &messages.Cancelled{Request: m.GetRequest()}
	for _, p := range found {
		answer.Found = append(answer.Found, messages.Presence(p))
	}
	return answer, nil
}

func (r requests) get(ctx context.Context, m *messages.Get) (messages.Answer, error) {
	if err := namesTimer(m.GetId()); err != nil {
		return nil, err
	}
	info, content, err := r.client.Get(ctx, m.GetTopic(), m.GetId())
	if err != nil {
		return nil, err
	}
	answer := timerMessage(info)
	answer.Request = m.GetRequest()
	answer.Content = ContentMessage(content)
	return answer, nil
}

// ContentMessage is a Content as it travels: what is no UTF-8 is replaced, and of
// headers with the same key the last remains.
func ContentMessage(c Content) *messages.Content {
	m := &messages.Content{
		Body: c.Body, ContentType: utf8(c.ContentType), CorrelationId: utf8(c.CorrelationID), ReplyTo: utf8(c.ReplyTo),
		Headers: make(map[string]string, len(c.Headers)),
	}
	for _, h := range c.Headers {
		m.Headers[utf8(h.Key)] = utf8(h.Value)
	}
	return m
}

func (r requests) list(ctx context.Context, m *messages.List) (messages.Answer, error) {
	full, err := r.client.fullName(m.GetTopic())
	if err != nil {
		return nil, err
	}
	filter := redisops.Filter{Leased: m.GetRunning(), After: redisops.Cursor(m.GetAfter()), Limit: int(m.GetLimit())}
	if m.GetDueBefore() != nil {
		if filter.DueBefore, err = instant("due_before", m.GetDueBefore()); err != nil {
			return nil, err
		}
	}
	timers, next, err := r.client.store.List(ctx, full, filter)
	if err != nil {
		return nil, err
	}
	answer := &messages.TimerPage{Request: m.GetRequest(), Next: string(next)}
	for _, t := range timers {
		answer.Timers = append(answer.Timers, timerMessage(infoOf(full, t)))
	}
	return answer, nil
}

func (r requests) reschedule(ctx context.Context, m *messages.Reschedule) (messages.Answer, error) {
	var when ScheduleOption
	switch w := m.GetWhen().(type) {
	case *messages.Reschedule_At:
		when = at(w.At)
	case *messages.Reschedule_In:
		when = in(w.In)
	default:
		return nil, invalid("when", "want at or in")
	}
	moved, err := r.client.Reschedule(ctx, m.GetTopic(), m.GetId(), when)
	if err != nil {
		return nil, err
	}
	return scheduledMessage(m.GetRequest(), moved), nil
}

func (r requests) runNow(ctx context.Context, m *messages.RunNow) (messages.Answer, error) {
	found, err := r.client.RunNow(ctx, m.GetTopic(), m.GetId())
	if err != nil {
		return nil, err
	}
	return &messages.DueNow{Request: m.GetRequest(), Found: messages.Presence(found)}, nil
}

func (r requests) stats(ctx context.Context, m *messages.Stats) (messages.Answer, error) {
	st, err := r.client.Stats(ctx, m.GetTopic())
	if err != nil {
		return nil, err
	}
	answer := StatsMessage(st)
	answer.Request = m.GetRequest()
	return answer, nil
}

// StatsMessage is a Stats as it travels.
func StatsMessage(st Stats) *messages.TopicStats {
	return &messages.TopicStats{
		Total: st.Total, Pending: st.Pending, Due: st.Due, Leased: st.Leased, Retrying: st.Retrying, Dead: st.Dead,
		Estimated: st.Estimated, OldestDue: timestamp(st.OldestDue), Lag: durationpb.New(st.Lag), PausedAt: timestamp(st.PausedAt),
	}
}

// maxKey bounds an idempotency key, in bytes.
const maxKey = 256

// keyOf is the idempotency key of a request; nil: it has none. The request
// counts without what differs when it is sent again.
func keyOf(ctx context.Context, key string, m proto.Message) (*redisops.Key, error) {
	if key == "" {
		return nil, nil
	}
	if len(key) > maxKey {
		return nil, invalid("key", "%d bytes, at most %d", len(key), maxKey)
	}
	again := proto.Clone(m)
	for _, name := range []protoreflect.Name{"request", "timeout"} {
		again.ProtoReflect().Clear(again.ProtoReflect().Descriptor().Fields().ByName(name))
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(again)
	if err != nil {
		return nil, invalid("message", "%v", err)
	}
	kind := string(proto.MessageName(m))
	return redisops.NewKey(messages.Principal(ctx), key, append([]byte(kind+"\x00"), content...)), nil
}

// namesTimer checks what Redis would find no timer under.
func namesTimer(id string) error {
	switch {
	case id == "":
		return invalid("id", "empty")
	case len(id) > redisops.MaxName:
		return invalid("id", "%d bytes, at most %d", len(id), redisops.MaxName)
	}
	return nil
}

// The enumerations of outcomes and presences are numbered alike on both sides.

func scheduledMessage(request uint64, s Scheduled) *messages.Scheduled {
	return &messages.Scheduled{
		Request: request, Id: s.ID, Due: timestamp(s.Due),
		Outcome: messages.Outcome(s.Outcome), Found: timestamp(s.Found),
	}
}

var states = map[State]messages.State{
	StatePending:  messages.State_STATE_PENDING,
	StateRetrying: messages.State_STATE_RETRYING,
	StateRunning:  messages.State_STATE_RUNNING,
	StateNever:    messages.State_STATE_NEVER,
}

func timerMessage(i Info) *messages.Timer {
	return &messages.Timer{
		Id: utf8(i.ID), State: states[i.State],
		Due: timestamp(i.Due), Activation: timestamp(i.Activation),
		Attempts: count(i.Attempts), Failures: count(i.Failures), LastError: utf8(i.LastError),
	}
}

func timestamp(t time.Time) *timestamppb.Timestamp { return gateway.Timestamp(t) }

func count(n int) uint32 { return gateway.Count(n) }

func utf8(s string) string { return gateway.Text(s) }
