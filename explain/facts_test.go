package explain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// dueTimer is a timer that became due a minute ago, on a topic with two nodes.
func dueTimer() facts {
	t := wakebell.Info{ID: "x", State: wakebell.StatePending, Due: now.Add(-time.Minute), Activation: now.Add(-time.Minute)}
	return facts{now: now, topic: "t", id: "x", timer: t, overview: wakebelltype.Overview{Nodes: 2}, first: []wakebell.Info{t}}
}

// breaker is the report of a node whose breaker opened before and closes after now by d.
func breaker(d time.Duration) wakebelltype.NodeReport {
	return wakebelltype.NodeReport{Node: "h/1/x", State: wakebelltype.NodeState{
		Breaker: "open", BreakerSince: now.Add(-d), BreakerUntil: now.Add(d), BreakerReason: "half failed",
	}}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*facts)
		want     []Cause
		says     string
		earliest time.Time
	}{
		"about to run": {func(*facts) {}, nil, "about to run", now},
		"running":      {func(f *facts) { f.timer.State, f.timer.Attempts = wakebell.StateRunning, 3 }, nil, "attempt 3", time.Time{}},
		"running for long": {
			func(f *facts) {
				f.timer.State, f.timer.Attempts = wakebell.StateRunning, 2
				old := wakebelltype.LongRun{ID: "x", Attempt: 1, Since: now.Add(-2 * time.Hour)}
				f.overview.Reports = []wakebelltype.NodeReport{
					{Node: "a/1/x", State: wakebelltype.NodeState{Longest: []wakebelltype.LongRun{old}}},
					{Node: "b/2/x", State: wakebelltype.NodeState{Longest: []wakebelltype.LongRun{{ID: "x", Attempt: 2, Since: now.Add(-time.Hour)}}}},
				}
			}, nil, "a handler on b/2 has it: attempt 2", time.Time{},
		},
		"leased by a node that is gone": {
			func(f *facts) {
				f.timer.State, f.timer.Attempts, f.timer.Due, f.overview.Nodes = wakebell.StateRunning, 3, now.Add(20*time.Second), 0
			},
			[]Cause{CauseNoNode},
			"it waits: no node is seen at its topic: the one that leased it is gone, or cut off; the lease expires at 2026-11-27T12:00:20Z",
			time.Time{},
		},
		"leased by the only node":                 {leasedByOne(now.Add(-time.Minute)), nil, "a handler on b/2 has it: attempt 3", time.Time{}},
		"leased before the only node has started": {leasedByOne(now.Add(-9 * time.Second)), nil, "a handler has it: attempt 3", time.Time{}},
		"leased and extended by one of two":       {answered(20*time.Second, "a/1", "b/2"), nil, "a handler has it: attempt 3", time.Time{}},
		"extended by none of two":                 {answered(12*time.Second, "a/1", "b/2"), []Cause{CauseNoNode}, "its lease was not extended for over 18s", time.Time{}},
		"not all that live have answered":         {answered(12*time.Second, "a/1"), nil, "a handler has it: attempt 3", time.Time{}},
		"leased by one that is dead": {
			func(f *facts) {
				answered(20*time.Second, "a/1", "b/2")(f)
				f.overview.Reports = []wakebelltype.NodeReport{{Node: "c/3/x", State: wakebelltype.NodeState{Longest: []wakebelltype.LongRun{{ID: "x", Attempt: 3}}}}}
			}, []Cause{CauseNoNode}, "c/3, which leased it, does not answer", time.Time{},
		},
		"leased again after its first node has died": {
			func(f *facts) {
				answered(20*time.Second, "a/1", "b/2")(f)
				f.overview.Reports = []wakebelltype.NodeReport{{Node: "c/3/x", State: wakebelltype.NodeState{Longest: []wakebelltype.LongRun{{ID: "x", Attempt: 2}}}}}
			}, nil, "a handler has it: attempt 3", time.Time{},
		},
		"leased behind another of its key": {
			leased(1, wakebell.Info{ID: "z", Key: "k", Activation: now.Add(-2 * time.Minute)}, wakebell.Info{ID: "y", Key: "k", Activation: now.Add(-3 * time.Minute)}),
			[]Cause{CauseKey},
			`it waits: a node has leased it in the key run of "k", behind y on b/2`,
			time.Time{},
		},
		"leased before another of its key": {
			leased(1, wakebell.Info{ID: "y", Key: "k", Activation: now}), nil, "a handler has it: attempt 1", time.Time{},
		},
		"leased beside one of equal instant": {
			leased(1, wakebell.Info{ID: "y", Key: "k", Activation: now.Add(-time.Minute)}), nil, "a handler has it: attempt 1", time.Time{},
		},
		"leased beside one of another key": {
			leased(1, wakebell.Info{ID: "y", Key: "l", Activation: now.Add(-time.Hour)}), nil, "a handler has it: attempt 1", time.Time{},
		},
		"one of two that run": {
			leased(2, wakebell.Info{ID: "y", Key: "k", Activation: now.Add(-time.Hour)}), nil, "a handler has it: attempt 1", time.Time{},
		},
		"parked behind a key run": {
			func(f *facts) {
				parked(wakebell.Info{ID: "b", Key: "k", State: wakebell.StateRunning, Activation: now})(f)
				f.running = append(f.running, wakebell.Info{ID: "y", Key: "k", State: wakebell.StateRunning, Activation: now.Add(-time.Hour)})
			}, []Cause{CauseKey}, "; y runs", time.Time{},
		},
		"infinite": {func(f *facts) { f.timer.State = wakebell.StateNever }, []Cause{CauseNever}, "infinite", time.Time{}},
		"not due": {
			func(f *facts) { f.timer.Due, f.timer.Activation = now.Add(time.Hour), now.Add(time.Hour) },
			[]Cause{CauseNotDue},
			"not come", now.Add(time.Hour),
		},
		"not due, and no node": {
			func(f *facts) {
				f.timer.Due, f.timer.Activation, f.overview.Nodes = now.Add(time.Hour), now.Add(time.Hour), 0
			},
			[]Cause{CauseNotDue, CauseNoNode},
			"not come",
			time.Time{},
		},
		"failed": {
			func(f *facts) {
				f.timer.State, f.timer.Due, f.timer.Attempts, f.timer.Failures = wakebell.StateRetrying, now.Add(time.Minute), 2, 1
				f.timer.LastError = "refused"
			}, []Cause{CauseRetry}, "attempt 2 failed, and the next comes after the backoff: refused", now.Add(time.Minute),
		},
		"without an outcome": {
			func(f *facts) {
				f.timer.State, f.timer.Due, f.timer.Attempts = wakebell.StateRetrying, now.Add(time.Minute), 1
			},
			[]Cause{CauseRetry},
			"without an outcome", now.Add(time.Minute),
		},
		"paused, damaged, no node": {
			func(f *facts) {
				f.overview.Control = wakebelltype.Control{Paused: true, PausedBy: "ada", Reason: "why"}
				f.overview.Damage, f.overview.Nodes = "12 payloads", 0
			}, []Cause{CauseDamage, CausePaused, CauseNoNode}, "12 payloads", time.Time{},
		},
		"nodes are not known":    {func(f *facts) { f.overview.Nodes = -1 }, nil, "about to run", now},
		"nodes cannot be read":   {func(f *facts) { f.overview = wakebelltype.Overview{Err: errors.New("refused")} }, nil, "", now},
		"a breaker of two nodes": {func(f *facts) { f.overview.Reports = []wakebelltype.NodeReport{breaker(time.Minute)} }, nil, "", now},
		"all breakers": {
			func(f *facts) {
				f.overview.Reports = []wakebelltype.NodeReport{breaker(time.Hour), breaker(time.Minute)}
			},
			[]Cause{CauseBreaker},
			"2 nodes are not closed: half failed", now.Add(time.Minute),
		},
		"a move": {func(f *facts) { f.moving = true }, []Cause{CauseMoving}, "other shards", now},
		"a rate": {
			func(f *facts) {
				f.overview.Control.Settings = wakebelltype.Settings{RateLimit: 2, RatePer: time.Second}
				f.first = append(make([]wakebell.Info, 10), f.first...)
			}, []Cause{CauseRate}, "limited to 2 in 1s over all nodes, and 10 due timers come before it", now.Add(5 * time.Second),
		},
		"a rate that an operator took off": {
			func(f *facts) {
				f.overview.Reports = []wakebelltype.NodeReport{{State: wakebelltype.NodeState{Options: wakebelltype.Settings{RateLimit: 2, RatePer: time.Second}}}}
				f.overview.Control.Settings = wakebelltype.Settings{RateLimit: -1}
			}, nil, "", now,
		},
		"in flight": {
			func(f *facts) { f.overview.Control.Settings.MaxInFlight, f.overview.Stats.Leased = 5, 5 },
			[]Cause{CauseInFlight},
			"5 of at most 5",
			time.Time{},
		},
		"behind others": {
			func(f *facts) { f.overview.Stats.Leased, f.first = 7, make([]wakebell.Info, looked) },
			[]Cause{CauseBehind},
			"more than 1000 timers come before it; 7 run on 2 nodes",
			time.Time{},
		},
		"due for long": {
			func(f *facts) { f.timer.Due = now.Add(-time.Hour) },
			[]Cause{CauseBehind},
			"0 due timers come before it",
			time.Time{},
		},
		"a rate of its key": {
			func(f *facts) {
				f.timer.Key, f.timer.Due = "k", now.Add(time.Second)
				f.overview.Control.Settings = wakebelltype.Settings{KeyRateLimit: 1, KeyRatePer: time.Minute}
			}, []Cause{CauseKeyRate}, `its key "k" is limited to 1 in 1m0s`, now.Add(time.Second),
		},
		"a snooze, under a rate of its key": {
			func(f *facts) {
				f.timer.Key, f.timer.Due, f.timer.LastError = "k", now.Add(time.Second), "snoozed for 1s"
				f.overview.Control.Settings = wakebelltype.Settings{KeyRateLimit: 1, KeyRatePer: time.Minute}
			}, []Cause{CauseRetry}, "its handler has put it off: snoozed for 1s", now.Add(time.Second),
		},
		"parked for its turn": {
			func(f *facts) { parked(wakebell.Info{})(f); f.overview.Control.Settings.FairKeys = 2 },
			[]Cause{CauseKey},
			"keys take turns of 2 (FairKeys), and it waits for the turn of its key",
			time.Time{},
		},
		"a join": {
			joining(wakebelltype.Join{Parts: 5, Done: 1, Dead: 1}, "a of t (running)"),
			[]Cause{CauseJoin, CauseNotDue},
			"its join waits for 3 of 5 parts: a of t (running) and others",
			time.Time{},
		},
		"an open join":    {joining(wakebelltype.Join{Open: true}), []Cause{CauseJoin, CauseNotDue}, "open to more parts, and 0 of 0 have not ended", time.Time{}},
		"a complete join": {joining(wakebelltype.Join{Parts: 1, Missing: 1}), []Cause{CauseJoin, CauseNotDue}, "the next audit of a node", time.Time{}},
		"a join that was late": {
			func(f *facts) { f.joined = &join{Join: wakebelltype.Join{Parts: 2, Done: 1}} },
			nil, "the time-out of its join came first: 1 of 2 parts have not ended", now,
		},
		"a join whose parts have ended": {
			func(f *facts) { f.joined = &join{Join: wakebelltype.Join{Parts: 2, Done: 2}} },
			nil, "about to run; all 2 parts of its join have ended", now,
		},
		"a part": {func(f *facts) { f.waiters = []string{"r of reports"} }, nil, "about to run; a join waits for it: r of reports", now},
		"parked": {parked(wakebell.Info{}), []Cause{CauseKey}, `1 of its key "k" may run at once, and others come first`, time.Time{}},
		"parked behind one that runs": {
			parked(wakebell.Info{ID: "y", Key: "k", State: wakebell.StateRunning}), []Cause{CauseKey}, "; y runs", time.Time{},
		},
		"parked behind one that failed": {
			parked(wakebell.Info{ID: "y", Key: "k", State: wakebell.StateRetrying, Due: now.Add(time.Hour)}),
			[]Cause{CauseKey},
			"y waits for its next attempt",
			time.Time{},
		},
		"parked behind one that waits for a token": {
			parked(wakebell.Info{ID: "y", Key: "k", State: wakebell.StatePending, Due: now.Add(time.Hour), Activation: now}),
			[]Cause{CauseKey},
			"y waits for a token",
			time.Time{},
		},
		"parked behind one that is due": {
			parked(wakebell.Info{ID: "y", Key: "k", State: wakebell.StatePending, Due: now, Activation: now}),
			[]Cause{CauseKey},
			"y is due before it",
			time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dueTimer()
			c.change(&f)
			e := f.present()
			var got []Cause
			for _, w := range e.Waits {
				got = append(got, w.Cause)
			}
			require.Equal(t, c.want, got)
			require.Contains(t, e.Summary, c.says)
			require.Equal(t, c.earliest, e.Earliest)
		})
	}
}

