package fleet

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/gate"
)

// turn is a turn at a gate.
type turn struct {
	gate     string
	at       string
	fence    uint64
	from, to time.Time // to is when its context ended or its release began; zero: it has not
}

// guarding is a call of Guard.
type guarding struct {
	gate     string
	fence    uint64
	from, to time.Time
	accepted bool
}

// turnTTLs are those of turns over HTTP: that of the gates, a shorter and a longer one.
var turnTTLs = []time.Duration{leaseTTL, leaseTTL / 2, time.Minute}

// locker returns the gates that an operation uses; nil: their process does not run.
func (f *fleet) locker(o Op) (gate.Locker, string) {
	n, c := f.nodes[o.A%len(f.nodes)], f.clients[o.A%len(f.clients)]
	if o.C%3 == 0 {
		if run := n.running(); run != nil {
			return run.sys.Gates(), n.name()
		}
		return nil, ""
	}
	if s := c.running(); s != nil && o.C%3 == 1 {
		return webGates{f, s, s.at(f.nodes[o.B%len(f.nodes)]), turnTTLs[o.A%len(turnTTLs)]}, c.name() + " over HTTP"
	} else if s != nil {
		return s.remote.Gates(), c.name()
	}
	return nil, ""
}

// takeTurn waits for a turn, holds it for up to two leases, and releases it. Some
// give up before they have it, and some do not wait.
func (f *fleet) takeTurn(o Op) {
	gates, at := f.locker(o)
	if gates == nil {
		return
	}
	name := "gate-" + strconv.Itoa(o.B%2)
	ctx := f.ctx
	if o.C%5 == 0 {
		hurried, cancel := context.WithTimeout(f.ctx, time.Duration(o.B)*50*time.Millisecond)
		defer cancel()
		ctx = hurried
	}
	acquire := gates.Acquire
	if o.C%7 == 0 {
		acquire = gates.TryAcquire
	}
	held, err := acquire(ctx, name)
	if err != nil {
		f.trace("%s: no turn at %s: %v", at, name, err)
		return
	}
	t := f.beginTurn(name, at, held)
	f.hold(o, held)
	f.endTurn(t)
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	if err := held.Release(ctx); err != nil {
		f.trace("%s: release %s %d: %v", at, name, held.Fence(), err)
	}
}

func (f *fleet) beginTurn(name, at string, held gate.Turn) *turn {
	t := &turn{gate: name, at: at, fence: held.Fence(), from: time.Now()}
	f.record.mu.Lock()
	f.record.turns = append(f.record.turns, t)
	f.record.line("%s: turn %d at %s begins", at, t.fence, name)
	f.record.mu.Unlock()
	context.AfterFunc(held.Context(), func() { f.endTurn(t) })
	return t
}

func (f *fleet) endTurn(t *turn) {
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	if t.to.IsZero() {
		t.to = time.Now()
		f.record.line("%s: turn %d at %s ends", t.at, t.fence, t.gate)
	}
}

// hold holds a turn and guards some writes with it, now and then one after its end.
func (f *fleet) hold(o Op, held gate.Turn) {
	for i := range 1 + o.B%3 {
		if i > 0 {
			select {
			case <-time.After(time.Duration(1+o.C) * leaseTTL / 100):
			case <-held.Context().Done():
				if o.C%2 == 0 {
					return
				}
			}
		}
		f.guard(held)
	}
}

func (f *fleet) guard(held gate.Turn) {
	g := guarding{gate: held.Gate(), fence: held.Fence(), from: time.Now()}
	ctx, cancel := context.WithTimeout(f.ctx, callTimeout)
	defer cancel()
	err := held.Guard(ctx, "row")
	g.to, g.accepted = time.Now(), err == nil
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	f.record.guards = append(f.record.guards, g)
	f.record.line("guard %d at %s: %v", g.fence, g.gate, err)
	if len(f.record.losses) > 0 {
		return
	}
	if errors.Is(err, gate.ErrFenceUnknown) || errors.Is(err, gate.ErrFenceRegressed) {
		f.record.trouble = append(f.record.trouble, "guard of "+g.gate+": "+err.Error()+", but Redis has lost nothing")
	}
}
