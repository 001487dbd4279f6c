package reminder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/gateway"
	"github.com/wakebell/wakebell/actors/reminders"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/hosted"
	"github.com/wakebell/wakebell/internal/outgoing"
	"github.com/wakebell/wakebell/internal/together"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/redisops/audit"
	schedulestore "github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Reminders sets, lists and removes the reminders of a System: one for each
// recipient and name, until the recipient has acknowledged it. Its calls wait for
// Redis, and work whether or not the System is started; in Receive an actor uses
// Set, SetEvery and Forget instead. Without a Config.Reminders every call fails
// with ErrDisabled. wakebell.System.Reminders returns it.
type Reminders struct {
	node hosted.Node
	cfg  *Config // nil: none

	schedules *schedulestore.Store
	looks     together.Calls[struct{}, string, bool] // whether there are schedules, by their full names
}

// Hosted makes the Reminders of a System, which has none if cfg is nil, and what the System
// runs for them. Only this module can call it.
func Hosted(cfg *Config, n hosted.Node) (*Reminders, hosted.Parts) {
	r := &Reminders{node: n, cfg: cfg.withDefaults(), schedules: schedulestore.New(n.Store)}
	return r, r.parts()
}

func init() {
	hosted.IsReminderTopic = func(reminders any, topic string) bool { return reminders.(*Reminders).reserves(topic) }
}

// parts returns what the System runs.
func (r *Reminders) parts() hosted.Parts {
	parts := hosted.Parts{
		Deliver: r.deliver,
		Guard:   func(t gateway.Timers) gateway.Timers { return guarded{t, r.reserves} },
	}
	if c := r.cfg; c != nil {
		parts.Read, parts.Topics = r.read, r.topics()
		parts.MaxConcurrent, parts.MaxAttempts = c.MaxConcurrent, c.MaxAttempts
		parts.RetryInitial, parts.RetryLimit = c.RetryInitial, c.RetryLimit
	}
	return parts
}

// topics returns the topics that this node delivers, without the prefix.
func (r *Reminders) topics() []string {
	if r.cfg.Cluster == nil {
		return []string{r.cfg.nodeTopic()}
	}
	return []string{r.cfg.nodeTopic(), r.cfg.Topic}
}

// PID returns the actor that Set sends its requests to, with the well-known id
// wakebell/reminders (the System's name first). It runs from the start of a System
// with reminders. An actor of a process without a System, connected by package
// remote, sends it *messages.SetReminderRequest or *messages.ForgetReminderRequest,
// and receives the reminders itself.
func (r *Reminders) PID() *actor.PID { return reminders.PID(r.node.Actors, r.node.Name) }

// Set sets a reminder, replacing the recipient's reminder with the same name, and
// returns when it is due. After an error it may or may not be set, and the call
// may be repeated. Errors: wakebell.ErrInvalid, ErrAutomaticName, ErrDisabled, or
// those of wakebell.Client.Schedule.
func (r *Reminders) Set(ctx context.Context, to Recipient, name string, when When, msg proto.Message) (due time.Time, err error) {
	s, err := r.entry(to, name, msg)
	if err != nil {
		return time.Time{}, err
	}
	timer, err := s.timer(when)
	if err != nil {
		return time.Time{}, err
	}
	return s.set(ctx, timer)
}

// draft is a one-time reminder that is not stored yet.
type draft struct {
	stored *stored
	when   When
	env    envelope.Envelope
}

// SetEvery is Set for a recurring reminder; see the function SetEvery.
func (r *Reminders) SetEvery(ctx context.Context, to Recipient, name string, rule recurring.Rule, msg proto.Message) error {
	s, err := r.entry(to, name, msg)
	if err != nil {
		return err
	}
	return s.setEvery(ctx, s.recurring(rule))
}

// Forget removes the recipient's reminder with this name, and reports whether
// there was one. Errors are those of Set.
func (r *Reminders) Forget(ctx context.Context, to Recipient, name string) (found bool, err error) {
	s, err := r.named(to, name)
	if err != nil {
		return false, err
	}
	return s.forget(ctx)
}

// stored is one reminder and its place in Redis.
type stored struct {
	*Reminders
	to       Recipient
	name     string
	topic    string // without the prefix
	id       string // of the timer of a one-time reminder
	schedule string // the name of the schedule of a recurring one, without the prefix
	body     *messages.KeptReminder
	trace    map[string]string // the span of the actor that sets it
}

var bodies = codec.For[*messages.KeptReminder]()

// named returns a reminder without its message.
func (r *Reminders) named(to Recipient, name string) (*stored, error) {
	if r.cfg == nil {
		return nil, ErrDisabled
	}
	if r.isLocal(to.Address) {
		to.Address = ""
	}
	if name == "" {
		return nil, argument.Invalid("reminder", "the name is empty")
	}
	if err := to.Validate(); err != nil {
		return nil, fmt.Errorf("%w: reminder %s: %w", wakebelltype.ErrInvalid, argument.Quote(name), err)
	}
	s := &stored{Reminders: r, to: to, name: name, topic: r.cfg.nodeTopic(), id: reminderID(to, name)}
	if to.Kind != "" {
		s.topic = r.cfg.Topic
	}
	s.schedule = schedulePrefix(s.topic) + s.id
	if n := len(r.node.Prefix + s.schedule); n > schedulestore.MaxName {
		return nil, argument.Invalid("reminder", "%s of %s: %d bytes with its topic and recipient, at most %d",
			argument.Quote(name), argument.Quote(to.String()), n, schedulestore.MaxName)
	}
	return s, nil
}

// schedulePrefix begins the names of the recurring reminders of a topic.
func schedulePrefix(topic string) string { return topic + "/" }

