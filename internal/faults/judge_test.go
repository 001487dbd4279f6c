package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testLog is a delivery log of one timer, with instants in ms.
type testLog struct {
	*DeliveryLog
	start time.Time
}

func newTestLog() testLog { return testLog{NewDeliveryLog(time.Second), time.Unix(1_000_000, 0)} }

func (b testLog) at(ms int) time.Time { return b.start.Add(time.Duration(ms) * time.Millisecond) }

func (b testLog) scheduled(generation, called, due int, found Found) {
	b.RecordCall("client-1/1", Call{
		Kind: CallSchedule, Client: "client-1", Generation: generation, Called: b.at(called), Returned: b.at(called + 1),
		Earliest: b.at(due), Due: b.at(due), Found: found,
	})
}

// notMoved records a reschedule that was answered with not found.
func (b testLog) notMoved(called, returned int) {
	b.RecordCall("client-1/1", Call{
		Kind: CallReschedule, Client: "client-1", Generation: 2, Called: b.at(called), Returned: b.at(returned),
		Earliest: b.at(called), Found: FoundNothing, Err: errors.New("not found"),
	})
}

// ran records a delivery that ended, or did not end if end is empty.
func (b testLog) ran(node string, generation, attempt, delivered, ended int, end End) {
	line := Line{Event: EventBegin, ID: "client-1/1", Generation: generation, Attempt: attempt, Delivered: b.at(delivered)}
	b.RecordLine(node, line)
	if end != EndNone {
		line.Event, line.At, line.End = EventEnd, b.at(ended), end
		b.RecordLine(node, line)
	}
}

// killedEarly records a first attempt that began on time, perhaps claimed early, and whose
// node was killed; and the second attempt.
func (b testLog) killedEarly(again int) {
	b.fault(Kill, "a", 20, 25)
	first := Line{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: 1, Activation: b.at(10), Delivered: b.at(10)}
	second := first
	second.Attempt, second.Delivered = 2, b.at(again)
	b.RecordLine("a", first)
	b.RecordLine("b", second)
	second.Event, second.At, second.End = EventEnd, b.at(again+10), EndAck
	b.RecordLine("b", second)
}

// killedAfterStall records a delivery after a stall, whose node was killed, and the next one,
// when the lease of a claim at the beginning of the stall has expired.
func (b testLog) killedAfterStall(target string, until int) {
	b.fault(Stall, target, 50, until)
	b.ran("a", 1, 1, 400, 0, EndNone)
	b.fault(Kill, "a", 420, 425)
	b.ran("b", 1, 2, 1060, 1070, EndAck)
}

// overlapping records a run that ended at an instant, and the next one, which began
// at another, after the link of the first was silent. Overlaps up to the limit are
// allowed.
func (b testLog) overlapping(limit, ended, began int) {
	b.MaxOverlap = time.Duration(limit) * time.Millisecond
	b.fault(LinkCut, "a", 20, 1600)
	for _, line := range []Line{
		{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: 1, Delivered: b.at(10), At: b.at(11)},
		{Event: EventEnd, ID: "client-1/1", Delivered: b.at(10), At: b.at(ended), End: EndCut},
	} {
		b.RecordLine("a", line)
	}
	b.RecordLine("b", Line{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: 2, Delivered: b.at(began), At: b.at(began)})
	b.RecordLine("b", Line{Event: EventEnd, ID: "client-1/1", Delivered: b.at(began), At: b.at(began + 10), End: EndAck})
}

// movedEarly records the run of a timer that was moved to 20, and a later run of its early
// claim for 10, with the results of both.
func (b testLog) movedEarly(moved, kept Result) {
	b.RecordLine("a", Line{Event: EventBegin, ID: "client-1/1", Generation: 2, Attempt: 1, Activation: b.at(20), Delivered: b.at(21)})
	b.RecordLine("a", Line{Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: 1, Activation: b.at(10), Delivered: b.at(22)})
	b.settled("a", 21, 30, moved)
	b.settled("a", 22, 30, kept)
}

func (b testLog) settled(node string, delivered, called int, result Result) {
	b.verdict(node, delivered, called, called+1, EndAck, result)
}

// failed notes a failure and when the node had an answer of it.
func (b testLog) failed(node string, delivered, called, answered int, result Result) {
	b.verdict(node, delivered, called, answered, EndNack, result)
}

