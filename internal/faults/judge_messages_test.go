package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// published records a publish of a new draft that was answered with a message id.
func (b testLog) published(called int, message string, found Found) {
	b.publish(Call{Draft: called, Called: b.at(called), Found: found, Message: message})
}

// unanswered records an attempt to publish a draft that got no answer.
func (b testLog) unanswered(called, draft int) {
	b.publish(Call{Draft: draft, Called: b.at(called), Err: errors.New("no answer")})
}

func (b testLog) publish(c Call) {
	c.Kind, c.Client, c.Generation, c.Earliest = CallSchedule, "client-1", 1, c.Called
	if c.Returned.IsZero() {
		c.Returned = c.Called.Add(time.Millisecond)
	}
	b.RecordCall("client-1/1", c)
}

// held records a delivery of a message to a handler, and its end.
func (b testLog) held(node, message string, attempt, delivered int, end End) {
	line := Line{
		Event: EventBegin, ID: "client-1/1", Message: message, Generation: 1,
		Attempt: attempt, Failures: attempt - 1, Delivered: b.at(delivered),
	}
	b.RecordLine(node, line)
	line.Event, line.At, line.End = EventEnd, b.at(delivered+1), end
	b.RecordLine(node, line)
}

func TestJudgeMessages(t *testing.T) {
	t.Parallel()
	deadLetters := func(ids ...string) map[string][]string { return map[string][]string{"client-1/1": ids} }
	for name, c := range map[string]struct {
		write       func(testLog)
		deadLetters map[string][]string
		want        Judgement
	}{
		"handled, and published again": {func(b testLog) {
			b.published(0, "m", FoundNothing)
			b.published(5, "m", FoundPending)
			b.held("a", "m", 1, 10, EndAck)
		}, nil, Judgement{}},
		"a publish that is answered again": {func(b testLog) {
			b.published(0, "m", FoundNothing)
			b.published(5, "m", FoundNothing)
			b.held("a", "m", 1, 10, EndAck)
		}, nil, Judgement{}},
		"published as new twice": {func(b testLog) {
			b.published(0, "m", FoundNothing)
			b.published(5, "n", FoundNothing)
		}, nil, Judgement{Uncaused: 1}},
		"published twice, one without an answer": {func(b testLog) {
			b.published(5, "n", FoundNothing)
			b.held("a", "m", 1, 10, EndAck)
			b.held("a", "n", 1, 11, EndAck)
		}, nil, Judgement{Uncaused: 1}},
		"published twice, one dead-lettered": {func(b testLog) {
			b.published(5, "n", FoundNothing)
			b.held("a", "n", 1, 11, EndReject)
		}, deadLetters("m"), Judgement{Uncaused: 1}},
		"a retry that is answered as a duplicate of its first attempt": {func(b testLog) {
			b.unanswered(0, 5)
			b.published(5, "m", FoundPending)
		}, nil, Judgement{Illegal: 1}},
		"an attempt without a retry": {func(b testLog) {
			b.unanswered(0, 1)
			b.published(5, "m", FoundPending)
		}, nil, Judgement{}},
		"failed, then rejected": {func(b testLog) {
			b.held("a", "m", 1, 10, EndNack)
			b.held("a", "m", 2, 20, EndReject)
		}, deadLetters("m"), Judgement{}},
		"two dead letters": {func(b testLog) {
			b.held("a", "m", 1, 10, EndReject)
		}, deadLetters("m", "m"), Judgement{Uncaused: 1}},
		"rejected, and no dead letter": {func(b testLog) {
			b.held("a", "m", 1, 10, EndReject)
		}, nil, Judgement{Lost: 1}},
		"a dead letter without a rejection": {func(b testLog) {
			b.held("a", "m", 1, 10, EndAck)
		}, deadLetters("m"), Judgement{Illegal: 1}},
		"a dead letter without a publish": {func(testLog) {}, deadLetters("m"), Judgement{Illegal: 1}},
		"a delivery count that starts again": {func(b testLog) {
			b.held("b", "m", 1, 20, EndAck)
			b.held("a", "m", 2, 10, EndNack)
		}, nil, Judgement{Illegal: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestLog()
			c.write(b)
			got := b.JudgeMessages(c.deadLetters)
			require.Len(t, got.Violations, got.Broken())
			got.Violations = nil
			require.Equal(t, &c.want, got)
		})
	}
}

// A queue counts deliveries as failures, so claims of killed nodes may raise the
// number by more than one.
func TestJudgeFailuresOfMessages(t *testing.T) {
	t.Parallel()
	b := newTestLog()
	b.published(0, "m", FoundNothing)
	b.held("a", "m", 1, 10, EndNack)
	b.fault(Kill, "b", 50, 60)
	b.held("a", "m", 3, 1100, EndAck)
	got := b.Judge()
	require.Zero(t, got.Broken(), got.Violations)
	require.Equal(t, map[Cause]int{CauseNack: 1}, got.Causes)
}

// A publish whose reply was lost may be answered after one that began later.
func TestJudgeClaimsFromFirstPublish(t *testing.T) {
	t.Parallel()
	b := newTestLog()
	b.published(400, "m", FoundPending)
	b.publish(Call{Draft: 0, Called: b.at(0), Returned: b.at(500), Message: "m", Found: FoundNothing})
	b.fault(Kill, "a", 50, 60)
	b.held("b", "m", 2, 1100, EndAck)
	require.Zero(t, b.Judge().Broken())
}
