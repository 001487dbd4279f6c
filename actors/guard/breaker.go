// Package guard has what protects the resources behind handlers on one node: the circuit
// breaker and the adaptive concurrency of a topic, which decide from the outcomes of
// deliveries, and the bound that topics of a group share. None has a clock or a goroutine;
// their callers pass the time. Only a group, which several pollers use, has a lock.
//
// The breakers of libraries, such as sony/gobreaker, wrap a call or admit one at a time.
// A poller claims many timers with one request, and must know when to ask again.
package guard

import (
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// State is the state of a breaker.
type State uint8

// The states.
const (
	Closed   State = iota // the poller claims
	Open                  // it claims nothing until Until
	HalfOpen              // it claims one timer, whose outcome decides
)

func (s State) String() string { return [...]string{"closed", "open", "half-open"}[s] }

// buckets is the number of parts of the window. The oldest part is forgotten as a whole.
const buckets = 10

// Breaker is a circuit breaker. The methods are called by one goroutine.
type Breaker struct {
	set        wakebelltype.Breaker
	state      State
	until      time.Time // end of Open
	generation uint64    // number of changes of the state

	counts [buckets]bucket
	base   time.Time
}

// bucket counts the outcomes of a part of the window.
type bucket struct {
	part          int64 // since base
	total, failed int
}

// New returns a closed breaker.
func New(set wakebelltype.Breaker, now time.Time) *Breaker { return &Breaker{set: set, base: now} }

// State returns the state at an instant. Open becomes HalfOpen when its time has passed.
func (b *Breaker) State(now time.Time) State {
	if b.state == Open && !now.Before(b.until) {
		b.change(HalfOpen)
	}
	return b.state
}

// Until returns when an open breaker becomes half-open; zero in other states.
func (b *Breaker) Until() time.Time { return b.until }

// Generation returns the number of changes of the state. A claim is made in a
// generation; its outcomes count in that generation only.
func (b *Breaker) Generation() uint64 { return b.generation }

// Change describes a change of the state.
type Change struct {
	To                State
	Failed, Delivered int // in the window, of a change from Closed
}

// Record counts the outcome of a delivery that was claimed in a generation. It reports
// whether that changed the state.
func (b *Breaker) Record(generation uint64, now time.Time, failed bool) (Change, bool) {
	if state := b.State(now); state == Open || generation != b.generation {
		return Change{}, false
	}
	if b.state == HalfOpen {
		if failed {
			b.open(now)
		} else {
			b.change(Closed)
		}
		return Change{To: b.state, Delivered: 1, Failed: count(failed)}, true
	}
	part := int64(now.Sub(b.base) / max(b.set.Window/buckets, 1))
	in := &b.counts[part%buckets]
	if in.part != part {
		in.part, in.total, in.failed = part, 0, 0
	}
	in.total, in.failed = in.total+1, in.failed+count(failed)
	c := Change{To: Open}
	for _, each := range b.counts {
		if part-each.part < buckets {
			c.Delivered, c.Failed = c.Delivered+each.total, c.Failed+each.failed
		}
	}
	if !failed || c.Delivered < b.set.Deliveries || float64(c.Failed) < b.set.FailureRatio*float64(c.Delivered) {
		return Change{}, false
	}
	b.open(now)
	return c, true
}

func count(failed bool) int {
	if failed {
		return 1
	}
	return 0
}

func (b *Breaker) open(now time.Time) {
	b.change(Open)
	b.until = now.Add(b.set.OpenFor)
}

func (b *Breaker) change(to State) {
	b.state, b.until = to, time.Time{}
	b.generation++
	b.counts = [buckets]bucket{}
}