// joining makes the timer that of a join whose instant has not come.
func joining(j wakebelltype.Join, first ...string) func(*facts) {
	return func(f *facts) {
		f.timer.Due, f.timer.Activation = now.Add(time.Hour), now.Add(time.Hour)
		f.joined = &join{j, first}
	}
}

// leasedByOne makes a node the only one, and extends a lease of 30 s on the timer 10 s ago.
func leasedByOne(started time.Time) func(*facts) {
	return func(f *facts) {
		f.timer.State, f.timer.Attempts, f.timer.Due, f.overview.Nodes = wakebell.StateRunning, 3, now.Add(20*time.Second), 1
		f.overview.Reports = []wakebelltype.NodeReport{{Node: "b/2/x", State: wakebelltype.NodeState{
			Started: started, Options: wakebelltype.Settings{LeaseTTL: 30 * time.Second},
		}}}
	}
}

// answered has some of two nodes answer, whose leases last 30 s; that of the timer ends in left.
func answered(left time.Duration, nodes ...string) func(*facts) {
	return func(f *facts) {
		f.timer.State, f.timer.Attempts, f.timer.Due = wakebell.StateRunning, 3, now.Add(left)
		for _, node := range nodes {
			f.alive = append(f.alive, wakebelltype.NodeAnswer{Node: node, State: &wakebelltype.NodeState{Options: wakebelltype.Settings{LeaseTTL: 30 * time.Second}}})
		}
	}
}

