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
// the guard, on another Redis, must refuse stale writes.
func gates(w *world) {
	seed := w.rng.Uint64() >> 16 // participants have numbers in the rest
	if w.round%2 == 0 {
		w.gateFailover(seed)
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
	w.found = j
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
