package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// callTimeout is the deadline of calls; some fail.
	callTimeout = 20 * time.Second
	// gatewayTimeout is above the 10 s that the gateway has for a request.
	gatewayTimeout = 15 * time.Second
)

// timer is what a call schedules.
type timer struct {
	topic, id, body, key string // empty id: it gets one
	in                   time.Duration
}

func (t timer) draft() wakebell.Draft {
	o := []wakebell.ScheduleOption{wakebell.In(t.in)}
	if t.id != "" {
		o = append(o, wakebell.ID(t.id))
	}
	if t.key != "" {
		o = append(o, wakebell.Key(t.key))
	}
	return wakebell.NewTopic[string](t.topic).Draft(t.body, o...)
}

// answer is what a call has answered.
type answer struct {
	due     time.Time
	pending bool // it found a pending timer
}

// route is a way to the timers.
type route interface {
	name() string
	schedule(ctx context.Context, t timer) (answer, error)
	cancel(ctx context.Context, topic, id string) (answer, error)
	lives() bool // the process that makes the call
}

// route returns the way of an operation; nil: its process does not run.
func (f *fleet) route(o Op) route {
	n, c := f.nodes[o.A%len(f.nodes)], f.clients[o.A%len(f.clients)]
	switch run, s := n.running(), c.running(); {
	case o.C%5 < 2 && s != nil:
		return overSession{timers{s.remote}, c, s}
	case o.C%5 == 2 && run != nil:
		return atNode{timers{run.sys.Client()}, n, run}
	case o.C%5 == 3 && run != nil:
		return atGateway{n, run}
	case o.C%5 == 4 && s != nil:
		return overHTTP{c, s}
	}
	return nil
}

// timers are the calls that a Client in any process has.
type timers struct{ wakebell.TimerClient }

func (c timers) schedule(ctx context.Context, t timer) (answer, error) {
	return c.store(ctx, t.draft())
}

// store schedules a draft, which has its id: a call that is repeated needs the same.
func (c timers) store(ctx context.Context, d wakebell.Draft) (answer, error) {
	all, err := c.Schedule(ctx, d)
	if err != nil {
		return answer{}, err
	}
	return answer{all[0].Due, all[0].Outcome == wakebelltype.OutcomeReplaced}, nil
}

func (c timers) cancel(ctx context.Context, topic, id string) (answer, error) {
	found, err := c.Cancel(ctx, topic, id)
	if err != nil {
		return answer{}, err
	}
	return answer{pending: found[0] == wakebelltype.PresencePending}, nil
}

type overSession struct {
	timers
	client  *client
	session *session
}

func (p overSession) name() string { return p.client.name() }
func (p overSession) lives() bool  { return p.client.running() == p.session }

type atNode struct {
	timers
	node *node
	run  *incarnation
}

func (p atNode) name() string { return p.node.name() }
func (p atNode) lives() bool  { return p.node.running() == p.run }

// atGateway sends messages to the gateway of a node, as actors do.
type atGateway struct {
	node *node
	run  *incarnation
}

func (p atGateway) name() string { return "the gateway of " + p.node.name() }
func (p atGateway) lives() bool  { return p.node.running() == p.run }

func (p atGateway) schedule(_ context.Context, t timer) (answer, error) {
	request, err := wakebell.ScheduleMessage(t.draft())
	if err != nil {
		return answer{}, err
	}
	future := p.run.sys.ActorSystem().Root.RequestFuture(p.run.sys.Gateway(), request, gatewayTimeout)
	got, err := wakebell.Answered[*messages.ScheduleResponse](future.Result())
	if err != nil {
		return answer{}, err
	}
	return answer{got.GetDue().AsTime(), wakebelltype.Outcome(got.GetOutcome()) == wakebelltype.OutcomeReplaced}, nil //nolint:gosec // numbered alike
}

func (p atGateway) cancel(_ context.Context, topic, id string) (answer, error) {
	request := &messages.CancelRequest{Topic: topic, Ids: []string{id}}
	future := p.run.sys.ActorSystem().Root.RequestFuture(p.run.sys.Gateway(), request, gatewayTimeout)
	got, err := wakebell.Answered[*messages.CancelResponse](future.Result())
	if err != nil {
		return answer{}, err
	}
	return answer{pending: wakebelltype.Presence(got.GetFound()[0]) == wakebelltype.PresencePending}, nil //nolint:gosec // numbered alike
}

// refusals are the errors that say that nothing was done.
var refusals = []error{
	wakebell.ErrInvalid, wakebell.ErrForbidden, wakebell.ErrConflict, wakebell.ErrOverloaded, wakebell.ErrDraining,
	wakebell.ErrMemoryFull, wakebell.ErrKeyUsed,
}

func outcomeOf(err error) outcome {
	if err == nil {
		return done
	}
	for _, r := range refusals {
		if errors.Is(err, r) {
			return refused
		}
	}
	return unknown
}

// writing records a call that begins.
func (f *fleet) writing(subject, body, key, path string, in time.Duration) *write {
	now := time.Now()
	w := &write{subject: subject, body: body, key: key, path: path, from: now, due: micros(now.Add(in))}
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.writes = append(f.record.writes, w)
	f.record.line("%s: write %s %q in %v, key %q", path, subject, body, in, key)
	return w
}

