// Package pulse knows whether what a dashboard reads from answers: Redis, or a node.
package pulse

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/usercode"
)

// Limit bounds a check: what takes longer does not answer.
const Limit = 1500 * time.Millisecond

// Pulse checks on demand. All callers share one check.
type Pulse struct {
	check func(context.Context) (answers bool)

	mu      sync.Mutex
	running chan struct{} // closed when the check that runs has ended; nil: none runs
	ended   time.Time     // the last check
	state   State
}

// State is what the last check found.
type State struct {
	Down bool
	// Since is when the last check began that was answered; if none was, when the first
	// check began.
	Since time.Time
}

// New returns a Pulse. check reports whether there was an answer before its context ended.
func New(check func(context.Context) (answers bool)) *Pulse {
	return &Pulse{check: check}
}

// State returns the state by a check that ended at most maxAge ago, and checks if there
// was none. It waits for the check, unless nothing answered the one before: a page must
// not wait in an outage that is known.
func (p *Pulse) State(ctx context.Context, maxAge time.Duration) State {
	p.mu.Lock()
	if p.running == nil && (p.ended.IsZero() || time.Since(p.ended) >= maxAge) {
		p.running = make(chan struct{})
		go p.run(context.WithoutCancel(ctx), p.running)
	}
	state, running := p.state, p.running
	p.mu.Unlock()
	if running == nil || state.Down {
		return state
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *Pulse) run(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	begun := time.Now()
	answers := false // also if the check panics
	_ = usercode.Called("a check", func() error {
		answers = p.check(ctx)
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.running = time.Now(), nil
	p.state.Down = !answers
	if answers || p.state.Since.IsZero() {
		p.state.Since = begun
	}
	close(done)
}
