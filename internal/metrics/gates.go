package metrics

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

type gateInstruments struct {
	wait, hold      metric.Float64Histogram
	handOvers, lost metric.Int64Counter
	queueLength     metric.Int64UpDownCounter
}

func newGateInstruments(m metric.Meter) gateInstruments {
	return gateInstruments{
		wait: gateWait.histogram(m), hold: gateHold.histogram(m),
		handOvers: gateHandOver.counter(m), lost: gateLost.counter(m), queueLength: gateQueueLen.upDown(m),
	}
}

// Gate measures a gate. A nil Gate measures nothing.
type Gate struct {
	m      *Metrics
	label  string
	option *option
}

func newGate(m *Metrics, label string) *Gate {
	return &Gate{m: m, label: label, option: newOption(gateName.String(label))}
}

// Gate returns what a gate is measured with.
func (m *Metrics) Gate(name string) *Gate {
	if m == nil {
		return nil
	}
	return m.gates.of(name)
}

// Queued counts requests that begin to wait, or with a negative n that end.
func (g *Gate) Queued(ctx context.Context, n int64) {
	if g != nil {
		g.m.gate.queueLength.Add(ctx, n, g.option.add...)
	}
}

// Granted records a turn that begins. The turn is any value that identifies it.
func (g *Gate) Granted(ctx context.Context, turn any, waited time.Duration, handedOver bool) {
	if g == nil {
		return
	}
	g.m.gate.wait.Record(ctx, waited.Seconds(), g.option.record...)
	if handedOver {
		g.m.gate.handOvers.Add(ctx, 1, g.option.add...)
	}
	g.m.held.begin(turn, g.label)
}

// Ended records a turn that ends; further calls for the turn do nothing.
func (g *Gate) Ended(ctx context.Context, turn any, lost bool) {
	if g == nil {
		return
	}
	held, known := g.m.held.end(turn)
	if !known {
		return
	}
	g.m.gate.hold.Record(ctx, held.Seconds(), g.option.record...)
	if lost {
		g.m.gate.lost.Add(ctx, 1, g.option.add...)
	}
}

// heldTurns are the turns that the process holds.
type heldTurns struct {
	mu    sync.Mutex
	turns map[any]heldTurn
	seen  map[string]struct{} // labels that were reported, and are reported as 0 afterwards
}

type heldTurn struct {
	label string
	since time.Time
}

func (h *heldTurns) begin(turn any, label string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns == nil {
		h.turns, h.seen = map[any]heldTurn{}, map[string]struct{}{}
	}
	h.turns[turn] = heldTurn{label, time.Now()}
	h.seen[label] = struct{}{}
}

func (h *heldTurns) end(turn any) (held time.Duration, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, known := h.turns[turn]
	delete(h.turns, turn)
	return time.Since(t.since), known
}

// oldest returns the age of the oldest turn of each gate.
func (h *heldTurns) oldest() map[string]time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	ages := make(map[string]time.Duration, len(h.seen))
	for label := range h.seen {
		ages[label] = 0
	}
	for _, t := range h.turns {
		ages[t.label] = max(ages[t.label], time.Since(t.since))
	}
	return ages
}

// observeGates reports the gates that are in use by any process, and those
// that this process held: it knows more exactly since when.
func (m *Metrics) observeGates(to metric.Observer, o *observers, all []GateState) {
	ages, waiting := m.held.oldest(), map[string]int64{}
	for _, g := range all {
		label := m.gates.of(g.Name).label
		ages[label] = max(ages[label], g.Held)
		waiting[label] += g.Waiting
	}
	for label, held := range ages {
		to.ObserveFloat64(o.gateHeld, held.Seconds(), newOption(gateName.String(label)).observe...)
	}
	for label, n := range waiting {
		to.ObserveInt64(o.gateWaiting, n, newOption(gateName.String(label)).observe...)
	}
}
