package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

const (
	goodTimers     = 300
	poisonedTimers = 200
	// tellable is as little as a machine that runs other scenarios can tell.
	tellable = 10 * time.Millisecond
)

// beside is a topic without poison, on nodes of its own.
const beside = "beside"

// poison mixes timers that cannot be decoded, that panic and that always fail
// with good ones, and compares how late the good ones are with how late they
// are by themselves: before, and beside them in the same seconds, for what else
// the machine does slows both down.
func poison(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent, cfg.MaxAttempts = 20, 4
	w.start(2, cfg)
	cfg.Topic = beside
	w.start(2, cfg)
	c := newClient(w.T, w.rdb)
	alone, _ := w.lateness(c, 1)
	for i := range poisonedTimers {
		w.poisoned(c, fmt.Sprintf("client-p/%d", i), i)
	}
	among, meanwhile := w.lateness(c, 2)
	report.Note("poison", "good timers were late by %v at the median alone, by %v among %d poisoned ones, and beside them by %v",
		alone, among, poisonedTimers, meanwhile)
	w.settled(settleLimit) // first: of a round that is given up the judge calls lost what is there yet
	require.LessOrEqual(w, among, 2*max(alone, meanwhile, tellable), "poisoned timers slow good ones down; alone: %v, beside: %v", alone, meanwhile)
}

// poisoned schedules the i-th poisoned timer: one in three of each kind.
func (w *world) poisoned(c *wakebell.Client, id string, i int) {
	w.Helper()
	w.trials++
	work := Work{Generation: 1}
	switch i % 3 {
	case 0: // it reaches no handler, so the ledger has nothing to say of it
		_, err := wakebell.NewTopic[string](topic).Schedule(w.Context(), c, "no Work", wakebell.ID(id))
		require.NoError(w, err)
		return
	case 1:
		work.Panics = 2
	default:
		work.Fails = 1000
	}
	w.put(c, topic, plan{id, work, 0})
}

// put schedules a timer on a topic and notes it.
func (w *world) put(c *wakebell.Client, on string, p plan) {
	w.Helper()
	called := time.Now()
	answers, err := c.Schedule(w.Context(), wakebell.NewTopic[Work](on).Draft(p.work, wakebell.ID(p.id), wakebell.In(p.in)))
	require.NoError(w, err)
	w.ledger.Called(p.id, Call{
		Kind: CallSchedule, Client: "client", Generation: 1, Called: called, Returned: time.Now(),
		Earliest: called.Add(p.in), Due: answers[0].Due, Found: found(answers[0].Outcome),
	})
}

// lateness schedules good timers over a second or two, on the topic and beside
// it, and tells how late they are at the median, by Redis's clock.
func (w *world) lateness(c *wakebell.Client, phase int) (here, there time.Duration) {
	w.Helper()
	good, others := make([]string, goodTimers), make([]string, goodTimers)
	for i := range good {
		good[i], others[i] = fmt.Sprintf("client-g%d/%d", phase, i), fmt.Sprintf("client-b%d/%d", phase, i)
		in := between(w.rng, 0, 100*time.Millisecond)
		w.put(c, topic, plan{good[i], Work{Generation: 1, For: time.Millisecond}, in})
		w.put(c, beside, plan{others[i], Work{Generation: 1, For: time.Millisecond}, in})
		w.pause(between(w.rng, 0, 8*time.Millisecond))
	}
	return w.median(good), w.median(others)
}

// median waits until the timers are delivered, and tells how late they were.
func (w *world) median(ids []string) time.Duration {
	w.Helper()
	w.eventually("the good timers are delivered", func() bool { return len(w.ledger.Lateness(ids)) == len(ids) })
	late := w.ledger.Lateness(ids)
	slices.Sort(late)
	return late[len(late)/2]
}
