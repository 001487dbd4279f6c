package faults

import "time"

// scenarios are all there are.
var scenarios = []scenario{
	{"kill", time.Second, kill},
	{"stop", time.Second, stop},
	{"drain", 4 * time.Second, drain},
	{"loss", time.Second, network(0.05, 6*time.Second, loss)},
	{"late", time.Second, network(0.1, 5*time.Second, late)},
	{"slow", time.Second, network(0.5, 5*time.Second, rough)},
	{"streams", time.Second, streams},
	{"restart", time.Second, restart},
	{"power-cut", time.Second, powerCut},
	{"flush", time.Second, flush},
	{"races", 5 * time.Second, races},
	{"poison", 2 * time.Second, poison},
	{"clocks", 2 * time.Second, clocks},
	{"boundaries", 300 * time.Millisecond, boundaries},
	{"failover", time.Second, failover},
	{"memory", time.Second, full},
}

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
