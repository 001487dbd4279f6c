package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faults/gatefaults"
	"github.com/wakebell/wakebell/internal/redistest"
)

// gatesLoss is the share of all commands of participants that are lost.
const gatesLoss = 0.02

// gates has eight processes take turns at a gate. In even rounds a replica takes over
// that has missed the last writes of its master; then a token may be granted twice, and
// the guard, on another Redis, must refuse stale writes. Every fourth round is on a
// Cluster.
func gates(w *world) {
	seed := w.rng.Uint64() >> 16 // participants have numbers in the rest
	switch {
	case w.round%2 == 0:
		w.gateFailover(seed)
		return
	case w.round%4 == 3:
		w.gateOnCluster(seed)
		return
	}
	w.redis("--appendonly", "yes", "--appendfsync", "always")
	run := &gatefaults.Run{T: w.T, Gate: "g", Redis: func(n int) string {
		return w.link(fmt.Sprintf("participant-%d", n), gatesLoss, loss)
	}}
	h := run.Play(seed, func(random *rand.Rand) {
		w.tried()
		switch random.IntN(6) {
		case 0:
			w.server.Kill()
			w.pause(between(random, 0, time.Second))
			w.server.Restart(w.T)
		case 1:
			w.server.Pause()
			w.pause(between(random, gatefaults.Lease/10, gatefaults.Lease*3/2))
			w.server.Resume()
		default:
			run.Usual(random)
		}
	})
	w.found = w.judgeOrder(run, h)
}

// gateOnCluster kills and suspends masters of a Cluster, which lose no data, beside the
// usual faults. Two thirds of these faults are at masters without the gate.
func (w *world) gateOnCluster(seed uint64) {
	w.Helper()
	masters := redistest.Cluster(w.T, "--appendonly", "yes", "--appendfsync", "always")
	run := &gatefaults.Run{T: w.T, Gate: "g", Redis: func(n int) string {
		return gatefaults.InCluster + masters[n%len(masters)].Addr
	}}
	h := run.Play(seed, func(random *rand.Rand) {
		w.tried()
		master := masters[random.IntN(len(masters))]
		switch random.IntN(4) {
		case 0:
			master.Kill()
			w.pause(between(random, 0, time.Second))
			master.Restart(w.T)
		case 1:
			master.Pause()
			w.pause(between(random, gatefaults.Lease/10, gatefaults.Lease*3/2))
			master.Resume()
		default:
			run.Usual(random)
		}
	})
	w.found = w.judgeOrder(run, h)
}

// judgeOrder applies the rules that hold as long as Redis loses no data.
func (w *world) judgeOrder(run *gatefaults.Run, h *gatefaults.History) *Judgement {
	j := judgeGates(h)
	for _, f := range h.Overlaps() {
		j.Overlapping++
		j.Violations = append(j.Violations, f)
	}
	for _, f := range h.OutOfOrder() {
		j.Unordered++
		j.Violations = append(j.Violations, f)
	}
	if len(j.Violations) > 0 {
		w.Log(run.Lines())
	}
	return j
}

// gateFailover promotes a replica that has missed up to 0.9 s of writes, beside the usual
// faults.
func (w *world) gateFailover(seed uint64) {
	w.Helper()
	guard := redistest.Start(w.T)
	set := redistest.Sentinel(w.T)
	replica := set.Replica.Client(w.T, patient)
	run := &gatefaults.Run{T: w.T, Gate: "g", Guard: guard.Addr, Redis: func(int) string { return gatefaults.BySentinel + set.Sentinel.Addr }}
	strikes := 0
	h := run.Play(seed, func(random *rand.Rand) {
		w.tried()
		if strikes++; strikes != 3 {
			run.Usual(random)
			return
		}
		require.NoError(w, replica.ClientKillByFilter(w.Context(), "TYPE", "master").Err()) // it connects again within a second
		w.pause(between(random, 0, 900*time.Millisecond))
		set.Master.Kill()
	})
	w.found = judgeGates(h)
}

// judgeGates applies the rules that hold even if Redis loses data: no stale write, and no
// participant without a turn.
func judgeGates(h *gatefaults.History) *Judgement {
	j := &Judgement{Timers: h.Turns(), Scheduled: h.Turns(), Deliveries: h.Turns()}
	for _, f := range h.StaleWrites() {
		j.Stale++
		j.Violations = append(j.Violations, f)
	}
	for _, n := range h.Stuck {
		j.Lost++
		j.Violations = append(j.Violations, fmt.Sprintf("participant %d got no turn after the last fault", n))
	}
	accepted, refused := h.Writes()
	report.Note("gates", "%d tickets, %d turns, %d writes accepted and %d refused by the guard", h.Tickets(), h.Turns(), accepted, refused)
	return j
}
