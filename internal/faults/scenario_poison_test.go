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
	// resolution is the smallest lateness that a machine with other scenarios on it
	// can measure.
	resolution = 10 * time.Millisecond
)

// control is a topic without poisoned timers, with its own nodes.
const control = "control"

// poison mixes good timers with timers that cannot be decoded, that panic and that
// always fail. It compares the lateness of the good timers with that before, and with
// that of the control topic in the same seconds, because other load on the machine
// affects both.
func poison(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent, cfg.MaxAttempts = 20, 4
	w.start(2, cfg)
	cfg.Topic = control
	w.start(2, cfg)
	c := newClient(w.T, w.rdb)
	alone, _ := w.lateness(c, 1)
	for i := range poisonedTimers {
		w.poisoned(c, fmt.Sprintf("client-p/%d", i), i)
	}
	among, meanwhile := w.lateness(c, 2)
	report.Note("poison", "median lateness of good timers: %v alone, %v among %d poisoned ones, %v on the control topic at that time",
		alone, among, poisonedTimers, meanwhile)
	w.settled(settleLimit) // before the check: in an aborted round the remaining timers count as lost
	require.LessOrEqual(w, among, 2*max(alone, meanwhile, resolution), "poisoned timers delay good ones; alone: %v, control: %v", alone, meanwhile)
}

// poisoned schedules the i-th poisoned timer: one in three of each kind.
func (w *world) poisoned(c *wakebell.Client, id string, i int) {
	w.Helper()
	w.tried()
	work := Work{Generation: 1}
	switch i % 3 {
	case 0: // it reaches no handler, so the delivery log does not have it
		_, err := wakebell.NewTopic[string](topic).Schedule(w.Context(), c, "no Work", wakebell.ID(id))
		require.NoError(w, err)
		return
	case 1:
		work.Panics = 2
	default:
		work.Fails = 1000
	}
	w.put(c, topic, plan{id: id, work: work})
}

// put schedules a timer on a topic and records the call.
func (w *world) put(c *wakebell.Client, on string, p plan) {
	w.Helper()
	called := time.Now()
	answers, err := c.Schedule(w.Context(), wakebell.NewTopic[Work](on).Draft(p.work, wakebell.ID(p.id), wakebell.In(p.in)))
	require.NoError(w, err)
	w.deliveries.RecordCall(p.id, Call{
		Kind: CallSchedule, Client: "client", Generation: 1, Called: called, Returned: time.Now(),
		Earliest: called.Add(p.in), Due: answers[0].Due, Found: found(answers[0].Outcome),
	})
}

// lateness schedules good timers over a second or two, on the topic and on the
// control topic. It returns the median lateness of each by Redis's clock.
func (w *world) lateness(c *wakebell.Client, phase int) (onTopic, onControl time.Duration) {
	w.Helper()
	good, others := make([]string, goodTimers), make([]string, goodTimers)
	for i := range good {
		good[i], others[i] = fmt.Sprintf("client-g%d/%d", phase, i), fmt.Sprintf("client-b%d/%d", phase, i)
		in := between(w.rng, 0, 100*time.Millisecond)
		w.put(c, topic, plan{id: good[i], work: Work{Generation: 1, For: time.Millisecond}, in: in})
		w.put(c, control, plan{id: others[i], work: Work{Generation: 1, For: time.Millisecond}, in: in})
		w.pause(between(w.rng, 0, 8*time.Millisecond))
	}
	return w.median(good), w.median(others)
}

// median waits until the timers are delivered, and returns their median lateness.
func (w *world) median(ids []string) time.Duration {
	w.Helper()
	w.eventually("the good timers are delivered", func() bool { return len(w.deliveries.Lateness(ids)) == len(ids) })
	late := w.deliveries.Lateness(ids)
	slices.Sort(late)
	return late[len(late)/2]
}
