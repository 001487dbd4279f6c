package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/reminder"
)

const (
	remindEvery = 20 * time.Millisecond
	remindAhead = 2 * time.Second
)

// remind is a node whose actor sets reminders for itself, until an instant, and receives
// them until ctx ends.
func (c NodeConfig) remind(ctx context.Context, n *node) error {
	rdb := c.client()
	defer func() { _ = rdb.Close() }()
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	conn, err := connection.New(rdb, connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(actors, conn, wakebell.Config{
		Reminders: &reminder.Config{
			Node: c.Reminders, AckTimeout: c.LeaseTTL / 2, RetryInitial: c.RetryFirst, RetryLimit: max(c.RetryFirst, time.Second),
			MaxAttempts: c.MaxAttempts,
		},
		DrainTimeout: c.DrainTimeout,
		WaitForRedis: settleLimit,
	})
	if err != nil {
		return err
	}
	a := &reminded{node: n, until: c.Until, prefix: fmt.Sprintf("client-%s-%d", c.Reminders, time.Now().UnixNano()), asked: map[string]Call{}}
	pid, err := actors.Root.SpawnNamed(actor.PropsFromFunc(a.Receive), "reminded")
	if err != nil {
		return err
	}
	ticking, end := context.WithCancel(ctx)
	defer end()
	go n.watchClock(ticking)
	if err := sys.Start(context.WithoutCancel(ctx)); err != nil { // it waits for Redis
		return err
	}
	go func() {
		for ticking.Err() == nil {
			actors.Root.Send(pid, &setNext{})
			select {
			case <-time.After(remindEvery):
			case <-ticking.Done():
			}
		}
	}()
	n.report(Line{Event: EventReady})
	<-ctx.Done()
	err = sys.Stop()
	n.report(Line{Event: EventEnded})
	return err
}

// reminded is an actor that sets reminders for itself.
type reminded struct {
	node   *node
	until  time.Time
	prefix string // of the names; another one after a restart
	count  int
	asked  map[string]Call // by name
}

// setNext makes the actor set its next reminder.
type setNext struct{}

func (a *reminded) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *setNext:
		a.set(c)
	case *messages.SetReminderResponse:
		call := a.asked[m.GetName()]
		call.Found = FoundNothing // the instant is not used: it may be that of a repeated command
		a.answered(m.GetName(), call)
	case *messages.ReminderFailed:
		call := a.asked[m.GetName()]
		call.Err = errors.New(m.GetError().GetMessage())
		a.answered(m.GetName(), call)
	case *messages.Reminder:
		a.remind(c, m)
	}
}

func (a *reminded) set(c actor.Context) {
	now := time.Now()
	if !now.Before(a.until) {
		return
	}
	a.count++
	name := fmt.Sprintf("%s/%d", a.prefix, a.count)
	in := rand.N(remindAhead)
	if err := reminder.Set(c, name, reminder.In(in), wrapperspb.String(name)); err != nil {
		panic(err) // of its arguments
	}
	a.asked[name] = Call{Kind: CallSchedule, Client: a.prefix, Generation: 1, Called: now, Earliest: now.Add(in)}
}

func (a *reminded) answered(name string, call Call) {
	delete(a.asked, name)
	call.Returned = time.Now()
	a.node.RecordCall(name, call)
}

// remind handles a reminder: some fail at first, and some are not answered.
func (a *reminded) remind(c actor.Context, m *messages.Reminder) {
	line := Line{
		Event: EventBegin, ID: m.GetName(), Generation: 1, Attempt: int(m.GetAttempt()),
		Activation: m.GetDue().AsTime(), Delivered: time.Now(),
	}
	a.node.report(line)
	line.Event, line.End = EventEnd, EndAck
	switch first := m.GetAttempt() == 1; {
	case first && rand.IntN(20) == 0:
		return
	case first && rand.IntN(20) == 0:
		line.End = EndNack
		a.node.report(line)
		c.Respond(m.Nack(errors.New("intended failure")))
	default:
		a.node.report(line) // before the answer, after which the reminder may be removed
		c.Respond(m.Ack())
	}
}