// isLocal reports whether an address is that of this process.
func (r *Reminders) isLocal(address string) bool {
	return address == "" || address == r.node.Actors.Address() || address == actors.NoAddress
}

// entry returns a reminder with its message.
func (r *Reminders) entry(to Recipient, name string, msg proto.Message) (*stored, error) {
	s, err := r.named(to, name)
	if err != nil {
		return nil, err
	}
	if msg == nil || !msg.ProtoReflect().IsValid() {
		return nil, argument.Invalid("message", "nil")
	}
	full := msg.ProtoReflect().Descriptor().FullName()
	if _, err := protoregistry.GlobalTypes.FindMessageByName(full); err != nil {
		return nil, argument.Invalid("message", "the type %s is not registered, so the recipient could not decode it", full)
	}
	what, err := anypb.New(msg)
	if err != nil {
		return nil, argument.Invalid("message", "%v", err)
	}
	return s.with(what), nil
}

func (s *stored) with(what *anypb.Any) *stored {
	s.body = bodyOf(s.to, &messages.KeptReminder{Name: s.name, Message: what})
	return s
}

// timer returns the timer of a one-time reminder.
func (s *stored) timer(when When) (draft, error) {
	if err := when.validate(); err != nil {
		return draft{}, err
	}
	body, contentType, err := bodies.Encode(s.body)
	if err != nil {
		return draft{}, fmt.Errorf("%w: body: %w", wakebelltype.ErrInvalid, err)
	}
	d := draft{s, when, envelope.Envelope{CorrelationID: s.id, ContentType: contentType, Body: body}}
	_, err = d.entry()
	return d, err
}

// entry encodes the reminder for the store.
func (d *draft) entry() (timers.Entry, error) {
	payload, err := envelope.Encode(d.env)
	if err != nil {
		return timers.Entry{}, fmt.Errorf("%w: %w", wakebelltype.ErrInvalid, err)
	}
	if limit := d.stored.node.PayloadLimit; len(payload) > limit {
		return timers.Entry{}, argument.Invalid("message", "%d bytes with its envelope, the limit is %d", len(payload), limit)
	}
	return timers.Entry{ID: d.stored.id, Payload: payload, At: d.when.at, In: d.when.in}, nil
}

// outgoing returns the reminder as the schedule middleware sees it.
func (d *draft) outgoing() *wakebelltype.Outgoing {
	return &wakebelltype.Outgoing{
		Kind: wakebelltype.OutgoingReminder, Topic: d.stored.topic, ID: d.stored.id, Body: d.env.Body, ContentType: d.env.ContentType,
	}
}

// apply sets what the schedule middleware may change.
func (d *draft) apply(o *wakebelltype.Outgoing) {
	d.env.Body, d.env.ContentType, d.env.Headers = o.Body, o.ContentType, o.Headers
}

// recurring returns the schedule of a recurring reminder.
func (s *stored) recurring(rule recurring.Rule) recurring.Schedule {
	body, contentType, err := bodies.Encode(s.body)
	if err != nil {
		err = fmt.Errorf("%w: body: %w", wakebelltype.ErrInvalid, err)
	}
	return recurring.Schedule{
		Name: s.schedule, Topic: s.topic, Rule: rule, Body: body, ContentType: contentType, Err: err,
	}
}

// set stores the new reminder before it removes the old one, so that an error in
// between loses none.
func (s *stored) set(ctx context.Context, timer draft) (due time.Time, err error) {
	err = outgoing.Each(ctx, s.node.Edge, "remind", []draft{timer}, (*draft).outgoing, (*draft).apply, func(ctx context.Context, timers []draft) error {
		entry, err := timers[0].entry()
		if err != nil {
			return err
		}
		scheduled, err := s.node.Store.Schedule(ctx, s.node.Prefix+s.topic, entry)
		if err == nil {
			due = scheduled[0].Due
		}
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	_, err = s.deleteSchedule(ctx)
	return due, err
}

func (s *stored) setEvery(ctx context.Context, schedule recurring.Schedule) error {
	if err := s.node.Schedules.Put(audit.Skip(ctx), schedule); err != nil {
		return err
	}
	_, err := s.cancel(ctx)
	return err
}

func (s *stored) forget(ctx context.Context) (found bool, err error) {
	once, err := s.cancel(ctx)
	if err != nil {
		return false, err
	}
	every, err := s.deleteSchedule(ctx)
	return once || every, err
}

func (s *stored) cancel(ctx context.Context) (found bool, err error) {
	presence, err := s.node.Store.Cancel(ctx, s.node.Prefix+s.topic, s.id)
	return err == nil && presence[0] != wakebelltype.PresenceAbsent, err
}

// deleteSchedule deletes the schedule of the reminder, if there is one. Reminders that are set at
// once look for theirs together.
func (s *stored) deleteSchedule(ctx context.Context) (found bool, err error) {
	there, err := s.looks.Do(ctx, struct{}{}, s.node.Prefix+s.schedule, s.exist)
	if err != nil {
		return false, fmt.Errorf("reminder %s: look for its schedule: %w", argument.Quote(s.name), err)
	}
	if !there {
		return false, nil
	}
	err = s.node.Schedules.Delete(audit.Skip(ctx), s.schedule)
	if errors.Is(err, recurring.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// exist reports which schedules there are.
func (r *Reminders) exist(ctx context.Context, names []string) ([]bool, error) {
	found, err := r.schedules.Load(ctx, names...)
	if err != nil {
		return nil, err
	}
	exist := make([]bool, len(found))
	for i := range found {
		exist[i] = found[i].Definition != nil
	}
	return exist, nil
}
