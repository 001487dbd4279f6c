package leasing

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// sim is a simulation: nodes, each with a core, and a source, in virtual time. All that is
// random comes from its seed, so a seed replays a run.
type sim struct {
	t      testing.TB
	random *rand.Rand
	now    time.Time
	due    []simEvent // sorted by instant, then by order
	order  int
	source *simSource
	nodes  []*simNode
	faulty bool // exchanges fail now and then

	succeeded map[string]bool // by a handler
	trace     io.Writer       // what happened
	steps     int
}

type simEvent struct {
	at    time.Time
	order int
	do    func()
}

// after has something happen after a time.
func (s *sim) after(d time.Duration, do func()) {
	s.order++
	e := simEvent{s.now.Add(d), s.order, do}
	i, _ := slices.BinarySearchFunc(s.due, e, func(a, b simEvent) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.order - b.order
	})
	s.due = slices.Insert(s.due, i, e)
}

// run lets events happen until an instant.
func (s *sim) run(until time.Time) {
	for len(s.due) > 0 && !s.due[0].at.After(until) {
		e := s.due[0]
		s.due = s.due[1:]
		s.now = e.at
		e.do()
		if s.steps++; s.steps > 1_000_000 {
			s.t.Fatal("too many steps: a core ticks again and again")
		}
	}
	s.now = until
}

func (s *sim) note(format string, args ...any) {
	_, err := fmt.Fprintf(s.trace, "%v %s\n", s.now.Sub(start), fmt.Sprintf(format, args...))
	require.NoError(s.t, err)
}

// between returns a random duration.
func (s *sim) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)))
}

func (s *sim) chance(p float64) bool { return s.random.Float64() < p }

// TestSimulation runs nodes against a source that loses requests and replies, with handlers
// that are slow, fail, hang and crash, and with nodes that crash and drain. No timer is
// handled twice at once or lost, and a run is a function of its seed.
func TestSimulation(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			first, again := simulate(t, seed), simulate(t, seed)
			require.Equal(t, first, again, "the same events have the same effects")
		})
	}
}

// simulate runs a simulation and returns the digest of what happened.
func simulate(t testing.TB, seed uint64) uint64 {
	t.Helper()
	digest := fnv.New64a()
	s := &sim{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), now: start, source: newSimSource(), faulty: true,
		succeeded: map[string]bool{}, trace: digest,
	}
	const timers = 300 // a quarter of them while exchanges fail
	for n := range timers {
		s.source.schedule(fmt.Sprint("timer-", n), start.Add(s.between(0, 4*time.Minute)))
	}
	settings := Settings{
		MaxConcurrent: 2 + s.random.IntN(80), LeaseTTL: s.between(2*time.Second, 10*time.Second),
		PollingInterval: time.Second, MaxPollingInterval: 5 * time.Second, Retry: Retry{Initial: time.Second, Max: time.Minute, MaxFailures: 50},
	}
	if s.chance(0.5) {
		settings.MaxLeaseAge = 3 * settings.LeaseTTL
	}
	window := AutomaticWindow
	if s.chance(0.3) {
		window = 0
	}
	for n := range 1 + s.random.IntN(3) {
		node := &simNode{sim: s, name: fmt.Sprint("node-", n), settings: settings, window: window}
		s.nodes = append(s.nodes, node)
		node.start()
	}
	s.run(start.Add(time.Minute))
	s.faulty = false
	s.run(start.Add(30 * time.Minute))
	require.Empty(t, s.source.timers, "timers that were not handled")
	require.Len(t, s.source.acked, timers-len(s.source.dead))
	for id := range s.source.acked {
		require.True(t, s.succeeded[id], "%s was acked, and no handler has succeeded", id)
	}
	for _, n := range s.nodes {
		require.Zero(t, n.core.Leases(), n.name)
		require.Zero(t, n.core.reserved-n.wanted(), n.name)
		n.event(func(c *Core) { c.Drain(s.now, time.Second) })
	}
	s.run(s.now.Add(10 * time.Second))
	for _, n := range s.nodes {
		require.True(t, n.drained, n.name)
	}
	return digest.Sum64()
}

var errSimulated = errors.New("simulated fault")

