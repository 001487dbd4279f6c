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

// maxPlaces is how many turns a Client may hold or wait for.
const maxPlaces = 1000

// Gates acquires turns at the gates of a System in another process. The node
// extends the turn's lease in Redis, and the Client extends the turn at the node
// each time a third of the remaining time has passed. When the link breaks, the
// turn stays valid for up to DialConfig.TurnTTL after the last extension. If the
// Client reconnects to the same node in time, the turn continues. Otherwise its
// context is cancelled with gate.ErrTurnLost before the next turn can begin. A call
// that waits for a turn when the link breaks queues again, behind the other waiters.
type Gates struct{ client *Client }

var _ gate.Locker = (*Gates)(nil)

// Gates returns the gates of the System.
func (c *Client) Gates() *Gates { return &Gates{c} }

// Acquire does what gate.Gates.Acquire does. It waits until ctx ends, and confirms
// its place at the node every 15 s. Errors are those of gate.Gates.Acquire;
// wakebell.ErrOverloaded beyond 1,000 turns and waiting calls of a process with the
// same credentials; wakebell.ErrUnavailable when the link has been down for
// DialConfig.DeadLink; and wakebell.ErrDraining when the node has been starting or
// stopping for so long, or until the deadline of ctx.
func (g *Gates) Acquire(ctx context.Context, name string) (gate.Turn, error) {
	return g.acquire(ctx, name, false)
}

// TryAcquire does what gate.Gates.TryAcquire does.
func (g *Gates) TryAcquire(ctx context.Context, name string) (gate.Turn, error) {
	return g.acquire(ctx, name, true)
}

// With does what gate.Gates.With does.
func (g *Gates) With(ctx context.Context, name string, fn func(ctx context.Context, fence uint64) error) error {
	turn, err := g.Acquire(ctx, name)
	if err != nil {
		return err
	}
	return turn.Do(ctx, fn)
}

// Guard does what gate.Gates.Guard does.
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
	asked, pause := time.Now(), 20*time.Millisecond
	var draining time.Time // since when the node starts or stops; zero: it does not
	for {
		t := link.newTurn(ctx, g, name)
		if t == nil {
			<-link.places
			return nil, fmt.Errorf("acquire %q: %w", name, gate.ErrClosed)
		}
		err := t.Take(ctx, try)
		if err == nil {
			t.waited = time.Since(asked)
			link.done.Go(t.keep)
			return t, nil
		}
		t.forget()
		if errors.Is(err, errAgain) && ctx.Err() == nil {
			continue
		}
		switch starts := errors.Is(err, wakebell.ErrDraining); {
		case !starts:
			draining = time.Time{}
		case draining.IsZero():
			draining = time.Now()
		}
		if temporary(err) && g.client.waitForTurn(ctx, draining, pause) {
			pause = min(2*pause, time.Second)
			continue
		}
		<-link.places
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("acquire %q: %w", name, err)
	}
}

// waitForTurn waits for d before a turn is requested again, and reports whether it may be. A node that
// starts or stops, which it does since draining, is waited for without a deadline as if its link was
// down; an overload is not.
func (c *Client) waitForTurn(ctx context.Context, draining time.Time, d time.Duration) bool {
	if _, bounded := ctx.Deadline(); bounded || draining.IsZero() || time.Since(draining) >= c.cfg.DeadLink {
		return c.wait(ctx, d) == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// errAgain reports that the place or the turn was lost because the link broke.
var errAgain = errors.New("acquire again")

// Take requests the turn and then extends it, because the node counts the turn's
// time from the grant. While Take waits, it repeats the request for the same place:
// that finds a turn whose answer was lost, and makes a new place if the node has
// none.
func (t *turn) Take(ctx context.Context, try bool) error {
	var answer messages.Answer
	err := errUnanswered
	for errors.Is(err, errUnanswered) {
		answer, err = t.link.Ask(ctx, &messages.AcquireTurnRequest{
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