// leased makes the timer one of several of its key that are leased, of which n may run at once. The
// node b/2 has reported y.
func leased(n int, others ...wakebell.Info) func(*facts) {
	return func(f *facts) {
		f.timer.State, f.timer.Key, f.timer.Attempts, f.first = wakebell.StateRunning, "k", 1, nil
		f.running = append([]wakebell.Info{f.timer}, others...)
		f.overview.Reports = []wakebelltype.NodeReport{{Node: "b/2/x", State: wakebelltype.NodeState{
			Options: wakebelltype.Settings{PerKey: n}, Longest: []wakebelltype.LongRun{{ID: "y", Attempt: 1, Since: now}},
		}}}
	}
}

// parked makes the timer wait for its key, which another one may have.
func parked(other wakebell.Info) func(*facts) {
	return func(f *facts) {
		f.timer.State, f.timer.Key = wakebell.StateParked, "k"
		f.overview.Control.Settings.PerKey = 1
		f.first = []wakebell.Info{{ID: "z", Key: "another", State: wakebell.StateRetrying}, other}
		if other.State == wakebell.StateRunning {
			f.running = f.first[1:]
		}
	}
}

func TestAbsent(t *testing.T) {
	t.Parallel()
	f := facts{topic: "t", id: "x"}
	require.Contains(t, f.absent().Summary, "is the name right?")
	f.overview.Nodes = 1
	require.Contains(t, f.absent().Summary, "nothing is stored of it")
	f.attempts = []wakebelltype.Attempt{{Outcome: wakebelltype.EventAcked}}
	require.Equal(t, "it is not stored any more; its last attempt succeeded", f.absent().Summary)
	f.attempts = []wakebelltype.Attempt{{Outcome: wakebelltype.EventRetried}}
	require.Equal(t, "it was removed after an attempt that failed", f.absent().Summary)
	f.letter = &wakebell.DeadLetter{Entry: "1-0", Attempts: 3, Reason: "refused"}
	require.Equal(t, StateDead, f.absent().State)
	require.Equal(t, []string{"dead show --topic t 1-0", "dead redrive --topic t 1-0"}, f.absent().Commands)
}

