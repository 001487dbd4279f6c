package leasing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/messages/exchange"
)

// start is when the tests begin.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is the caller of a core: it writes down what the core has done, and keeps what is
// needed to answer it. Instants are virtual, and the source's clock is the same.
type world struct {
	t      *testing.T
	core   *Core
	now    time.Time
	wakeAt time.Time // of the next tick; zero: none is asked for
	names  int

	flights map[int]*Flight   // in flight, by stream
	watch   *Watch            // the last one
	peekAt  time.Time         // of its next peek; zero: one is in flight
	leases  map[string]*Lease // the last of each id
	queue   []*Lease          // that no handler has begun

	events []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, now: start, flights: map[int]*Flight{}, leases: map[string]*Lease{}}
}

// open creates the core and starts it.
func (w *world) open(cfg Config, s Settings, breaker *guard.Breaker) {
	cfg.Effects, cfg.Counters, cfg.Guards = w, &observe.Counters{}, &Guards{Breaker: breaker}
	cfg.Random = func() float64 { return 0.5 } // no jitter
	cfg.Wake, cfg.Topic = func() {}, "t"
	cfg.NewName = func() string {
		w.names++
		return fmt.Sprint("name-", w.names)
	}
	w.core = New(cfg)
	w.core.Start(w.now, &s, false)
	w.advance()
}

// advance lets the core do what has become possible.
func (w *world) advance() {
	if wake := w.core.Advance(w.now); !wake.IsZero() {
		w.wakeAt = wake
	}
}

// until lets time pass up to an instant, with the ticks that the core asks for.
func (w *world) until(at time.Time) {
	for n := 0; !w.wakeAt.IsZero() && !w.wakeAt.After(at); n++ {
		if n == 10_000 {
			w.t.Fatalf("%v: the core ticks again and again", w.now)
		}
		w.now = later(w.wakeAt, w.now)
		w.wakeAt = time.Time{}
		w.core.Tick()
		w.advance()
	}
	w.now = at
}

func (w *world) note(format string, args ...any) {
	w.events = append(w.events, fmt.Sprintf("+%-7v ", w.now.Sub(start))+fmt.Sprintf(format, args...))
}

func (w *world) Watch(watch *Watch) {
	w.note("a watch begins")
	w.watch, w.peekAt = watch, time.Time{}
}

func (w *world) EndWatch() (next time.Time) {
	w.note("the watch is ended")
	return w.peekAt
}

func (w *world) Open(stream int) { w.note("stream %d opens", stream) }

func (w *world) Send(f *Flight) {
	if f.Sent = w.now; f.Peek {
		w.note("peek")
		w.flights[f.Stream()] = f
		return
	}
	var parts []string
	for _, s := range f.Request.Settle {
		parts = append(parts, verdicts[s.Verdict]+" "+s.ID)
		if s.Delay > 0 {
			parts[len(parts)-1] += fmt.Sprintf(" for %v", s.Delay)
		}
	}
	for _, l := range f.Request.Extend {
		parts = append(parts, "extend "+l.ID)
	}
	if f.Request.Want > 0 {
		claim := fmt.Sprint("claim ", f.Request.Want)
		if f.Request.Ahead > 0 {
			claim += fmt.Sprintf(", %v ahead", f.Request.Ahead)
		}
		if f.Request.KeyRun > 0 {
			claim += fmt.Sprintf(", %d of a key", f.Request.KeyRun)
		}
		parts = append(parts, claim)
	}
	if w.flights[f.Stream()] == f {
		parts = append([]string{"again"}, parts...)
	}
	w.note("exchange %d/%d: %s", f.Stream(), f.Request.Sequence, strings.Join(parts, "; "))
	w.flights[f.Stream()] = f
}

var verdicts = map[exchange.Verdict]string{
	exchange.Ack: "ack", exchange.Nack: "nack", exchange.DeadLetter: "dead-letter", exchange.Release: "release", exchange.Fail: "fail",
}

func (w *world) ReadOverride()                           { w.note("read the override") }
func (w *world) Announce(action exchange.AnnounceAction) { w.note("announce: %s", action) }
func (w *world) AskForHelp(rank int)                     { w.note("ask for help up to rank %d", rank) }
func (w *world) RemoveOrphans()                          { w.note("remove orphans") }

func (w *world) Report(withdraw bool) {
	var long []string
	if runs := w.core.Counters.LongRuns.Load(); runs != nil {
		for _, r := range *runs {
			long = append(long, r.ID)
		}
	}
	w.note("report %v, withdraw %v", long, withdraw)
}

func (w *world) Tell(a Availability, err error) {
	w.note("redis %s", [...]string{"available", "unavailable", "unprobed"}[a])
}

func (w *world) Drained(unfinished []string, unsettled int) {
	w.note("drained, unfinished %v, unsettled %d", unfinished, unsettled)
}

func (w *world) NewLease(claimed *exchange.Lease, _ time.Time) *Lease {
	l := &Lease{Lease: claimed, Run: &run{w: w, id: claimed.ID, awaits: w.core.Forwards}}
	w.leases[claimed.ID] = l
	return l
}

func (w *world) Push(l *Lease) {
	w.note("%s is handled, %v late", l.ID, l.Late)
	w.queue = append(w.queue, l)
}

func (w *world) Pushed(int) {}

func (w *world) TakeBack(n int) []*Lease {
	from := max(len(w.queue)-n, 0)
	taken := slices.Clone(w.queue[from:])
	w.queue = w.queue[:from]
	return taken
}

func (w *world) Oldest() (at time.Time) {
	if len(w.queue) > 0 {
		at = w.queue[0].Queued
	}
	return at
}

func (w *world) Occupied() int                         { return 0 }
func (w *world) Tune(concurrency int, _ time.Duration) { w.note("%d handlers at once", concurrency) }

func (w *world) Settled(f *Flight) {}

func (w *world) DeadLettered(d exchange.DeadLettered, _ *Settlement) {
	w.note("%s is dead-lettered: %s", d.ID, d.Reason)
}

func (w *world) Ended(l *Lease, e End)          { w.note("%s ended: %s %s", l.ID, e.Kind, e.Why) }
func (w *world) Hung(l *Lease, _ time.Duration) { w.note("%s hangs", l.ID) }
func (w *world) Abandoned(l *Lease)             { w.note("%s is abandoned", l.ID) }

func (w *world) BreakerChanged(change guard.Change, _ time.Time, failure string) {
	w.note("breaker %v %s", change.To, failure)
}
func (w *world) RoleChanged(role string, nodes int) { w.note("role %q of %d nodes", role, nodes) }
func (w *world) ExchangeFailed(err error, n int)    { w.note("exchange failed %d times: %v", n, err) }

// run is the handler of a lease in a world.
type run struct {
	w     *world
	id    string
	begun bool
	cause error

	awaits bool
}

func (r *run) Begun() (bool, time.Time) { return r.begun, time.Time{} }
func (r *run) Awaits() bool             { return r.awaits }
func (r *run) Hung() bool               { return false }
func (r *run) Cause() error             { return r.cause }
func (r *run) Expires(time.Time)        {}
func (r *run) Abandon() bool            { return true }

func (r *run) End(cause error) {
	r.cause = cause
	r.w.note("%s context ends: %v", r.id, cause)
}
func (r *run) Extended(err error) { r.w.note("%s extended: %v", r.id, err) }
func (r *run) Settled(err error)  { r.w.note("%s settled: %v", r.id, err) }
