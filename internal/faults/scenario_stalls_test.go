package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// longestStall keeps a suspended Redis within the read timeouts of its clients: a
	// retry by go-redis would run a command twice without a record in the delivery log.
	longestStall = 2 * time.Second
	stalledNodes = 3
	stallClients = 3
	stallStrikes = 25
)

// stalled suspends nodes, clients and Redis with SIGSTOP, sometimes several at once, for
// up to one and a half leases. All of them have processes of their own.
func stalled(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent = 60
	w.start(stalledNodes, cfg)
	clients := w.clientProcesses(stallClients)
	for range stallStrikes {
		w.pause(between(w.rng, 50*time.Millisecond, 300*time.Millisecond))
		var resumed sync.WaitGroup
		for range 1 + w.rng.IntN(2) {
			s, _ := w.suspect(w.rng)
			lasts := w.stallFor(w.rng)
			resumed.Go(func() { w.suspend(s, lasts) })
		}
		resumed.Wait()
	}
	for _, c := range clients {
		c.Drain()
	}
	w.settled(settleLimit)
}

// clientProcesses starts clients that can be suspended, and waits until they schedule.
func (w *world) clientProcesses(n int) []*Node {
	w.Helper()
	var clients []*Node
	for i := range n {
		clients = append(clients, w.fleet.Start(NodeConfig{Redis: w.server.Addr, Client: fmt.Sprintf("client-%d", i+1), Seed: w.rng.Uint64()}))
	}
	for _, c := range clients {
		c.Ready()
	}
	return clients
}

// stallFor returns how long a process is suspended: half of the time for less than a
// lease, which must have no effect but delay, and else for longer.
func (w *world) stallFor(rng *rand.Rand) time.Duration {
	ttl := w.deliveries.TTL
	if rng.IntN(2) == 0 {
		return min(between(rng, ttl/20, ttl/2), longestStall)
	}
	return min(between(rng, ttl*11/10, ttl*3/2), longestStall)
}

// suspect is a process that can be suspended.
type suspect struct {
	send   func(syscall.Signal)
	target string          // of the fault; empty: it affects all processes
	ended  <-chan struct{} // closed when it has ended; nil: it never ends
}

// suspectOf adds a process that may be suspended.
func (w *world) suspectOf(s suspect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspects = append(w.suspects, s)
}

// suspect chooses a process among Redis, the beats, and those of the fleet. It returns
// false if there is none.
func (w *world) suspect(rng *rand.Rand) (suspect, bool) {
	w.mu.Lock()
	w.suspects = slices.DeleteFunc(w.suspects, func(s suspect) bool {
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	})
	all := slices.Clone(w.suspects)
	w.mu.Unlock()
	for _, node := range w.fleet.running() {
		s := suspect{send: node.send, target: node.Name}
		if node.Config.Listen != "" {
			s.target = "" // the stall of a serving node affects all subscribers
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return suspect{}, false
	}
	return all[rng.IntN(len(all))], true
}

// suspend suspends a process, and records the fault.
func (w *world) suspend(s suspect, lasts time.Duration) {
	w.tried()
	fault := Fault{Kind: Stop, Target: s.target, From: time.Now()}
	s.send(syscall.SIGSTOP)
	select {
	case <-time.After(lasts):
	case <-w.Context().Done():
	}
	s.send(syscall.SIGCONT)
	fault.To = time.Now()
	w.deliveries.RecordFault(fault)
}

// stall suspends one process of the round after another in the background until the
// test ends.
func (w *world) stall() {
	rng := choices("stalls of "+w.Name(), w.round)
	var stalling sync.WaitGroup
	stalling.Go(func() {
		for w.Context().Err() == nil {
			select {
			case <-time.After(between(rng, 100*time.Millisecond, time.Second)):
				if s, ok := w.suspect(rng); ok {
					w.suspend(s, w.stallFor(rng))
				}
			case <-w.Context().Done():
			}
		}
	})
	w.Cleanup(stalling.Wait)
}