// Changes of others' timers are left out.
func TestPastHasChangesOfTimerAndTopic(t *testing.T) {
	t.Parallel()
	f := dueTimer()
	change := func(op wakebelltype.AuditOperation, detail string) wakebelltype.AuditEntry {
		return wakebelltype.AuditEntry{Operation: op, At: now, By: "ada", Detail: detail}
	}
	f.changes = []wakebelltype.AuditEntry{
		change(wakebelltype.AuditTopicRunNow, "x"), change(wakebelltype.AuditTopicRunNow, "y"),
		change(wakebelltype.AuditTopicPause, "by: ada, reason: why"),
		{Operation: wakebelltype.AuditTopicRetune, At: now.Add(-48 * time.Hour)},
	}
	var said []string
	for _, s := range f.past() {
		said = append(said, s.Text)
	}
	require.Equal(t, []string{"the instant for which it was scheduled", "run now by ada: x", "pause by ada: reason: why"}, said)
}

// History rounds the beginning of an attempt, which may then be before the instant of its timer.
func TestPastHasAttemptsBehindTheirInstant(t *testing.T) {
	t.Parallel()
	f := dueTimer()
	f.attempts = []wakebelltype.Attempt{{Started: f.timer.Activation.Add(-time.Millisecond), Attempt: 1}, {Started: f.timer.Activation, Attempt: 2}}
	past := f.past()
	require.Len(t, past, 3)
	require.Equal(t, "the instant for which it was scheduled", past[0].Text)
}

