package main

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

// fleet is what is simulated: topics with timers at random instants, each with
// a poller, on one Redis.
type fleet struct {
	topics  int
	rate    float64 // timers per second of each topic
	seconds float64 // simulated

	// What Redis spends on an exchange with nothing in it and on a timer, half
	// when it is claimed and half when it is settled, and how long a request is
	// on its way there and back beside that; in µs.
	exchangeUS, timerUS, tripUS float64
}

// load is what came of it.
type load struct {
	timers, exchanges int
	busy              float64 // share of the time that Redis's core worked
	p50, p99          float64 // lateness, ms
}

// event is something that happens to a topic at an instant, in µs.
type event struct {
	at    float64
	topic int
	kind  eventKind
	turn  int // of a look: it is off if the poller has sent an exchange since
}

type eventKind uint8

const (
	due      eventKind = iota // a timer
	wake                      // the poller sends an exchange
	served                    // Redis has run it
	answered                  // the poller has the answer
	look                      // it is the idle ramp's turn
)

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// station is a topic and its poller, which has one exchange under way at most:
// it settles what the one before claimed, and claims what is due.
type station struct {
	waiting []float64 // due instants of timers that nobody has
	claimed int       // handed to handlers by the last answer
	under   bool      // an exchange is
	turn    int       // exchanges sent
	idle    int       // looks in vain in a row
}

// ramp is when the poller looks by itself, from 50 ms on; NaN: later it only
// glances, at next to no cost.
func (s *station) ramp(random *rand.Rand) float64 {
	if s.idle > 2 {
		return math.NaN()
	}
	return 50e3 * float64(int(1)<<max(s.idle-1, 0)) * (0.5 + random.Float64())
}

// run simulates a fleet. Handlers take no time; Redis serves one exchange after
// the other in the order in which they come.
func (f fleet) run(random *rand.Rand) load {
	var (
		queue    events
		stations = make([]station, f.topics)
		result   load
		late     []float64
		free     float64 // when Redis is done with what it has
		worked   float64
		end      = f.seconds * 1e6
	)
	next := func(topic int, now float64) {
		if at := now + random.ExpFloat64()*1e6/f.rate; at < end {
			heap.Push(&queue, event{at: at, topic: topic, kind: due})
		}
	}
	for i := range stations {
		next(i, 0)
	}
	for len(queue) > 0 {
		e := heap.Pop(&queue).(event)
		s := &stations[e.topic]
		switch e.kind {
		case due:
			result.timers++
			s.waiting = append(s.waiting, e.at)
			if !s.under {
				s.under = true
				heap.Push(&queue, event{at: e.at, topic: e.topic, kind: wake})
			}
			next(e.topic, e.at)
		case look:
			if s.turn == e.turn && !s.under && e.at < end {
				s.under = true
				heap.Push(&queue, event{at: e.at, topic: e.topic, kind: wake})
			}
		case wake:
			result.exchanges++
			s.turn++
			begin := max(e.at+f.tripUS/2, free)
			found := min(deliverBatch, len(s.waiting))
			cost := f.exchangeUS + f.timerUS/2*float64(found+s.claimed)
			free, worked = begin+cost, worked+cost
			heap.Push(&queue, event{at: free, topic: e.topic, kind: served})
		case served:
			s.claimed = min(deliverBatch, len(s.waiting))
			for _, at := range s.waiting[:s.claimed] {
				late = append(late, (e.at+f.tripUS/2-at)/1e3)
			}
			s.waiting = slices.Delete(s.waiting, 0, s.claimed)
			heap.Push(&queue, event{at: e.at + f.tripUS/2, topic: e.topic, kind: answered})
		case answered:
			if s.under = s.claimed > 0 || len(s.waiting) > 0; s.under {
				s.idle = 0
				heap.Push(&queue, event{at: e.at, topic: e.topic, kind: wake})
				continue
			}
			s.idle++
			if after := s.ramp(random); !math.IsNaN(after) {
				heap.Push(&queue, event{at: e.at + after, topic: e.topic, kind: look, turn: s.turn})
			}
		}
	}
	slices.Sort(late)
	result.busy = worked / max(end, free)
	result.p50, result.p99 = quantile(late, 0.5), quantile(late, 0.99)
	return result
}
