package peer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// turnTimeout is how long an actor of ours may take to come to what a peer
// has sent; only one that crashes again and again takes so long.
const turnTimeout = 30 * time.Second

// Turns keep the mailboxes of our actors short: whoever feeds them goes on when
// they have come to what they were fed before. It is a process that they tell.
type Turns struct {
	system *actor.ActorSystem
	self   *actor.PID
	asked  int64
	came   atomic.Int64
	wake   chan struct{} // has room for one
}

// NewTurns registers turns with an ActorSystem.
func NewTurns(system *actor.ActorSystem) *Turns {
	t := &Turns{system: system, wake: make(chan struct{}, 1)}
	t.self, _ = system.ProcessRegistry.Add(t, "wakebell-turns"+system.ProcessRegistry.NextId())
	return t
}

// Close removes them from the ActorSystem.
func (t *Turns) Close() { t.system.ProcessRegistry.Remove(t.self) }

// SendUserMessage implements actor.Process: an actor has come to our question,
// or there is none.
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

// Take asks the actors that got something to say so, and waits until those that
// got something before have.
func (t *Turns) Take(ctx context.Context, targets map[string]struct{}) error {
	before := t.asked
	for id := range targets {
		t.asked++
		t.system.Root.RequestWithCustomSender(t.system.NewLocalPID(id), &actor.Touch{}, t.self)
	}
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
			return status.Error(codes.Unavailable, "an actor does not come to its messages")
		}
	}
	return ctx.Err()
}
