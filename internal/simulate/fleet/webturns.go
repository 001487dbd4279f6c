package fleet

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/gate"
)

// webGates takes turns over HTTP, as a program without a library does.
type webGates struct {
	fleet   *fleet
	session *session
	at      web
	ttl     time.Duration
}

// Acquire asks for a turn until it has it or the context ends.
func (g webGates) Acquire(ctx context.Context, name string) (gate.Turn, error) {
	for {
		t, err := g.ask(ctx, name, 8*time.Second)
		if err == nil || ctx.Err() != nil || !errors.Is(err, wakebell.ErrUnavailable) && !errors.Is(err, gate.ErrHeld) {
			return t, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-g.session.ctx.Done():
			return nil, g.session.ctx.Err()
		}
	}
}

// TryAcquire asks for a turn once.
func (g webGates) TryAcquire(ctx context.Context, name string) (gate.Turn, error) {
	return g.ask(ctx, name, 0)
}

func (g webGates) With(context.Context, string, func(context.Context, uint64) error) error {
	return errors.ErrUnsupported // no operation uses it
}

func (g webGates) Guard(ctx context.Context, name, resource string, fence uint64) error {
	return g.at.call(ctx, http.MethodPost, "/v1/gates/"+name+":guard", map[string]any{"resource": resource, "fence": fence}, &struct{}{})
}

// ask makes one request for a turn. What the answer says counts from when the turn was granted,
// which was not before the request had been sent and had waited.
func (g webGates) ask(ctx context.Context, name string, wait time.Duration) (gate.Turn, error) {
	var got struct {
		Token  string `json:"token"`
		Fence  uint64 `json:"fence"`
		TTL    string `json:"ttl"`
		Waited string `json:"waited"`
	}
	ctx, cancel := context.WithTimeout(ctx, wait+gatewayTimeout)
	defer cancel()
	defer context.AfterFunc(g.session.ctx, cancel)()
	sent := time.Now()
	path := "/v1/gates/" + name + "/turns"
	if err := g.at.call(ctx, http.MethodPost, path, map[string]any{"ttl": g.ttl.String(), "wait": wait.String()}, &got); err != nil {
		return nil, err
	}
	waited, err := time.ParseDuration(got.Waited)
	g.fleet.check(err, "read for how long a turn was waited for")
	ttl, err := time.ParseDuration(got.TTL)
	g.fleet.check(err, "read the ttl of a turn")
	t := &webTurn{webGates: g, gate: name, path: path + "/" + got.Token, fence: got.Fence, waited: waited}
	t.ctx, t.end = context.WithCancelCause(g.session.ctx)
	t.timer = time.AfterFunc(0, func() {})
	t.lasts(sent.Add(waited + ttl))
	go t.keep(ttl)
	return t, nil
}

// webTurn is a turn that was taken over HTTP.
type webTurn struct {
	webGates
	gate, path string
	fence      uint64
	waited     time.Duration
	ctx        context.Context //nolint:containedctx // what Context returns
	end        context.CancelCauseFunc

	mu    sync.Mutex
	until time.Time
	timer *time.Timer // ends ctx at until
}

func (t *webTurn) Gate() string             { return t.gate }
func (t *webTurn) Fence() uint64            { return t.fence }
func (t *webTurn) Waited() time.Duration    { return t.waited }
func (t *webTurn) Context() context.Context { return t.ctx }

func (t *webTurn) Until() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.until
}

// lasts sets until when the turn lasts.
func (t *webTurn) lasts(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.until = until
	t.timer = time.AfterFunc(time.Until(until), func() { t.end(gate.ErrTurnLost) })
}

// keep extends the turn at a third of what its answer said, until it has ended.
func (t *webTurn) keep(ttl time.Duration) {
	for {
		select {
		case <-time.After(ttl / 3):
		case <-t.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(t.ctx, ttl/3)
		var got struct {
			TTL string `json:"ttl"`
		}
		sent := time.Now()
		err := t.at.call(ctx, http.MethodPost, t.path+":extend", nil, &got)
		cancel()
		switch {
		case errors.Is(err, gate.ErrTurnLost):
			t.end(err)
		case err != nil:
			t.fleet.trace("extend turn %d at %s: %v", t.fence, t.gate, err)
		default:
			good, err := time.ParseDuration(got.TTL)
			t.fleet.check(err, "read the ttl of a turn")
			t.lasts(sent.Add(good))
		}
	}
}

func (t *webTurn) Guard(ctx context.Context, resource string) error {
	return t.webGates.Guard(ctx, t.gate, resource, t.fence)
}

// Release gives the turn back.
func (t *webTurn) Release(ctx context.Context) error {
	t.end(context.Canceled)
	return t.at.call(ctx, http.MethodPost, t.path+":release", nil, &struct{}{})
}

func (t *webTurn) Do(context.Context, func(context.Context, uint64) error) error {
	return errors.ErrUnsupported // no operation uses it
}
