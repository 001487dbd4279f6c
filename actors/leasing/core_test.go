package leasing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The arrays of a core are used again. What they have passed on would stay in
// memory as long as the topic is open.
func TestSettledLeasesAreNotRetained(t *testing.T) {
	t.Parallel()
	c, s := &Core{Config: Config{Policy: &Policy{}, Counters: &observe.Counters{}}, Settings: &Settings{}}, &Stream{}
	var leases []*Lease
	for range 3 {
		leases = append(leases, &Lease{Lease: &exchange.Lease{}, Run: &run{}})
		s.hold(leases[len(leases)-1])
	}
	for _, l := range leases {
		c.Finished(start, l, Outcome{Kind: Released})
	}
	require.Len(t, s.toSettle, 3)
	require.Equal(t, make([]*Lease, 3), s.held[:3])
	settling := s.toSettle
	f := &Flight{}
	c.takeSettlements(s, f)
	require.Len(t, f.Settling, 3)
	require.Equal(t, make([]Settlement, 3), settling)
}

func TestExchangesRejectFewer(t *testing.T) {
	t.Parallel()
	c, s := &Core{Config: Config{Policy: &Policy{}, Counters: &observe.Counters{}}, Settings: &Settings{}}, &Stream{}
	for i := range 900 {
		l := &Lease{Lease: &exchange.Lease{}, Run: &run{}}
		s.hold(l)
		v := Settlement{Lease: l, Kind: exchange.DeadLetter}
		if i%3 == 0 {
			v.Kind = exchange.Ack
		}
		s.toSettle = append(s.toSettle, v)
	}
	for _, n := range []int{76, 75, 75, 75, 75, 75, 75, 75, 75, 75, 75, 74} { // 50 rejects, and the acks before the next one
		f := &Flight{}
		c.takeSettlements(s, f)
		require.Len(t, f.Settling, n)
		require.Equal(t, n == 74, f.complete)
	}
}

func TestExchangesWithLimitsByKeySettleFewer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		flow   exchange.Flow
		counts []int
	}{
		{exchange.Flow{}, []int{400, 50}},
		{exchange.Flow{RateLimit: 1, RatePer: time.Second}, []int{400, 50}},
		{exchange.Flow{PerKey: 1}, []int{150, 150, 150}},
		{exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Second}, []int{150, 150, 150}},
	} {
		c, s := &Core{Config: Config{Policy: &Policy{}, Counters: &observe.Counters{}}, Settings: &Settings{}}, &Stream{}
		c.Flow = test.flow
		for range 450 {
			l := &Lease{Lease: &exchange.Lease{}, Run: &run{}}
			s.hold(l)
			c.Finished(start, l, Outcome{Kind: Released})
		}
		for i, n := range test.counts {
			f := &Flight{}
			c.takeSettlements(s, f)
			require.Len(t, f.Settling, n)
			require.Equal(t, i == len(test.counts)-1, f.complete)
		}
	}
}

// mute does what a core wants and writes nothing down.
type mute struct {
	*world
	flight *Flight
	watch  *Watch
	leases []Lease
	runs   []run
	n      int
}

func (m *mute) Open(int)       {}
func (m *mute) Watch(w *Watch) { m.watch = w }

func (m *mute) EndWatch() (next time.Time) { return next }

func (m *mute) Send(f *Flight) { f.Sent, m.flight = m.now, f }

func (m *mute) NewLease(claimed *exchange.Lease, _ time.Time) *Lease {
	l := &m.leases[m.n]
	l.Lease, l.Run = claimed, &m.runs[m.n]
	m.n++
	return l
}

func (m *mute) Push(*Lease)              {}
func (m *mute) Tune(int, time.Duration)  {}
func (m *mute) Tell(Availability, error) {}

