package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// turn is a turn at a gate that a Client holds or waits for.
type turn struct {
	gates  *Gates
	link   *clientLink
	gate   string
	place  uint64
	fence  uint64 // set before the caller gets the turn
	waited time.Duration
	ctx    context.Context //nolint:containedctx // what Context returns
	end    context.CancelCauseFunc

	mu       sync.Mutex
	until    time.Time     // when it ends, as confirmed by the node
	timer    *time.Timer   // cancels ctx at until; nil: not confirmed yet, acquire owns the turn
	over     bool          // whether it was lost or released
	released chan struct{} // closed when the node has answered the release; nil: not released
	result   error         // of the release; set before released is closed
}

// newTurn returns a turn with a new place, or nil if the client is closed.
func (s *clientLink) newTurn(ctx context.Context, g *Gates, gate string) *turn {
	t := &turn{gates: g, link: s, gate: gate}
	t.ctx, t.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns == nil {
		return nil
	}
	s.next++
	t.place = s.next
	s.turns[t.place] = t
	return t
}

// forget removes the turn from the link.
func (t *turn) forget() {
	t.link.mu.Lock()
	defer t.link.mu.Unlock()
	delete(t.link.turns, t.place)
}

func (t *turn) Gate() string             { return t.gate }
func (t *turn) Fence() uint64            { return t.fence }
func (t *turn) Waited() time.Duration    { return t.waited }
func (t *turn) Context() context.Context { return t.ctx }

func (t *turn) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

func (t *turn) Guard(ctx context.Context, resource string) error {
	return t.gates.Guard(ctx, t.gate, resource, t.fence)
}

// extend requests an extension of the turn. The remaining time in the answer counts
// from the request, so the turn never lasts longer here than at the node. Errors:
// gate.ErrTurnLost, or those of Ask.
func (t *turn) extend(ctx context.Context) error {
	sent := time.Now()
	answer, err := t.link.Ask(ctx, &messages.ExtendTurnRequest{Gate: t.gate, Place: t.place, Fence: t.fence})
	if err != nil {
		return err
	}
	switch a := answer.(type) {
	case *messages.ExtendTurnResponse:
		if a.GetGood() == nil || !t.goodUntil(sent.Add(a.GetGood().AsDuration())) {
			t.lose(gate.ErrTurnLost)
			return gate.ErrTurnLost
		}
		return nil
	case *messages.Error:
		return wakebell.AnswerError(a)
	default:
		return fmt.Errorf("unexpected answer %T", answer)
	}
}

// goodUntil sets the end of the turn. It returns false if the turn has ended.
func (t *turn) goodUntil(until time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := time.Until(until)
	if t.over || left <= 0 || (t.timer != nil && !t.timer.Stop()) {
		return false
	}
	t.until = until
	t.timer = time.AfterFunc(left, func() { t.lose(gate.ErrTurnLost) })
	return true
}

// lose ends the turn with a cause, unless it is over.
func (t *turn) lose(cause error) {
	if had, first := t.finish(cause, nil); had && first {
		t.freePlace()
	}
}

// finish cancels the turn's context. It reports whether the Client held the turn,
// and whether this is the first call.
func (t *turn) finish(cause error, released chan struct{}) (had, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return t.timer != nil, false
	}
	t.over, t.released = true, released
	if t.timer != nil {
		t.timer.Stop()
	}
	t.end(cause)
	return t.timer != nil, true
}

// freePlace removes the turn and frees its place for another one.
func (t *turn) freePlace() {
	t.forget()
	<-t.link.places
}

// minExtend is the shortest pause between two extensions.
const minExtend = 20 * time.Millisecond

// keep extends the turn until it is over.
func (t *turn) keep() {
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-time.After(max(time.Until(t.Until())/3, minExtend)):
			// The turn ends by itself if it is not extended. The timeout leaves time
			// for a second request if an answer is lost.
			ctx, cancel := context.WithTimeout(t.ctx, max(time.Until(t.Until())/2, minExtend))
			_ = t.extend(ctx)
			cancel()
		}
	}
}

// Release implements gate.Turn.
func (t *turn) Release(ctx context.Context) error {
	if err := t.giveBack(ctx); err != nil {
		return fmt.Errorf("release %q (fence %d): %w", t.gate, t.fence, err)
	}
	return nil
}

// Do implements gate.Turn.
func (t *turn) Do(ctx context.Context, fn func(ctx context.Context, fence uint64) error) error {
	return actorgates.InTurn(ctx, t, fn)
}

// giveBack releases the turn and waits for the node's answer.
func (t *turn) giveBack(ctx context.Context) error {
	t.release(nil)
	t.mu.Lock()
	released := t.released
	t.mu.Unlock()
	if released == nil {
		return gate.ErrTurnLost
	}
	select {
	case <-released:
		return t.result
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release ends the turn unless it is over. If the Client held the turn, release also
// sends the release to the node and returns true.
func (t *turn) release(cause error) bool {
	had, first := t.finish(cause, make(chan struct{}))
	if had && first {
		t.link.done.Go(t.returnToNode)
	}
	return had && first
}

// returnToNode sends the release to the node. If the node cannot be reached, it takes
// the turn back when the turn's lease expires.
func (t *turn) returnToNode() {
	ctx, cancel := context.WithDeadline(t.link.ctx, t.Until())
	defer cancel()
	for again := false; ; again = true {
		answer, err := t.link.Ask(ctx, &messages.ReleaseTurnRequest{Gate: t.gate, Place: t.place, Fence: t.fence})
		if errors.Is(err, errBroken) {
			continue
		}
		released, ok := answer.(*messages.ReleaseTurnResponse)
		switch {
		case err != nil:
			t.result = t.link.cfg.unavailable(fmt.Errorf("the node takes the turn back when its lease expires: %w", err))
		case !ok:
			t.result = fmt.Errorf("unexpected answer %T", answer)
		case released.GetReason() != "" && !again: // a refused repetition: the first request worked
			t.result = gate.ErrTurnLost
		}
		t.freePlace()
		close(t.released)
		return
	}
}

// turnLost ends a turn that the node reports as lost.
func (s *clientLink) turnLost(m *messages.TurnLost) {
	s.mu.Lock()
	t := s.turns[m.GetPlace()]
	s.mu.Unlock()
	if t != nil && t.gate == m.GetGate() {
		t.lose(gate.ErrTurnLost)
	}
}

// releaseAll releases all turns of a client that is closed, and waits up to
// wire.Grace for the node's answers. There are no new turns afterwards.
func (s *clientLink) releaseAll() {
	s.mu.Lock()
	all := s.turns
	s.turns = nil
	s.mu.Unlock()
	var had []*turn
	for _, t := range all {
		if t.release(gate.ErrClosed) {
			had = append(had, t)
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, wire.Grace)
	defer cancel()
	for _, t := range had {
		_ = t.Release(ctx) // on an error the end of the session releases it
	}
}