func (b testLog) verdict(node string, delivered, called, answered int, end End, result Result) {
	line := Line{Event: EventSettling, ID: "client-1/1", Delivered: b.at(delivered), At: b.at(called), End: end}
	b.RecordLine(node, line)
	line.Event, line.At, line.Result = EventSettled, b.at(answered), result
	b.RecordLine(node, line)
}

func (b testLog) fault(kind FaultKind, target string, from, to int, words ...string) {
	b.RecordFault(Fault{Kind: kind, Target: target, From: b.at(from), To: b.at(to), Words: words})
}

// late notes a lease that a subscriber dropped when it arrived at an instant.
func (b testLog) late(attempt, delivered, arrived int) {
	b.RecordLine("a", Line{Event: EventLate, ID: "client-1/1", Attempt: attempt, Delivered: b.at(delivered), At: b.at(arrived)})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(testLog)
		want  Judgement // Timers, Scheduled, Deliveries and recoveries are not compared
	}{
		"delivered": {func(b testLog) { b.ran("a", 1, 1, 10, 20, EndAck) }, Judgement{}},
		"lost":      {func(testLog) {}, Judgement{Lost: 1}},
		"overlaps with the next": {func(b testLog) {
			b.overlapping(100, 1500, 1300)
		}, Judgement{Repeated: 1, Overlapping: 1, Causes: map[Cause]int{CauseLinkCut: 1}}},
		"ended before the next": {func(b testLog) {
			b.overlapping(100, 1250, 1300)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseLinkCut: 1}}},
		"overlaps with the next while its process is stopped": {func(b testLog) {
			b.fault(Stall, "a", 1200, 1500)
			b.overlapping(100, 1500, 1300)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseLinkCut: 1}}},
		"disappeared while it ran": {
			func(b testLog) { b.ran("a", 1, 1, 10, 0, EndNone) }, Judgement{Lost: 1},
		},
		"early": {func(b testLog) { b.ran("a", 1, 1, 9, 20, EndAck) }, Judgement{Early: 1}},
		"repeated before its lease expired": {func(b testLog) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.fault(Kill, "a", 20, 25)
			b.ran("b", 1, 2, 1009, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"repeated after the lease of an early claim": {
			func(b testLog) { b.killedEarly(915) },
			Judgement{Repeated: 1, Causes: map[Cause]int{CauseKill: 1}},
		},
		"repeated before the lease of an early claim expired": {
			func(b testLog) { b.killedEarly(905) },
			Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}},
		},
		"repeated after the lease of a claim whose reply a stall held back": {
			func(b testLog) { b.killedAfterStall("", 400) },
			Judgement{Repeated: 1, Causes: map[Cause]int{CauseKill: 1}},
		},
		"repeated before the lease expired, after a stall of another node": {
			func(b testLog) { b.killedAfterStall("b", 400) },
			Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}},
		},
		"repeated before the lease expired, long after a stall": {
			func(b testLog) { b.killedAfterStall("", 190) },
			Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}},
		},
		"killed": {func(b testLog) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.fault(Kill, "a", 20, 25)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseKill: 1}}},
		"another node was killed": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.fault(Kill, "b", 20, 25)
			b.ran("c", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"killed long after its end": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.fault(Kill, "a", 1100, 1105)
			b.ran("b", 1, 2, 2100, 2110, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"killed after the settlement": {func(b testLog) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.settled("a", 10, 15, ResultAccepted)
			b.fault(Kill, "a", 20, 25)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"released late": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndDraining)
			b.fault(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 600, 610, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"released, and the machine stalled": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndDraining)
			b.fault(Drain, "a", 15, 30)
			b.fault(Stall, "", 40, 590)
			b.ran("b", 1, 1, 600, 610, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseRelease: 1}}},
		"failed while its node drained": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndNack)
			b.fault(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 40, 50, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseRelease: 1}}},
		"failed before its node drained": {func(b testLog) {
			b.ran("a", 1, 1, 10, 12, EndNack)
			b.fault(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 40, 50, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"failed, and its node drained before the failure counted": {func(b testLog) {
			b.ran("a", 1, 1, 10, 12, EndNack)
			b.failed("a", 10, 12, 20, ResultUnknown)
			b.fault(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 40, 50, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseRelease: 1}}},
		"failed, which counted, before its node drained": {func(b testLog) {
			b.ran("a", 1, 1, 10, 12, EndNack)
			b.failed("a", 10, 12, 20, ResultAccepted)
			b.fault(Drain, "a", 15, 30)
			b.ran("b", 1, 1, 40, 50, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"delayed by the lost command of another timer": {func(b testLog) {
			b.ran("a", 1, 1, 10, 1010, EndCut)
			b.fault(LostReply, "a", 20, 20, "client-1/2")
			b.ran("b", 1, 2, 1100, 1110, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseDelayed: 1}}},
		"another node's command was lost": {func(b testLog) {
			b.ran("a", 1, 1, 10, 1010, EndCut)
			b.fault(LostReply, "b", 20, 20, "client-1/2")
			b.ran("b", 1, 2, 1100, 1110, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"a claim that reached no handler": {
			func(b testLog) { b.ran("a", 1, 2, 10, 20, EndAck) }, Judgement{Undelivered: 1},
		},
		"dropped, for its lease had ended": {func(b testLog) {
			b.late(1, 10, 1020)
			b.ran("a", 1, 2, 1030, 1040, EndAck)
		}, Judgement{}},
		"dropped while its lease was good": {func(b testLog) {
			b.late(1, 10, 700)
			b.ran("a", 1, 2, 1030, 1040, EndAck)
		}, Judgement{Undelivered: 1}},
		"one of two claims was dropped": {func(b testLog) {
			b.late(1, 10, 1020)
			b.ran("a", 1, 3, 2030, 2040, EndAck)
		}, Judgement{Undelivered: 1}},
		"dropped, and handled before that lease ended": {func(b testLog) {
			b.late(1, 10, 1020)
			b.ran("a", 1, 2, 900, 910, EndAck)
		}, Judgement{Undelivered: 1}},
		"moved while an early claim was kept, which began last": {func(b testLog) {
			b.scheduled(2, 5, 20, FoundRunning)
			b.movedEarly(ResultAccepted, ResultRefused)
		}, Judgement{}},
		"settled by the early claim of a timer that was moved": {func(b testLog) {
			b.scheduled(2, 5, 20, FoundRunning)
			b.movedEarly(ResultRefused, ResultAccepted)
		}, Judgement{Stale: 1}},
		"settled by a stale holder": {func(b testLog) {
			b.ran("a", 1, 1, 10, 0, EndNone)
			b.fault(Stop, "a", 20, 1100)
			b.ran("b", 1, 2, 1010, 1500, EndAck)
			b.settled("a", 10, 1110, ResultAccepted)
		}, Judgement{Repeated: 1, Stale: 1, Causes: map[Cause]int{CauseStop: 1}}},
		"delivered after it was replaced": {func(b testLog) {
			b.scheduled(2, 12, 50, FoundPending)
			b.ran("a", 1, 1, 20, 30, EndAck)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{Illegal: 1}},
		"replaced, and the new timer lost": {func(b testLog) {
			b.ran("a", 1, 1, 10, 30, EndAck)
			b.scheduled(2, 20, 50, FoundRunning)
		}, Judgement{Lost: 1}},
		"found nothing while a handler had it": {func(b testLog) {
			b.ran("a", 1, 1, 10, 30, EndAck)
			b.scheduled(2, 20, 50, FoundNothing)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{Illegal: 1}},
		"cancelled between a claim and its handler": {func(b testLog) {
			b.scheduled(2, 12, 50, FoundRunning)
			b.ran("a", 1, 1, 20, 30, EndAck)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{}},
		"found running before it was due": {func(b testLog) {
			b.scheduled(2, -195, 50, FoundRunning)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{Illegal: 1}},
		"found running after it was claimed early": {func(b testLog) {
			b.scheduled(2, -50, 50, FoundRunning)
			b.ran("a", 2, 1, 50, 60, EndAck)
		}, Judgement{}},
		"moved and handled, and a reply lost": {func(b testLog) {
			b.notMoved(2, 3)
			b.fault(LostReply, "client-1", 2, 4, "client-1/1")
			b.ran("a", 1, 1, 5, 6, EndAck) // Redis answered 5, and the reply was lost
		}, Judgement{}},
		"moved, although not found": {func(b testLog) {
			b.notMoved(2, 3)
			b.ran("a", 1, 1, 5, 6, EndAck)
		}, Judgement{Early: 1, Illegal: 1}},
		"its serving node was killed": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.fault(ServingKill, "a", 25, 30)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseServingKill: 1}}},
		"its link was cut": {func(b testLog) {
			b.ran("a", 1, 1, 10, 900, EndCut)
			b.fault(LinkCut, "a", 25, 800)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseLinkCut: 1}}},
		"returned after a link cut": {func(b testLog) {
			b.ran("a", 1, 1, 10, 30, EndAck)
			b.fault(LinkCut, "a", 25, 100)
			b.ran("b", 1, 1, 110, 120, EndAck)
		}, Judgement{Repeated: 1, Causes: map[Cause]int{CauseReturned: 1}}},
		"returned while it ran": {func(b testLog) {
			b.ran("a", 1, 1, 10, 300, EndAck)
			b.fault(LinkCut, "a", 25, 100)
			b.ran("b", 1, 1, 110, 120, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"the link of another subscriber was cut": {func(b testLog) {
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.fault(LinkCut, "b", 15, 100)
			b.ran("b", 1, 2, 1010, 1020, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1, Causes: map[Cause]int{CauseNone: 1}}},
		"lost by Redis": {
			func(b testLog) { b.fault(DataLoss, "", 0, 5) }, Judgement{LostByRedis: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestLog()
			b.scheduled(1, 0, 10, FoundNothing)
			c.write(b)
			got := b.Judge()
			got.Timers, got.Scheduled, got.Deliveries, got.Recovery, got.RecoveryBy = 0, 0, 0, nil, nil
			require.Equal(t, got.Broken() > 0, len(got.Violations) > 0)
			got.Violations, got.Confirmed, got.LostConfirmed = nil, nil, nil
			if c.want.Causes == nil {
				c.want.Causes = map[Cause]int{}
			}
			require.Equal(t, &c.want, got)
		})
	}
}

// A schedule that ran twice, because a link was cut, creates a second timer. The node
// that claims it first is killed.
func TestJudgeScheduledTwice(t *testing.T) {
	t.Parallel()
	judged := func(second int) *Judgement {
		b := newTestLog()
		b.RecordCall("client-1/1", Call{
			Kind: CallSchedule, Client: "client-1", Generation: 1, Called: b.at(0), Returned: b.at(400),
			Earliest: b.at(0), Due: b.at(300), Found: FoundNothing,
		})
		b.fault(LinkCut, "client-1", 10, 100)
		b.fault(Kill, "b", 500, 510)
		for _, run := range []struct{ attempt, delivered, activation int }{{1, 50, 20}, {2, 1600, second}} {
			line := Line{
				Event: EventBegin, ID: "client-1/1", Generation: 1, Attempt: run.attempt,
				Delivered: b.at(run.delivered), Activation: b.at(run.activation),
			}
			b.RecordLine("a", line)
			line.Event, line.At, line.End = EventEnd, b.at(run.delivered+10), EndAck
			b.RecordLine("a", line)
			b.settled("a", run.delivered, run.delivered+11, ResultAccepted)
		}
		return b.Judge()
	}
	require.Zero(t, judged(300).Broken(), judged(300).Violations)
	require.Equal(t, map[Cause]int{CauseAmbiguous: 1}, judged(300).Causes)
	require.Equal(t, 1, judged(20).Uncaused, "a retry of a handled timer")
}

// A delay begins at the last tick of the store's clock, which may be before the call.
func TestDelayBeginsAtTickOfClock(t *testing.T) {
	t.Parallel()
	for resolution, early := range map[time.Duration]int{0: 1, 2 * time.Millisecond: 0} {
		b := newTestLog()
		b.Resolution = resolution
		b.RecordCall("client-1/1", Call{
			Kind: CallSchedule, Client: "client-1", Generation: 1, Called: b.at(0), Returned: b.at(1),
			Earliest: b.at(11), Due: b.at(10), Found: FoundNothing,
		})
		b.ran("a", 1, 1, 10, 20, EndAck)
		require.Equal(t, early, b.Judge().Early)
	}
}