// idle returns a core whose first exchange has found nothing.
func idle(t testing.TB) (*mute, *exchange.Reply) {
	t.Helper()
	m := &mute{world: &world{now: start}}
	m.core = New(Config{
		Effects: m, Counters: &observe.Counters{}, Guards: &Guards{}, Peeks: true,
		Random: func() float64 { return 0.5 }, NewName: func() string { return "name" }, Topic: "t",
	})
	m.core.Start(m.now, &Settings{MaxConcurrent: 100, LeaseTTL: time.Minute, PollingInterval: time.Second, MaxPollingInterval: time.Second}, false)
	m.core.Advance(m.now)
	require.NotNil(t, m.flight)
	none := &exchange.Reply{Remaining: time.Minute, Next: -1}
	m.answer(none)
	return m, none
}

// answer answers the flight, or all peeks of the watch, if there is one.
func (m *mute) answer(r *exchange.Reply) {
	f, w := m.flight, m.watch
	m.flight, m.watch, r.Now = nil, nil, m.now
	switch {
	case f != nil:
		m.core.Answered(m.now, m.now, f, r)
	case w != nil:
		sent, peek := m.now, exchange.PeekReply{Now: m.now, Next: r.Next}
		for next, ok := w.Answered(sent, peek); ok; next, ok = w.Answered(sent, peek) {
			sent = next
		}
		m.now = sent
		m.core.Watched(m.now, w, sent, peek, nil)
	default:
		return
	}
	m.core.Advance(m.now)
}

// TestStepsDoNotAllocate checks that a core allocates flights, and nothing for what it does
// again and again: ticks, hints and the leases of a large exchange.
func TestStepsDoNotAllocate(t *testing.T) { //nolint:paralleltest // allocations of other tests would count
	m, none := idle(t)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		m.now = m.now.Add(time.Millisecond)
		m.core.Tick()
		m.core.Hint(m.now, exchange.Hint{Kind: exchange.HintDue, In: time.Hour, Sent: m.now})
		m.core.Advance(m.now)
	}), "ticks and hints")
	m.now = m.now.Add(time.Second)
	m.core.Advance(m.now)
	require.NotNil(t, m.flight, "the poll is due")
	m.answer(none)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		m.now = m.now.Add(2 * time.Second)
		m.core.Tick()
		m.core.Advance(m.now)
		m.answer(none)
	}), 1.0, "an idle poll allocates its flight, or its watch")
}

// TestSettlementsOfLargeMessagesAreDivided checks how much one exchange settles: a script that takes all
// messages of a busy consumer would hold Redis up.
func TestSettlementsOfLargeMessagesAreDivided(t *testing.T) {
	t.Parallel()
	m, none := idle(t)
	m.leases, m.runs = make([]Lease, 10), make([]run, 10)
	reply := &exchange.Reply{Remaining: time.Minute, Next: -1}
	for i := range m.leases {
		token := exchange.Token(fmt.Sprint(i, strings.Repeat("x", maxHeldBytes/4)))
		reply.Leases = append(reply.Leases, exchange.Lease{ID: fmt.Sprint(i), Claims: 1, Token: token})
		m.runs[i].w = m.world
	}
	m.core.Hint(m.now, exchange.Hint{Kind: exchange.HintDue, Sent: m.now})
	m.core.Advance(m.now)
	m.answer(reply)
	for i := range m.leases {
		m.core.Finished(m.now, &m.leases[i], Outcome{Kind: Succeeded})
	}
	m.core.Advance(m.now)
	for _, n := range []int{4, 4, 2} {
		require.Len(t, m.flight.Settling, n)
		m.answer(none)
	}
	require.EqualValues(t, 10, m.core.Counters.Acked.Load())
}

// collecting looks at the counters whenever its core has something done, as a collection of metrics
// may at any time.
type collecting struct {
	*mute
	first, dead []int64
}

func (l *collecting) look() {
	s := l.core.Counters.Snapshot()
	l.first, l.dead = append(l.first, s.Delivered-s.Repeated), append(l.dead, s.DeadLettered-s.Rejected-s.ExpiredDead)
}