// micros returns an instant as Redis's clock has it.
func micros(t time.Time) time.Time { return t.Truncate(time.Microsecond) }

// wrote records the end of a call. What a process that died meanwhile has heard says nothing.
func (f *fleet) wrote(w *write, a answer, err error, lives bool) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	w.to, w.result = time.Now(), outcomeOf(err)
	if err != nil && !lives {
		w.result = unknown
	}
	if w.result == done {
		w.until, w.pending = a.due, a.pending
	}
	f.record.line("%s: wrote %s %q: %v, pending %v, due %v, %v", w.path, w.subject, w.body, w.result, a.pending, a.due.Format("15:04:05.000000"), err)
}

// subject returns the id that an operation is about. Half of the ids have a key if the plan
// has keys; requests of HTTP are about the others. Calls about an id wait for each other, so
// that the judge knows their order.
func (f *fleet) subject(o Op, p route) (name, key string) {
	topic, id := topics[o.B%len(topics)], o.B/len(topics)%ids
	if _, web := p.(overHTTP); web {
		id |= 1
	}
	if f.plan.Keys && id%2 == 0 {
		key = "key-" + strconv.Itoa(id/2%keys)
	}
	return subjectOf(topic, "id-"+strconv.Itoa(id)), key
}

const ids, keys = 16, 3

// schedule schedules a timer under one of the ids.
func (f *fleet) schedule(o Op) {
	p := f.route(o)
	if p == nil {
		return
	}
	subject, key := f.subject(o, p)
	defer f.locks.take(subject)()
	t := timer{topicOf(subject), idOf(subject), o.body(), key, f.plan.delay(o)}
	w := f.writing(subject, t.body, key, p.name(), t.in)
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	a, err := p.schedule(ctx, t)
	f.wrote(w, a, err, p.lives())
}

// cancel cancels the timer of one of the ids.
func (f *fleet) cancel(o Op) {
	p := f.route(o)
	if p == nil {
		return
	}
	subject, _ := f.subject(o, p)
	defer f.locks.take(subject)()
	w := f.writing(subject, "", "", p.name(), 0)
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	a, err := p.cancel(ctx, topicOf(subject), idOf(subject))
	f.wrote(w, a, err, p.lives())
}

// scheduleOnce schedules a timer without an id and with an idempotency key, again and again
// until a session has the answer.
func (f *fleet) scheduleOnce(o Op) {
	topic := topics[o.B%len(topics)]
	t := timer{topic: topic, body: o.body(), in: f.plan.delay(o)}
	draft := t.draft()
	f.untilDone(o, t, func(ctx context.Context, s *session) (answer, error) {
		return timers{s.remote}.store(remote.WithKey(ctx, t.body), draft)
	})
}

// scheduleInLine schedules three timers of a key, of which the last one is due first, as
// scheduleOnce does. No call is about them later, so that the judge knows their order.
func (f *fleet) scheduleInLine(o Op) {
	topic, step := topics[o.B%len(topics)], time.Duration(o.C)*20*time.Millisecond
	var all sync.WaitGroup
	for i := range 3 {
		t := timer{topic: topic, body: fmt.Sprintf("%s-%d", o.body(), i), key: "line-" + strconv.Itoa(o.C%2)}
		t.in = f.plan.delay(o) + time.Duration(2-i)*step
		draft := t.draft()
		all.Go(func() {
			f.untilDone(o, t, func(ctx context.Context, s *session) (answer, error) {
				return timers{s.remote}.store(remote.WithKey(ctx, t.body), draft)
			})
		})
	}
	all.Wait()
}

// publish publishes a message. The same draft is published again until a session has the answer.
func (f *fleet) publish(o Op) {
	draft := letters.Draft(o.body())
	f.untilDone(o, timer{topic: mail, body: o.body()}, func(ctx context.Context, s *session) (answer, error) {
		_, err := s.remote.Queues().Publish(ctx, draft)
		return answer{due: time.Now()}, err
	})
}

// untilDone repeats a call without a further effect, at most as long as any window of
// deduplication lasts.
func (f *fleet) untilDone(o Op, t timer, call func(context.Context, *session) (answer, error)) {
	c := f.clients[o.A%len(f.clients)]
	w := f.writing(subjectOf(t.topic, ""), t.body, t.key, c.name(), t.in)
	w.single = true
	err := fmt.Errorf("no session: %w", wakebell.ErrUnavailable)
	var a answer
	tried := false
	for limit := time.Now().Add(50 * time.Second); time.Now().Before(limit) && f.ctx.Err() == nil; <-time.After(time.Second) {
		s := c.running()
		if s == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(f.ctx, 5*time.Second)
		a, err = call(ctx, s)
		cancel()
		tried = tried || outcomeOf(err) == unknown
		if err == nil {
			break
		}
		f.trace("%s: %s %q: %v", c.name(), t.topic, t.body, err)
	}
	f.wrote(w, a, err, !tried)
}
