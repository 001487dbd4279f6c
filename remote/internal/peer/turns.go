package peer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// turnTimeout is how long a local actor may take to handle the messages of a peer.
// Only an actor that crashes repeatedly takes so long.
const turnTimeout = 30 * time.Second

// Turns keeps the mailboxes of local actors short: a sender continues when the
// actors have handled its previous messages. It is a process that receives their
// acknowledgements.
type Turns struct {
	system *actor.ActorSystem
	self   *actor.PID
	asked  int64
	came   atomic.Int64
	wake   chan struct{} // has room for one
}

// NewTurns registers a Turns with an ActorSystem.
func NewTurns(system *actor.ActorSystem) *Turns {
	t := &Turns{system: system, wake: make(chan struct{}, 1)}
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

// Take sends a Touch to the actors that received a message, and waits until all
// earlier ones are answered.
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
			return status.Error(codes.Unavailable, "an actor does not handle its messages")
		}
	}
	return ctx.Err()
}
