package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// book writes a ledger of one timer, with instants in ms.
type book struct {
	*Ledger
	start time.Time
}

func newBook() book { return book{NewLedger(time.Second), time.Unix(1_000_000, 0)} }

func (b book) at(ms int) time.Time { return b.start.Add(time.Duration(ms) * time.Millisecond) }

func (b book) scheduled(generation, called, due int, found Found) {
	b.Called("client-1/1", Call{
		Kind: CallSchedule, Client: "client-1", Generation: generation, Called: b.at(called), Returned: b.at(called + 1),
		Earliest: b.at(due), Due: b.at(due), Found: found,
	})
}

// notMoved notes a reschedule that found nothing, and was told so at an instant.
func (b book) notMoved(called, returned int) {
	b.Called("client-1/1", Call{
		Kind: CallReschedule, Client: "client-1", Generation: 2, Called: b.at(called), Returned: b.at(returned),
		Earliest: b.at(called), Found: FoundNothing, Err: errors.New("not found"),
	})
}

// ran notes a delivery that ended, or did not where end is empty.
func (b book) ran(node string, generation, attempt, delivered, ended int, end End) {
	line := Line{Event: EventBegin, ID: "client-1/1", Generation: generation, Attempt: attempt, Delivered: b.at(delivered)}
	b.Heard(node, line)
	if end != EndNone {
		line.Event, line.At, line.End = EventEnd, b.at(ended), end
		b.Heard(node, line)
	}
}

// beside notes a run that ended at an instant, and the next one that began at
// another, after the link of the first was silent. Runs may not be longer beside
// each other than the limit.
func (b book) beside(limit, ended, began int) {
	b.Beside = time.Duration(limit) * time.Millisecond
	b.struck(Cut, "a", 20, 1600)
	for _, line := range []Line{
		{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: 1, Delivered: b.at(10), At: b.at(11)},
		{Event: EventEnd, ID: "client-1/1", Delivered: b.at(10), At: b.at(ended), End: EndCut},
	} {
		b.Heard("a", line)
	}
	b.Heard("b", Line{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: 2, Delivered: b.at(began), At: b.at(began)})
	b.Heard("b", Line{Event: EventEnd, ID: "client-1/1", Delivered: b.at(began), At: b.at(began + 10), End: EndAck})
}

func (b book) settled(node string, delivered, called int, result Result) {
	line := Line{Event: EventSettling, ID: "client-1/1", Delivered: b.at(delivered), At: b.at(called), End: EndAck}
	b.Heard(node, line)
	line.Event, line.At, line.Result = EventSettled, b.at(called+1), result
	b.Heard(node, line)
}

func (b book) struck(kind FaultKind, who string, from, to int, words ...string) {
	b.Struck(Fault{Kind: kind, Who: who, From: b.at(from), To: b.at(to), Words: words})
}

