package peer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// turnTimeout is how long a local actor may take to handle the messages of a peer.
// Only an actor that crashes repeatedly takes so long.
const turnTimeout = 30 * time.Second

// Turns keeps the mailboxes of local actors short: a sender continues when the
// actors have handled its previous messages. It is a process that receives their
// acknowledgements.
type Turns struct {
	system *actor.ActorSystem
	router string // id of the router of subscriptions
	self   *actor.PID
	passed map[passedTo]struct{} // what received messages since the last Take
	asked  int64
	came   atomic.Int64
	wake   chan struct{} // has room for one
}

// passedTo is an actor, or behind the router of subscriptions what handles a topic.
type passedTo struct{ id, topic string }

// TouchTopic asks the router of subscriptions to pass a Touch on to what handles the topic, or
// to answer it: the mailbox of the router is short while that of a topic is long.
type TouchTopic struct{ Topic string }

// NewTurns registers a Turns with an ActorSystem.
func NewTurns(system *actor.ActorSystem, router string) *Turns {
	t := &Turns{system: system, router: router, passed: map[passedTo]struct{}{}, wake: make(chan struct{}, 1)}
	t.self, _ = system.ProcessRegistry.Add(t, "wakebell-turns"+system.ProcessRegistry.NextId())
	return t
}

// Close removes it from the ActorSystem.
func (t *Turns) Close() { t.system.ProcessRegistry.Remove(t.self) }

// SendUserMessage implements actor.Process. An actor has reached a Touch, or does
// not exist.
func (t *Turns) SendUserMessage(*actor.PID, any) {
	t.came.Add(1)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// SendSystemMessage implements actor.Process.
func (t *Turns) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (t *Turns) Stop(*actor.PID) {}

// Passed notes that a message was sent to a local actor.
func (t *Turns) Passed(to string, m proto.Message) {
	next := passedTo{id: to}
	if about, ok := m.(interface{ GetTopic() string }); ok && to == t.router {
		next.topic = about.GetTopic()
	}
	t.passed[next] = struct{}{}
}

// Take sends a Touch to the actors that received a message since the last Take, and waits
// until all earlier ones are answered.
func (t *Turns) Take(ctx context.Context) error {
	before := t.asked
	for to := range t.passed {
		t.asked++
		var touch any = &actor.Touch{}
		if to.id == t.router {
			touch = TouchTopic{to.topic}
		}
		t.system.Root.RequestWithCustomSender(t.system.NewLocalPID(to.id), touch, t.self)
	}
	clear(t.passed)
	if t.came.Load() >= before {
		return ctx.Err()
	}
	late := time.NewTimer(turnTimeout)
	defer late.Stop()
	for t.came.Load() < before {
		select {
		case <-t.wake:
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return status.Error(codes.Unavailable, "an actor does not handle its messages")
		}
	}
	return ctx.Err()
}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (TouchTopic) IgnoreDeadLetterLogging() {}
