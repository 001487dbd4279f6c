package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
)

// maxPlaces bounds the turns that a Client has or waits for.
const maxPlaces = 1000

// Gates gives turns at the gates of a System in another process. A turn belongs
// to the link's node, which keeps it, and to the Client, which tells the node at
// a third of the time that is left that it is there. When the link breaks, a
// turn lasts as long as it is known to be good, up to DialConfig.TurnTTL: over a
// new link to the same node it goes on, else its context ends with ErrTurnLost,
// before anybody else can have it. Who waits when the link breaks begins anew,
// behind the others.
type Gates struct{ client *Client }

var _ gate.Locker = (*Gates)(nil)

// Gates are those of the System.
func (c *Client) Gates() *Gates { return &Gates{c} }

// Acquire is that of gate.Gates. It waits for as long as ctx allows, and asks
// the node every 15 s whether it still waits there. Errors are its own, wakebell.ErrOverloaded
// beyond 1,000 turns and waits with the same credentials, and
// wakebell.ErrUnavailable when the link is dead.
func (g *Gates) Acquire(ctx context.Context, name string) (gate.Turn, error) {
	return g.acquire(ctx, name, false)
}

// TryAcquire is that of gate.Gates.
func (g *Gates) TryAcquire(ctx context.Context, name string) (gate.Turn, error) {
	return g.acquire(ctx, name, true)
}

// With is that of gate.Gates.
func (g *Gates) With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error {
	turn, err := g.Acquire(ctx, name)
	if err != nil {
		return err
	}
	return turn.Do(ctx, fn)
}

// Guard is that of gate.Gates.
func (g *Gates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	_, err := call[*messages.GuardTurnResponse](ctx, g.client, &messages.GuardTurnRequest{Gate: name, Resource: resource, Fence: fence})
	return err
}

func (g *Gates) acquire(ctx context.Context, name string, try bool) (gate.Turn, error) {
	link := g.client.link
	select {
	case link.places <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("acquire %q: %w", name, context.Cause(ctx))
	}
	asked := time.Now()
	for {
		t := link.newTurn(ctx, g, name)
		if t == nil {
			<-link.places
			return nil, fmt.Errorf("acquire %q: %w", name, gate.ErrClosed)
		}
		err := t.take(ctx, try)
		if err == nil {
			t.waited = time.Since(asked)
			link.done.Go(t.keep)
			return t, nil
		}
		t.forget()
		if errors.Is(err, errAgain) && ctx.Err() == nil {
			continue
		}
		<-link.places
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("acquire %q: %w", name, err)
	}
}

// errAgain says that the place or turn was lost on the way.
var errAgain = errors.New("ask again")

// take asks for the turn, and then how long it is good: the node began to count
// when it gave it. While it waits it asks again for the same place, which finds
// a turn whose answer was lost, and a place that the node does not know.
func (t *turn) take(ctx context.Context, try bool) error {
	var answer messages.Answer
	err := errUnanswered
	for errors.Is(err, errUnanswered) {
		answer, err = t.link.ask(ctx, &messages.AcquireTurnRequest{
			Gate: t.gate, Place: t.place, Try: try, Ttl: durationpb.New(t.gates.client.cfg.TurnTTL),
		})
	}
	switch {
	case errors.Is(err, errBroken):
		return errAgain
	case err != nil:
		t.link.send(&messages.ReleaseTurnRequest{Gate: t.gate, Place: t.place})
		return err
	}
	switch a := answer.(type) {
	case *messages.Error:
		return wakebell.AnswerError(a)
	case *messages.TurnRefused:
		return wakebell.AnswerError(messages.Failure(a.GetCode(), a.GetReason()))
	case *messages.Turn:
		t.fence = a.GetFence()
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
	for err = errBroken; errors.Is(err, errBroken); {
		err = t.extend(ctx)
	}
	if err != nil {
		t.link.send(&messages.ReleaseTurnRequest{Gate: t.gate, Place: t.place, Fence: t.fence})
	}
	if errors.Is(err, gate.ErrTurnLost) {
		return errAgain
	}
	return err
}