func (l *collecting) Push(*Lease)                                     { l.look() }
func (l *collecting) Pushed(int)                                      { l.look() }
func (l *collecting) Settled(*Flight)                                 { l.look() }
func (l *collecting) DeadLettered(exchange.DeadLettered, *Settlement) { l.look() }

// TestCountersNeverDecrease checks what remains of a counter without the part that is counted
// apart: a monitor takes a decrease for a restart of the process, and counts everything anew.
func TestCountersNeverDecrease(t *testing.T) {
	t.Parallel()
	m, none := idle(t)
	l := &collecting{mute: m}
	m.core.Effects, m.leases, m.runs = l, make([]Lease, 4), make([]run, 4)
	m.core.Counters.DeadLettered.Store(5)
	m.core.Counters.Delivered.Store(5)
	reply := &exchange.Reply{Remaining: time.Minute, Next: -1}
	for i := range m.leases {
		reply.Leases = append(reply.Leases, exchange.Lease{ID: fmt.Sprint(i), Claims: 2})
		m.runs[i].w = m.world
	}
	m.core.Hint(m.now, exchange.Hint{Kind: exchange.HintDue, Sent: m.now})
	m.core.Advance(m.now)
	m.answer(reply)
	for i := range m.leases {
		kind := Rejected
		if i%2 == 1 {
			kind = ExpiredDead
		}
		m.core.Finished(m.now, &m.leases[i], Outcome{Kind: kind})
	}
	m.core.Advance(m.now)
	require.Len(t, m.flight.Settling, 4)
	none.DeadLettered = []exchange.DeadLettered{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3}}
	m.answer(none)
	require.EqualValues(t, 4, m.core.Counters.Repeated.Load())
	require.EqualValues(t, 2, m.core.Counters.Rejected.Load())
	require.EqualValues(t, 2, m.core.Counters.ExpiredDead.Load())
	require.IsNonDecreasing(t, append([]int64{5}, l.first...))
	require.IsNonDecreasing(t, append([]int64{5}, l.dead...))
}

// TestBreakerOfEarlierCoreIsReported checks that operators learn of a breaker that has become
// half-open between the crash of a poller and its restart.
func TestBreakerOfEarlierCoreIsReported(t *testing.T) {
	t.Parallel()
	b := guard.New(wakebelltype.Breaker{FailureRatio: 1, Deliveries: 1, Window: time.Minute, OpenFor: time.Minute}, start)
	_, opened := b.Record(b.Generation(), start, true)
	require.True(t, opened)
	w := newWorld(t)
	w.now = start.Add(2 * time.Minute)
	w.open(Config{}, Settings{MaxConcurrent: 1, LeaseTTL: time.Minute, PollingInterval: time.Second, MaxPollingInterval: time.Second}, b)
	require.Contains(t, strings.Join(w.events, "\n"), "breaker half-open")
}

// BenchmarkCore handles timers, of which exchanges bring some at a time.
func BenchmarkCore(b *testing.B) {
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprintf("leases=%d", size), func(b *testing.B) {
			m, _ := idle(b)
			m.leases, m.runs = make([]Lease, size), make([]run, size)
			reply := &exchange.Reply{Remaining: time.Minute, Next: 0, Leases: make([]exchange.Lease, size)}
			for i := range reply.Leases {
				reply.Leases[i] = exchange.Lease{ID: fmt.Sprint(i), Claims: 1}
			}
			m.core.Hint(m.now, exchange.Hint{Kind: exchange.HintDue, Sent: m.now})
			b.ReportAllocs()
			for b.Loop() {
				m.now = m.now.Add(time.Millisecond)
				m.core.Tick()
				m.core.Advance(m.now)
				m.n = 0
				clear(m.leases)
				m.answer(reply)
				for i := range m.leases {
					m.core.Finished(m.now, &m.leases[i], Outcome{})
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/timer")
		})
	}
}
