package main

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

// fleet is a simulated set of topics with timers at random instants, each with a poller,
// on one Redis.
type fleet struct {
	topics  int
	rate    float64 // timers per second of each topic
	seconds float64 // simulated

	// The CPU time of Redis for an empty exchange and for a timer (half for the
	// claim, half for the settlement), and the round trip time; in µs.
	exchangeUS, timerUS, tripUS float64
}

// load is the result of a simulation.
type load struct {
	timers, exchanges int
	busy              float64 // share of the time that Redis's core was busy
	p50, p99          float64 // lateness, ms
}

// event is an event of a topic at an instant, in µs.
type event struct {
	at    float64
	topic int
	kind  eventKind
	turn  int // of a look: it is cancelled if the poller has sent an exchange since
}

type eventKind uint8

const (
	due      eventKind = iota // a timer
	wake                      // the poller sends an exchange
	served                    // Redis has run it
	answered                  // the poller has the answer
	look                      // the poll of the idle backoff
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

// station is a topic and its poller, which has at most one exchange in flight: it
// settles the claims of the previous one, and claims what is due.
type station struct {
	waiting  []float64 // instants of timers that are not claimed
	claimed  int       // by the last exchange
	inFlight bool      // an exchange is in flight
	turn     int       // number of exchanges sent
	idle     int       // consecutive empty exchanges
}

// ramp returns the delay of the next poll, from 50 ms on; NaN: the poller only peeks,
// at a negligible cost.
func (s *station) ramp(random *rand.Rand) float64 {
	if s.idle > 2 {
		return math.NaN()
	}
	return 50e3 * float64(int(1)<<max(s.idle-1, 0)) * (0.5 + random.Float64())
}

// run simulates a fleet. Handlers take no time; Redis serves exchanges in the order of
// their arrival.
func (f fleet) run(random *rand.Rand) load {
	var (
		queue    events
		stations = make([]station, f.topics)
		result   load
		late     []float64
		free     float64 // when Redis has served its queue
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
			if !s.inFlight {
				s.inFlight = true
				heap.Push(&queue, event{at: e.at, topic: e.topic, kind: wake})
			}
			next(e.topic, e.at)
		case look:
			if s.turn == e.turn && !s.inFlight && e.at < end {
				s.inFlight = true
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
			if s.inFlight = s.claimed > 0 || len(s.waiting) > 0; s.inFlight {
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