func TestOutcomesHaveWords(t *testing.T) {
	t.Parallel()
	for _, kind := range []wakebelltype.EventKind{
		wakebelltype.EventAcked, wakebelltype.EventRetried, wakebelltype.EventDead, wakebelltype.EventDiscarded, wakebelltype.EventCrashed,
		wakebelltype.EventSuperseded, wakebelltype.EventCancelled, wakebelltype.EventLost,
	} {
		require.NotContains(t, outcomeText(kind), "ended as", kind)
	}
	require.Equal(t, "ended as new", outcomeText("new"))
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	node := wakebelltype.Overview{Nodes: 1}
	for state, s := range map[string]recurring.State{
		StateWaits: {Next: now}, StateFinished: {}, StatePaused: {Paused: true, Next: now}, StateOverdue: {Next: now, Overdue: time.Hour},
	} {
		require.Equal(t, state, ofSchedule(s, node).State)
	}
	require.Equal(t, CauseFault, ofSchedule(recurring.State{Fault: "not JSON"}, node).Waits[0].Cause)
	// Overlap skip drops the run, so the schedule is not overdue because of it.
	for overlap, holds := range map[recurring.Overlap]bool{recurring.OverlapQueue: true, recurring.OverlapSkip: false, recurring.OverlapAllow: false} {
		late := ofSchedule(recurring.State{Next: now, Overdue: time.Hour, Rule: recurring.Rule{Overlap: overlap}}, node)
		require.Equal(t, holds, strings.Contains(late.Waits[0].Text, "or its last run has not ended"), "%q", overlap)
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	holder := wakebelltype.GateTicket{Fence: 7, Process: "h:1:x"}
	for state, g := range map[string]wakebelltype.GateInfo{
		StateUnknown: {}, StateFree: {LastFence: 6},
		StateHeld:   {Holder: holder, Confirmed: true, Since: now, Now: now.Add(time.Minute)},
		StateQueued: {Holder: holder, Confirmed: true, Waiting: 2},
	} {
		e := ofGate(g)
		require.Equal(t, state, e.State, fmt.Sprint(g))
		require.Equal(t, state == StateQueued, len(e.Waits) == 1)
	}
	require.Equal(t, "h:1:x has turn 7 for 1m0s", ofGate(wakebelltype.GateInfo{Holder: holder, Confirmed: true, Since: now, Now: now.Add(time.Minute)}).Summary)
	require.Contains(t, ofGate(wakebelltype.GateInfo{Holder: holder}).Summary, "is being handed to")
}
