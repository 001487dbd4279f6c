package wakebell

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/wakebell/wakebell/actors"
	actorgateway "github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// SystemOf returns the System with the name DefaultName in actorSystem, and
// whether there is one: from its Start to its Stop. An actor calls it with
// Context.ActorSystem. SystemNamed finds Systems with other names.
//
// The calls of the System's Client wait for Redis, and block an actor that makes
// them in Receive. To schedule without waiting, send a message to the System's
// Gateway.
func SystemOf(actorSystem *actor.ActorSystem) (*System, bool) {
	return SystemNamed(actorSystem, DefaultName)
}

// SystemNamed returns the System with this Config.Name in actorSystem, and
// whether there is one: from its Start to its Stop.
func SystemNamed(actorSystem *actor.ActorSystem, name string) (*System, bool) {
	if actorSystem == nil {
		return nil, false
	}
	owner, _ := actors.Owner(actorSystem, name)
	s, ok := owner.(*System)
	return s, ok
}

// Gateway returns the actor that carries out requests sent as messages. Its name
// is wakebell/gateway, where wakebell is the name of the System. It exists when
// Start has returned, whether or not the System has Handlers.
//
// The gateway accepts the requests of the gRPC service Timers:
// *messages.ScheduleRequest, CancelRequest, GetTimerRequest and so on. A message
// must not be changed after it was sent. The answer to a *messages.ScheduleRequest
// is a *messages.ScheduleResponse or a *messages.Error, and so on; see Answered
// and AnswerError. A request without a sender is carried out too, and its failure
// is logged. Requests about the same timer, recurring schedule or queue are
// carried out in the order in which they arrive, others concurrently.
//
// A request is answered within its timeout, by default 10 s. This process may
// have up to 1,024 requests waiting, and 64 MiB of waiting and running ones, less
// while remote principals have requests there; further ones are refused with
// ErrOverloaded, and after Stop has begun with ErrDraining. One request of up to
// 64 KiB is always accepted if this process has no other. If the gateway crashes or stops, the requests that it
// had accepted are answered with ErrUnavailable. A message that crashes the
// gateway gets no answer, so a future needs a timeout above that of the request.
func (s *System) Gateway() *actor.PID { return actorgateway.PID(s.actors, s.cfg.Name) }

// ErrOverloaded means that too many requests wait at the gateway; nothing was
// done.
var ErrOverloaded = convert.ErrOverloaded

// ErrConflict means that a request conflicts with another owner: its idempotency
// key was used for another request, or the node handles the topic itself.
// Nothing was done.
var ErrConflict = convert.ErrConflict

// Answered returns the answer to a request, as in
//
//	future := c.RequestFuture(sys.Gateway(), request, 15*time.Second)
//	scheduled, err := wakebell.Answered[*messages.ScheduleResponse](future.Result())
//
// Its errors are those of AnswerError, ErrNotRunning if there is no gateway, and
// context.DeadlineExceeded if the future timed out.
func Answered[A messages.Answer](answer any, err error) (A, error) {
	var none A
	switch {
	case errors.Is(err, actor.ErrDeadLetter):
		return none, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case errors.Is(err, actor.ErrTimeout):
		return none, fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case err != nil:
		return none, err
	}
	switch a := answer.(type) {
	case *messages.Error:
		return none, AnswerError(a)
	case A:
		return a, nil
	default:
		return none, fmt.Errorf("unexpected answer %T", answer)
	}
}

// AnswerError converts an Error of the gateway. The result wraps the error that
// the same call of a Client, of recurring.Schedules or of gate.Gates wraps
// (ErrInvalid, ErrNotFound and so on), or ErrOverloaded, ErrDraining, ErrConflict
// or context.DeadlineExceeded. For an unknown code it wraps none of them.
func AnswerError(e *messages.Error) error {
	return &answerError{text: e.GetMessage(), sentinel: convert.ErrorOf(e.GetCode())}
}

// answerError has the text of a *messages.Error.
type answerError struct {
	sentinel error // may be nil
	text     string
}

func (e *answerError) Error() string { return "gateway: " + e.text }

func (e *answerError) Unwrap() error { return e.sentinel }

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
	if j := d.join; j != nil {
		m.After, m.Open, m.JoinName, m.PartOf = convert.PartMessages(j.parts), j.open, j.name, convert.PartMessages(j.of)
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
	if len(m.GetAfter()) > 0 || m.GetOpen() || m.GetJoinName() != "" || len(m.GetPartOf()) > 0 {
		opts = append(opts, joinedBy(m, key))
	}
	if m.GetId() == "" { // the id of the idempotency key is none of the caller's
		opts = append(opts, (*Draft).needsID)
	}
	return NewTopic[[]byte](m.GetTopic()).Draft(m.GetBody(), opts...)
}

// joinedBy returns the option for what a request has to do with joins.
func joinedBy(m *messages.ScheduleRequest, key *timers.Key) ScheduleOption {
	return func(d *Draft) error {
		d.join = d.join.with()
		d.join.of = convert.Parts(m.GetPartOf())
		if len(m.GetAfter()) == 0 && !m.GetOpen() && m.GetJoinName() == "" {
			return nil
		}
		d.join.name, d.join.open = m.GetJoinName(), m.GetOpen()
		*d = d.waiting(convert.Parts(m.GetAfter()))
		if key != nil { // a repeated request has the same join, also with another name
			d.join.name = key.Name(m.GetTopic() + "\x00" + d.id)
		}
		return within("join_name", len(d.join.name), 0, maxJoinName)
	}
}

// maxJoinName bounds the name of a join that a request has, in bytes.
const maxJoinName = 128

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

func (r requests) listParts(ctx context.Context, m *messages.ListPartsRequest) (messages.Answer, error) {
	full, err := r.client.fullName(m.GetTopic())
	if err != nil {
		return nil, err
	}
	of := joins.Ref{Topic: full, ID: m.GetId(), Name: m.GetJoinName()}
	page, next, err := pageOf(ctx, r.client.joins, r.client.on.Prefix, of, m.GetAfter(), int(m.GetLimit()), m.GetRunning())
	if err != nil {
		return nil, err
	}
	answer := &messages.ListPartsResponse{Request: m.GetRequest(), Next: next}
	for _, e := range page {
		part := convert.PartEndMessage(e.PartEnd)
		if e.Result != nil {
			part.Result = &messages.TimerResult{
				Content: contentMessage(e.Result.Content), Attempt: convert.Count(e.Result.Attempt),
				Activation: convert.Timestamp(e.Result.Activation), At: convert.Timestamp(e.Result.At),
			}
		}
		answer.Parts = append(answer.Parts, part)
	}
	return answer, nil
}

func (r requests) cancelJoin(ctx context.Context, m *messages.CancelJoinRequest) (messages.Answer, error) {
	full, err := r.client.fullName(m.GetTopic())
	if err != nil {
		return nil, err
	}
	may := map[string]bool{full: true}
	for _, topic := range m.GetTopics() {
		other, err := r.client.fullName(topic)
		if err != nil {
			return nil, err
		}
		may[other] = true
	}
	_, parts, err := r.client.joins.Cancel(ctx, joins.Ref{Topic: full, ID: m.GetId()}, func(topic string) bool { return may[topic] })
	return &messages.CancelJoinResponse{Request: m.GetRequest(), Parts: parts}, err
}
