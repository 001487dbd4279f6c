package faults

import "time"

// kill kills random nodes out of four under load.
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
		w.tried()
		w.pause(between(w.rng, 20*time.Millisecond, 250*time.Millisecond))
	}
	end()
	w.settled(settleLimit)
}

// stop suspends nodes for longer than a lease. When they continue, they still have
// timers that other nodes have claimed meanwhile.
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
		w.tried()
		w.pause(between(w.rng, w.deliveries.TTL*11/10, w.deliveries.TTL*2))
		resume()
		w.pause(between(w.rng, 100*time.Millisecond, 500*time.Millisecond))
	}
	end()
	w.settled(settleLimit)
}

// drain ends nodes with SIGTERM under load. Timers whose handlers do not finish in
// time are released, and another node claims them at once.
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
		w.tried()
	}
	end()
	w.settled(settleLimit)
}
