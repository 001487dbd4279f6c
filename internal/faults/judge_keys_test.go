package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keyedRun is a delivery of the n-th timer of a key, in ms.
type keyedRun struct {
	key, n, attempt  int
	delivered, ended int
	end              End
}

func judgedLimits(limits Limits, runs ...keyedRun) *Judgement {
	b := newTestLog()
	b.fault(LostReply, "lossy", 2900, 2900)
	called := map[string]bool{}
	for i, r := range runs {
		id := fmt.Sprintf("client-k%d/%d", r.key, r.n)
		if !called[id] {
			b.RecordCall(id, Call{Kind: CallSchedule, Generation: 1, Called: b.at(r.n), Returned: b.at(r.n + 1), Due: b.at(10)})
		}
		called[id] = true
		node := fmt.Sprint("node-", i)
		if r.delivered >= 3000 {
			node = "lossy"
		}
		line := Line{Event: EventBegin, ID: id, Generation: 1, Attempt: r.attempt, Delivered: b.at(r.delivered)}
		b.RecordLine(node, line)
		line.Event, line.At, line.End = EventEnd, b.at(r.ended), r.end
		b.RecordLine(node, line)
	}
	return b.JudgeLimits(limits)
}

func TestJudgeOfKeys(t *testing.T) {
	t.Parallel()
	one, two := Limits{PerKey: 1}, Limits{PerKey: 2}
	oneLowered := Limits{PerKey: 1, Lowered: true}
	failed, again := keyedRun{1, 0, 1, 10, 20, EndNack}, keyedRun{1, 0, 2, 50, 60, EndAck}
	for name, c := range map[string]struct {
		limits Limits
		runs   []keyedRun
		want   int
	}{
		"one after the other":              {one, []keyedRun{{1, 0, 1, 10, 20, EndAck}, {1, 1, 1, 20, 30, EndAck}}, 0},
		"two keys at once":                 {one, []keyedRun{{1, 0, 1, 10, 20, EndAck}, {2, 0, 1, 10, 30, EndAck}}, 0},
		"two of a key at once":             {one, []keyedRun{{1, 0, 1, 10, 20, EndAck}, {1, 1, 1, 19, 30, EndAck}}, 1},
		"the same with a limit of two":     {two, []keyedRun{{1, 0, 1, 10, 20, EndAck}, {1, 1, 1, 19, 30, EndAck}}, 0},
		"three with a limit of two":        {two, []keyedRun{{1, 0, 1, 10, 20, EndAck}, {1, 1, 1, 11, 30, EndAck}, {1, 2, 1, 12, 30, EndAck}}, 1},
		"a retry before the next":          {one, []keyedRun{failed, again, {1, 1, 1, 60, 70, EndAck}}, 0},
		"the next before a retry":          {one, []keyedRun{failed, {1, 1, 1, 30, 40, EndAck}, again}, 1},
		"the next before a retry, lowered": {oneLowered, []keyedRun{failed, {1, 1, 1, 30, 40, EndAck}, again}, 0},
		"the next before an end, lowered":  {oneLowered, []keyedRun{failed, {1, 1, 1, 15, 40, EndAck}, again}, 1},
		"the next before the first":        {two, []keyedRun{{1, 1, 1, 10, 20, EndAck}, {1, 0, 1, 11, 20, EndAck}}, 1},
		"the first was scheduled later":    {two, []keyedRun{{1, 1, 1, 0, 20, EndAck}, {1, 0, 1, 11, 20, EndAck}}, 0},
		"the first had an unseen claim":    {two, []keyedRun{{1, 1, 1, 10, 20, EndAck}, {1, 0, 2, 1100, 1110, EndAck}}, 0},
		"the first went back":              {two, []keyedRun{{1, 1, 1, 2850, 2860, EndAck}, {1, 0, 1, 2950, 2960, EndAck}}, 0},
		"the first went back, one place":   {one, []keyedRun{{1, 1, 1, 2850, 2860, EndAck}, {1, 0, 1, 2950, 2960, EndAck}}, 1},
		"more than there are places":       {two, []keyedRun{{1, 2, 1, 2850, 2860, EndAck}, {1, 0, 1, 2950, 2960, EndAck}, {1, 1, 1, 2951, 2960, EndAck}}, 2},
		"the other place was taken":        {two, []keyedRun{{1, 2, 1, 2850, 2960, EndAck}, {1, 1, 1, 2840, 2960, EndAck}, {1, 0, 1, 2970, 2980, EndAck}}, 1},
		"the reply to the first was lost":  {two, []keyedRun{{1, 1, 1, 2950, 2960, EndAck}, {1, 0, 1, 3000, 3010, EndAck}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := judgedLimits(c.limits, c.runs...)
			require.Equal(t, c.want, j.Unordered, j.Violations)
			require.Equal(t, c.want, j.Broken())
		})
	}
}

func TestJudgeOfLimits(t *testing.T) {
	t.Parallel()
	every := func(ms, n int) (runs []keyedRun) { // a claim every few ms, held for 100 ms
		for i := range n {
			runs = append(runs, keyedRun{i, 0, 1, i * ms, i*ms + 100, EndAck})
		}
		return runs
	}
	rate := Limits{RateLimit: 10, RatePer: 100 * time.Millisecond, RateBurst: 5}
	require.Zero(t, judgedLimits(rate, every(10, 50)...).Broken())
	require.Zero(t, judgedLimits(rate, every(0, 5)...).Broken(), "a burst")
	require.Equal(t, 1, judgedLimits(rate, every(0, 6)...).Exceeded)
	require.Equal(t, 1, judgedLimits(rate, every(9, 100)...).Exceeded)
	require.Zero(t, judgedLimits(rate, append(every(0, 5), keyedRun{9, 0, 1, 60, 70, EndAck})...).Broken(), "after a pause")
	perKey := Limits{KeyRate: 10, KeyPer: 100 * time.Millisecond, KeyBurst: 2}
	ofAKey := func(delivered ...int) (runs []keyedRun) {
		for n, at := range delivered {
			runs = append(runs, keyedRun{1, n, 1, at, at + 5, EndAck})
		}
		return append(runs, every(0, 9)...) // other keys, each with a token
	}
	require.Zero(t, judgedLimits(perKey, ofAKey(50, 50, 60, 70)...).Broken())
	require.Equal(t, 1, judgedLimits(perKey, ofAKey(50, 50, 59)...).Exceeded)
	require.Zero(t, judgedLimits(Limits{MaxInFlight: 10}, every(10, 50)...).Broken())
	require.Equal(t, 1, judgedLimits(Limits{MaxInFlight: 9}, every(10, 50)...).Exceeded)
	require.Zero(t, judgedLimits(Limits{MaxInFlight: 1}, keyedRun{1, 0, 1, 0, 2000, EndAck}, keyedRun{2, 0, 1, 1000, 1100, EndAck}).Broken(), "an expired lease")
}
