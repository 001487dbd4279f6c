package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
)

// states are the states of a timer with the body "old" when an action is applied to
// its id. Timers that are due later are due in 2 units. The timer "at a peer" is
// leased by a client like a Python peer, which then crashes or commits.
var states = []string{"absent", "pending", "running", "retrying", "dead", "at a peer", "at a peer that commits"}

// whenTheIDExists is the table of the design. A cell has the expected results of the
// action:
//
//	what the call answers / what a running handler sees / what is delivered
//
// "new@1" is a delivery of the body "new" after 1 unit, "old@2#2" the second attempt
// of the old body after 2 units. A handler that sees "acked" still has its lease. A -
// stands for nothing.
var whenTheIDExists = []struct {
	action string
	cells  [7]string
}{
	{"replace in 1", [7]string{
		"created / - / new@1", "replaced / - / new@1", "superseded / superseded / new@1", "replaced / - / new@1",
		"created / - / new@1", "replaced / - / new@1",
		"replaced / - / -", // the peer commits without a fence and deletes the new timer
	}},
	{"keep in 1", [7]string{
		"created / - / new@1", "kept pending / - / old@2", "kept running / acked / -", "kept pending / - / old@2#2",
		"created / - / new@1", "kept pending / - / old@2",
		"kept pending / - / -",
	}},
	{"earliest in 1", [7]string{
		"created / - / new@1", "replaced / - / new@1", "superseded / superseded / new@1", "replaced / - / new@1",
		"created / - / new@1", "replaced / - / new@1",
		"replaced / - / -",
	}},
	{"earliest in 3", [7]string{
		"created / - / new@3", "kept earlier / - / old@2", "superseded / superseded / new@3", "kept earlier / - / old@2#2",
		"created / - / new@3", "kept earlier / - / old@2",
		"kept earlier / - / -",
	}},
	{"debounce 1", [7]string{
		"created / - / new@1", "moved / - / new@1", "superseded / superseded / new@1", "moved / - / new@1",
		"created / - / new@1", "moved / - / new@1",
		"moved / - / -",
	}},
	{"debounce 3", [7]string{ // with a limit of 3
		"created / - / new@3", "moved / - / new@3", "superseded / superseded / new@3", "moved / - / new@3",
		"created / - / new@3", "moved / - / new@3",
		"moved / - / -",
	}},
	{"once in 1", [7]string{ // the old timer was scheduled without an idempotency window
		"created / - / new@1", "replaced / - / new@1", "superseded / superseded / new@1", "replaced / - / new@1",
		"created / - / new@1", "replaced / - / new@1",
		"replaced / - / -",
	}},
	{"reschedule in 1", [7]string{
		"not found / - / -", "moved / - / old@1", "superseded / superseded / old@1", "moved / - / old@1",
		"not found / - / -", "moved / - / old@1",
		"moved / - / -",
	}},
	{"run now", [7]string{
		"not found / - / -", "pending / - / old@0", "running / acked / -", "pending / - / old@0#2",
		"not found / - / -", "pending / - / old@0",
		"", // the commit and the claim race
	}},
	{"cancel", [7]string{
		"absent / - / -", "pending / - / -", "running / cancelled / -", "pending / - / -",
		"absent / - / -", "pending / - / -",
		"pending / - / -",
	}},
	{"cancel, replace in 1", [7]string{
		"absent, created / - / new@1", "pending, created / - / new@1", "running, created / gone / new@1", "pending, created / - / new@1",
		"absent, created / - / new@1", "pending, created / - / new@1",
		"pending, created / - / -",
	}},
	{"a peer schedules in 1", [7]string{
		"- / - / new@1", "- / - / new@1", "- / superseded / new@1", "- / - / new@1",
		"- / - / new@1", "- / - / new@1",
		"- / - / -",
	}},
	{"a peer commits", [7]string{
		"- / - / -", "- / - / -", "- / cancelled / -", "- / - / -",
		"- / - / -", "- / - / -",
		"- / - / -",
	}},
}

func TestWhenTheIDExists(t *testing.T) {
	t.Parallel()
	t.Run("in virtual time", func(t *testing.T) {
		t.Parallel()
		wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
			s := newStage(time.Hour)
			s.client, s.rdb = w.Client(), w.Redis()
			w.Start(wakebell.Config{Handlers: []wakebell.Handler{s.handler()}})
			require.True(t, s.play(t, func(done func() bool) {
				w.Advance(0)
				require.True(t, done())
			}, func() { w.Advance(5 * s.unit) }))
		})
	})
	t.Run("on a real Redis", func(t *testing.T) {
		t.Parallel()
		// A machine that stalls can let a timer be due before the action on it: then all
		// begins again, slower.
		for unit := 3 * time.Second; !playsOnRedis(t, unit); unit *= 2 {
			require.Less(t, unit, time.Minute, "the actions take longer than the timers wait")
		}
	})
}

// playsOnRedis plays the table on a real Redis, and reports whether it was in time.
func playsOnRedis(t *testing.T, unit time.Duration) bool {
	t.Helper()
	s := newStage(unit)
	s.late = true
	s.topic = wakebell.NewTopic[string](fmt.Sprint(redistest.Name(t), unit))
	s.rdb = redistest.Shared(t)
	s.client = stacktest.Serve(t, s.rdb, s.handler()).Client()
	return s.play(t, func(done func() bool) { stacktest.Eventually(t, done) }, func() {
		// The last delivery in the table is after 3 units.
		stacktest.Eventually(t, func() bool { return stacktest.Count(t, s.client, s.topic.Name()) == 0 })
	})
}

// play puts a timer into each state, applies each action to it, and compares the
// results with the table. Meanwhile waits for an intermediate result of the nodes,
// after for all results. It reports false, without a comparison, when an action came so
// late that its timer may have been due.
func (s *stage) play(t *testing.T, meanwhile func(func() bool), after func()) bool {
	t.Helper()
	cells, inTime := s.cells(), true
	for _, state := range []string{"running", "dead", "retrying"} { // states that a handler produces
		for _, c := range cells {
			if c.state == state {
				c.since = s.now(t)
				s.schedule(t, c.id, "old")
			}
		}
		meanwhile(func() bool { return s.reached(t, state) })
	}
	s.acted.Store(true)
	for _, c := range cells {
		if c.since.IsZero() {
			c.since = s.now(t)
		}
		s.put(t, c)
		c.at = s.now(t)
		c.answer = s.act(t, c)
		waits := c.state != "running" && c.state != "dead"
		inTime = inTime && (!waits || s.now(t).Sub(c.since) < s.unit)
		if c.state == "at a peer that commits" {
			s.peer().Commit(t, c.id)
		}
	}
	close(s.release)
	if !inTime {
		return false
	}
	after()
	for _, c := range cells {
		want := strings.Split(c.want, " / ")
		require.Equal(t, want[0], c.answer, "%s: the answer", c.id)
		if saw := s.saw(c.id); want[1] == "gone" { // it may check between the two
			require.Contains(t, []string{"superseded", "cancelled"}, saw, "%s: what the handler saw", c.id)
		} else {
			require.Equal(t, want[1], saw, "%s: what the handler saw", c.id)
		}
		require.Equal(t, want[2], s.deliveredAfter(c), "%s: what was delivered", c.id)
	}
	require.Len(t, stacktest.DeadLetters(t, s.client, s.topic.Name()), len(whenTheIDExists), "dead letters stay")
	return true
}