// late notes a lease that a subscriber dropped when it arrived at an instant.
func (b book) late(attempt, delivered, arrived int) {
	b.Heard("a", Line{Event: EventLate, ID: "client-1/1", Attempt: attempt, Delivered: b.at(delivered), At: b.at(arrived)})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(book)
		want  Judgement // Timers, Scheduled, Deliveries and recoveries are not compared
	}{
		"delivered": {func(b book) { b.ran("a", 1, 1, 10, 20, EndAck) }, Judgement{}},
		"lost":      {func(book) {}, Judgement{Lost: 1}},
		"beside the next": {func(b book) {
			b.beside(100, 1500, 1300)
		}, Judgement{Repeated: 1, Beside: 1, Causes: map[Cause]int{CauseCut: 1}}},
		"over before the next": {func(b book) {
			b.beside(100, 1250, 1300)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseCut: 1}}},
		"beside the next, and its process stood still": {func(b book) {
			b.struck(Stall, "a", 1200, 1500)
			b.beside(100, 1500, 1300)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseCut: 1}}},
		"gone while it ran": {
			func(b book) { b.ran("a", 1, 1, 10, 0, EndNone) }, Judgement{Lost: 1},
		},
		"early": {func(b book) { b.ran("a", 1, 1, 9, 20, EndAck) }, Judgement{Early: 1}},
		"repeated while its lease was good": {func(b book) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.struck(Kill, "a", 20, 25)
			b.ran("b", 1, 2, 1009, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"killed": {func(b book) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.struck(Kill, "a", 20, 25)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseKill: 1}}},
		"another node was killed": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.struck(Kill, "b", 20, 25)
			b.ran("c", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"killed long after its end": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.struck(Kill, "a", 1100, 1105)
			b.ran("b", 1, 2, 2100, 2110, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"killed after the settlement": {func(b book) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.settled("a", 10, 15, ResultAccepted)
			b.struck(Kill, "a", 20, 25)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"released late": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndDraining)
			b.struck(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 600, 610, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"released, and the machine stalled": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndDraining)
			b.struck(Drain, "a", 15, 30)
			b.struck(Stall, "", 40, 590)
			b.ran("b", 1, 1, 600, 610, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseRelease: 1}}},
		"failed while its node drained": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndNack)
			b.struck(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 40, 50, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseRelease: 1}}},
		"failed before its node drained": {func(b book) {
			b.ran("a", 1, 1, 10, 12, EndNack)
			b.struck(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 40, 50, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"behind another's lost command": {func(b book) {
			b.ran("a", 1, 1, 10, 1010, EndCut)
			b.struck(LostReply, "a", 20, 20, "client-1/2")
			b.ran("b", 1, 2, 1100, 1110, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseHeldUp: 1}}},
		"another node's command was lost": {func(b book) {
			b.ran("a", 1, 1, 10, 1010, EndCut)
			b.struck(LostReply, "b", 20, 20, "client-1/2")
			b.ran("b", 1, 2, 1100, 1110, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"a claim that no handler saw": {
			func(b book) { b.ran("a", 1, 2, 10, 20, EndAck) }, Judgement{Undelivered: 1},
		},
		"dropped, for its lease had ended": {func(b book) {
			b.late(1, 10, 1020)
			b.ran("a", 1, 2, 1030, 1040, EndAck)
		}, Judgement{}},
		"dropped while its lease was good": {func(b book) {
			b.late(1, 10, 700)
			b.ran("a", 1, 2, 1030, 1040, EndAck)
		}, Judgement{Undelivered: 1}},
		"one of two claims was dropped": {func(b book) {
			b.late(1, 10, 1020)
			b.ran("a", 1, 3, 2030, 2040, EndAck)
		}, Judgement{Undelivered: 1}},
		"dropped, and handled before that lease ended": {func(b book) {
			b.late(1, 10, 1020)
			b.ran("a", 1, 2, 900, 910, EndAck)
		}, Judgement{Undelivered: 1}},
		"settled by a stale holder": {func(b book) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.struck(Stop, "a", 20, 1100)
			b.ran("b", 1, 2, 1010, 1500, EndAck)
			b.settled("a", 10, 1110, ResultAccepted)
		}, Judgement{Repeated: 1, Stale: 1, Causes: map[Cause]int{CauseStop: 1}}},
		"delivered after it was replaced": {func(b book) {
			b.scheduled(2, 12, 50, FoundPending)
			b.ran("a", 1, 1, 20, 30, EndAck)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{Illegal: 1}},
		"replaced, and the new one lost": {func(b book) {
			b.ran("a", 1, 1, 10, 30, EndAck)
			b.scheduled(2, 20, 50, FoundRunning)
		}, Judgement{Lost: 1}},
		"found nothing while a handler had it": {func(b book) {
			b.ran("a", 1, 1, 10, 30, EndAck)
			b.scheduled(2, 20, 50, FoundNothing)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{Illegal: 1}},
		"cancelled between a claim and its handler": {func(b book) {
			b.scheduled(2, 12, 50, FoundRunning)
			b.ran("a", 1, 1, 20, 30, EndAck)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{}},
		"found running before it was due": {func(b book) {
			b.scheduled(2, 5, 50, FoundRunning)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{Illegal: 1}},
		"moved and handled, and a reply lost": {func(b book) {
			b.notMoved(2, 3)
			b.struck(LostReply, "client-1", 2, 4, "client-1/1")
			b.ran("a", 1, 1, 5, 6, EndAck) // Redis answered 5, and nobody heard it
		}, Judgement{}},
		"moved, though it was not found": {func(b book) {
			b.notMoved(2, 3)
			b.ran("a", 1, 1, 5, 6, EndAck)
		}, Judgement{Early: 1, Illegal: 1}},
		"its node was killed": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.struck(Orphan, "a", 25, 30)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseOrphan: 1}}},
		"its link was cut": {func(b book) {
			b.ran("a", 1, 1, 10, 900, EndCut)
			b.struck(Cut, "a", 25, 800)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseCut: 1}}},
		"given back when its link was back": {func(b book) {
			b.ran("a", 1, 1, 10, 30, EndAck)
			b.struck(Cut, "a", 25, 100)
			b.ran("b", 1, 1, 110, 120, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseReturned: 1}}},
		"given back while it ran": {func(b book) {
			b.ran("a", 1, 1, 10, 300, EndAck)
			b.struck(Cut, "a", 25, 100)
			b.ran("b", 1, 1, 110, 120, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"another's link was cut": {func(b book) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.struck(Cut, "b", 15, 100)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"forgotten": {
			func(b book) { b.struck(Amnesia, "", 0, 5) }, Judgement{Forgotten: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook()
			b.scheduled(1, 0, 10, FoundNothing)
			c.write(b)
			got := b.Judge()
			got.Timers, got.Scheduled, got.Deliveries, got.Recovery, got.RecoveryBy = 0, 0, 0, nil, nil
			require.Equal(t, got.Broken() > 0, len(got.Violations) > 0)
			got.Violations = nil
			if c.want.Causes == nil {
				c.want.Causes = map[Cause]int{}
			}
			require.Equal(t, &c.want, got)
		})
	}
}

// A schedule that was made twice over a link that was cut makes a second timer,
// of which the node that claims it first is killed.
func TestJudgeScheduledTwice(t *testing.T) {
	t.Parallel()
	judged := func(second int) *Judgement {
		b := newBook()
		b.Called("client-1/1", Call{
			Kind: CallSchedule, Client: "client-1", Generation: 1, Called: b.at(0), Returned: b.at(400),
			Earliest: b.at(0), Due: b.at(300), Found: FoundNothing,
		})
		b.struck(Cut, "client-1", 10, 100)
		b.struck(Kill, "b", 500, 510)
		for _, run := range []struct{ attempt, delivered, activation int }{{1, 50, 20}, {2, 1600, second}} {
			line := Line{
				Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: run.attempt,
				Delivered: b.at(run.delivered), Activation: b.at(run.activation),
			}
			b.Heard("a", line)
			line.Event, line.At, line.End = EventEnd, b.at(run.delivered+10), EndAck
			b.Heard("a", line)
			b.settled("a", run.delivered, run.delivered+11, ResultAccepted)
		}
		return b.Judge()
	}
	require.Zero(t, judged(300).Broken(), judged(300).Violations)
	require.Equal(t, map[Cause]int{CauseAmbiguous: 1}, judged(300).Causes)
	require.Equal(t, 1, judged(20).Uncaused, "a retry of what was handled")
}
