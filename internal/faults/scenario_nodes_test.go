package faults

import "time"

// settleLimit bounds the wait for the last timers of a round.
const settleLimit = 60 * time.Second

// kill ends one of four nodes after another with SIGKILL, under load.
func kill(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent = 40
	w.start(4, cfg)
	end := w.begin(w.usual())
	for range 50 {
		i := w.rng.IntN(len(w.nodes))
		w.nodes[i].Kill()
		w.replace(i)
		w.trials++
		w.pause(between(w.rng, 20*time.Millisecond, 250*time.Millisecond))
	}
	end()
	w.settled(settleLimit)
}

// stop freezes nodes for longer than a lease and lets them go on, with timers
// that were given to others meanwhile in their hands.
func stop(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent = 30
	w.start(3, cfg)
	l := w.usual()
	l.work, l.pause = stubbornWork, 60*time.Millisecond
	end := w.begin(l)
	for range 4 {
		node := w.nodes[w.rng.IntN(len(w.nodes))]
		resume := node.Stop()
		w.trials++
		w.pause(between(w.rng, w.ledger.TTL*11/10, w.ledger.TTL*2))
		resume()
		w.pause(between(w.rng, 100*time.Millisecond, 500*time.Millisecond))
	}
	end()
	w.settled(settleLimit)
}

// drain ends nodes with SIGTERM under load. What their handlers cannot finish
// in time is released, and another node has it at once.
func drain(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent, cfg.DrainTimeout = 30, 100*time.Millisecond
	w.start(3, cfg)
	l := w.usual()
	l.work, l.pause = longWork, 60*time.Millisecond
	end := w.begin(l)
	for range 10 {
		i := w.rng.IntN(len(w.nodes))
		w.nodes[i].Ready()
		w.pause(between(w.rng, 100*time.Millisecond, 400*time.Millisecond))
		w.nodes[i].Drain()
		w.replace(i)
		w.trials++
	}
	end()
	w.settled(settleLimit)
}
