package faults

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

const (
	fewKeys = 40 // a round takes about as long as those of the other scenarios
	// nodesLoss is the share of all commands of nodes that are lost.
	nodesLoss = 0.02
)

// limitsOf returns the limits of a round with that many timers, which take a few seconds
// at the rate. Odd rounds run one timer of a key at a time, even rounds two. Two rounds
// of three limit the rate of each key, to somewhat more than its share of the other rate.
func limitsOf(round, timers int) Limits {
	l := Limits{
		PerKey: 2 - round%2, MaxInFlight: 15 + timers/500,
		RateLimit: 8 + timers/300, RatePer: 100 * time.Millisecond, RateBurst: 8 + timers/300,
	}
	if round%3 > 0 {
		l.KeyRate, l.KeyPer, l.KeyBurst = 4, time.Second, 3
	}
	return l
}

// keys runs timers with keys on a topic with all limits.
func keys(w *world) {
	n, each := fewKeys, 10
	if w.round == 1 && *keysOf > n {
		n, each = *keysOf, 100
	}
	w.keyed(n, each, limitsOf(w.round, n*each))
}

// handOver runs long queues of timers on few keys, one timer of a key at a time, on a
// topic without limits: most timers are claimed by redisops/timers/lua/hand_over.lua.
func handOver(w *world) { w.keyed(4, 80, Limits{PerKey: 1}) }

// keyed runs timers of n keys while nodes are killed and suspended and their links lose
// commands.
func (w *world) keyed(n, each int, limits Limits) {
	w.Helper()
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent, cfg.Limits = 40+n/20, limits
	defer func() { w.found = w.deliveries.JudgeLimits(limits) }()
	for range 4 {
		w.nodes = append(w.nodes, w.lossyNode(cfg, nodesLoss))
	}
	for _, node := range w.nodes {
		node.Ready()
	}
	w.scheduleKeys(n, each)
	for w.rdb.ZCard(w.Context(), "timers_timeline:"+topic).Val() > int64(n*each/10) {
		w.hit(cfg, nodesLoss)
	}
	w.settled(settleLimit * time.Duration(1+n*each/20_000))
	w.noKeys()
}

// scheduleKeys schedules timers of n keys, in the order of their instants, of which two
// are equal; and a key's later ones for earlier instants in one case of ten.
func (w *world) scheduleKeys(n, each int) {
	w.Helper()
	c := newClient(w.T, w.rdb)
	start := time.Now()
	for i := range each {
		plans := make([]plan, n)
		at := start.Add(time.Duration(i/2) * 20 * time.Millisecond)
		if w.rng.IntN(10) == 0 {
			at = start
		}
		for k := range plans {
			plans[k] = plan{id: fmt.Sprintf("client-k%d/%d", k, i), work: keyedWork(w.rng)}
		}
		for ; len(plans) > 0; plans = plans[min(100, len(plans)):] {
			w.putKeyed(c, plans[:min(100, len(plans))], at)
		}
	}
}

func keyedWork(rng *rand.Rand) Work {
	work := Work{Generation: 1, For: between(rng, 0, 5*time.Millisecond), Settle: rng.IntN(3) == 0}
	switch rng.IntN(60) {
	case 0:
		work.Panics = 1
	case 1, 2:
		work.Fails = 1 + rng.IntN(3)
	case 3:
		work.Reject = true
	case 4, 5:
		work.For = between(rng, 50*time.Millisecond, 500*time.Millisecond)
	}
	return work
}

// putKeyed schedules timers, and records the calls.
func (w *world) putKeyed(c *wakebell.Client, plans []plan, at time.Time) {
	w.Helper()
	drafts := make([]wakebell.Draft, len(plans))
	for i, p := range plans {
		drafts[i] = wakebell.NewTopic[Work](topic).Draft(p.work, wakebell.ID(p.id), wakebell.At(at), wakebell.Key(KeyOf(p.id)))
	}
	called := time.Now()
	answers, err := c.Schedule(w.Context(), drafts...)
	require.NoError(w, err)
	for i, p := range plans {
		w.deliveries.RecordCall(p.id, Call{
			Kind: CallSchedule, Client: "client", Generation: 1, Called: called, Returned: time.Now(),
			Earliest: at, Due: answers[i].Due, Found: found(answers[i].Outcome),
		})
	}
}

// noKeys checks that nothing of the keys of timers is left except the number of schedules.
func (w *world) noKeys() {
	w.Helper()
	require.Zero(w, w.rdb.Exists(w.Context(), "timers_keys:"+topic, "timers_order:"+topic).Val(), "keys of timers are left")
	for _, key := range w.rdb.HKeys(w.Context(), "timers_busy:"+topic).Val() {
		require.Empty(w, key, "states of keys are left")
	}
}