// Send carries a flight to the source and its reply back, unless a fault prevents that.
func (n *simNode) Send(f *Flight) {
	s, life := n.sim, n.life
	f.Sent = s.now
	n.sent[f.Stream()] = f
	s.note("%s sends %d/%d want %d settle %d extend %d", n.name, f.Stream(), f.Request.Sequence, f.Request.Want, len(f.Request.Settle), len(f.Request.Extend))
	answer := func(do func(c *Core)) {
		s.after(s.between(100*time.Microsecond, 3*time.Millisecond), func() {
			if n.life == life {
				n.sent[f.Stream()] = nil
				n.event(do)
			}
		})
	}
	s.after(s.between(100*time.Microsecond, 3*time.Millisecond), func() {
		fault := s.faulty && s.chance(0.05)
		err := errSimulated
		if s.chance(0.5) {
			err = exchange.ErrUnavailable
		}
		if fault && s.chance(0.5) { // the request is lost
			answer(func(c *Core) { c.Failed(s.now, f, err) })
			return
		}
		request := f.Request
		reply, stale := s.source.exchange(s.now, &request)
		switch {
		case fault: // the reply is lost
			answer(func(c *Core) { c.Failed(s.now, f, err) })
		case stale != nil:
			answer(func(c *Core) { c.Failed(s.now, f, stale) })
		default:
			answer(func(c *Core) { c.Answered(s.now, s.now, f, reply) })
		}
	})
}

// handle runs the handlers that are free.
func (n *simNode) handle() {
	s, life := n.sim, n.life
	for n.running < n.concurrency && len(n.queue) > 0 {
		l := n.queue[0]
		n.queue = n.queue[1:]
		n.running++
		r := l.Run.(*simRun)
		r.begun = true
		if r.cause == nil {
			s.entitled(l)
		}
		n.handled[l] = true
		s.note("%s begins %s, claim %d", n.name, l.ID, l.Claims)
		takes := s.between(0, 20*time.Millisecond)
		if s.chance(0.05) {
			takes = s.between(0, 4*n.settings.LeaseTTL)
		}
		s.after(takes, func() {
			if n.life == life {
				n.finish(l)
			}
		})
	}
}

// entitled checks that a timer is due, and that no other handler has a right to it.
func (s *sim) entitled(l *Lease) {
	if s.now.Before(l.Activation) {
		s.t.Fatalf("%v: %s is handled %v before it is due", s.now.Sub(start), l.ID, l.Activation.Sub(s.now))
	}
	for _, n := range s.nodes {
		for other := range n.handled {
			if other.ID == l.ID && other.Run.(*simRun).cause == nil {
				s.t.Fatalf("%v: %s has the lease of %s, and another handler begins", s.now.Sub(start), n.name, l.ID)
			}
		}
	}
}

// finish ends a handler.
func (n *simNode) finish(l *Lease) {
	s := n.sim
	delete(n.handled, l)
	if l.Run.(*simRun).abandoned { // its slot is free already
		n.event(func(c *Core) { c.Finished(s.now, l, Outcome{Kind: Failed}) })
		return
	}
	n.running--
	outcome := Outcome{}
	switch p := s.random.Float64(); {
	case l.Run.Cause() != nil && p < 0.5:
		outcome = Outcome{Kind: Failed, Reason: "interrupted"}
	case s.faulty && p < 0.1:
		outcome = Outcome{Kind: Failed, Reason: "no"}
	case s.faulty && p < 0.11:
		outcome = Outcome{Kind: Crashed}
	case s.faulty && p < 0.12:
		outcome = Outcome{Kind: Panicked, Reason: "panic"}
	case s.faulty && p < 0.14:
		outcome = Outcome{Kind: Released}
	case s.faulty && p < 0.15:
		outcome = Outcome{Kind: Rejected, Reason: "never"}
	default:
		s.succeeded[l.ID] = true
	}
	s.note("%s ends %s: %d", n.name, l.ID, outcome.Kind)
	n.event(func(c *Core) { c.Finished(s.now, l, outcome) })
	if s.faulty && s.chance(0.002) {
		n.crash()
	}
}

// crash ends a node, which starts again soon.
func (n *simNode) crash() {
	n.sim.note("%s crashes", n.name)
	n.core.Stop()
	n.life++
	n.handled, n.queue, n.running = map[*Lease]bool{}, nil, 0
	n.sim.after(n.sim.between(0, time.Second), n.start)
}
