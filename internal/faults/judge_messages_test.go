package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// published notes a publish that was answered with the id of a message, each of
// a draft of its own.
func (b book) published(called int, message string, found Found) {
	b.publish(Call{Draft: called, Called: b.at(called), Found: found, Message: message})
}

// unanswered notes a try to publish a draft.
func (b book) unanswered(called, draft int) {
	b.publish(Call{Draft: draft, Called: b.at(called), Err: errors.New("no answer")})
}

func (b book) publish(c Call) {
	c.Kind, c.Client, c.Generation, c.Earliest = CallSchedule, "client-1", 1, c.Called
	if c.Returned.IsZero() {
		c.Returned = c.Called.Add(time.Millisecond)
	}
	b.Called("client-1/1", c)
}

// held notes a delivery of a message to a handler that ended.
func (b book) held(node, message string, attempt, delivered int, end End) {
	line := Line{
		Event: EventBegin, ID: "client-1/1", Message: message, Generation: 1,
		Attempt: attempt, Failures: attempt - 1, Delivered: b.at(delivered),
	}
	b.Heard(node, line)
	line.Event, line.At, line.End = EventEnd, b.at(delivered+1), end
	b.Heard(node, line)
}

func TestJudgeMessages(t *testing.T) {
	t.Parallel()
	letters := func(ids ...string) map[string][]string { return map[string][]string{"client-1/1": ids} }
	for name, c := range map[string]struct {
		write   func(book)
		letters map[string][]string
		want    Judgement
	}{
		"handled, and published again": {func(b book) {
			b.published(0, "m", FoundNothing)
			b.published(5, "m", FoundPending)
			b.held("a", "m", 1, 10, EndAck)
		}, nil, Judgement{}},
		"a publish that is answered again": {func(b book) {
			b.published(0, "m", FoundNothing)
			b.published(5, "m", FoundNothing)
			b.held("a", "m", 1, 10, EndAck)
		}, nil, Judgement{}},
		"published fresh twice": {func(b book) {
			b.published(0, "m", FoundNothing)
			b.published(5, "n", FoundNothing)
		}, nil, Judgement{Uncaused: 1}},
		"published twice, and one was not answered": {func(b book) {
			b.published(5, "n", FoundNothing)
			b.held("a", "m", 1, 10, EndAck)
			b.held("a", "n", 1, 11, EndAck)
		}, nil, Judgement{Uncaused: 1}},
		"published twice, and one died": {func(b book) {
			b.published(5, "n", FoundNothing)
			b.held("a", "n", 1, 11, EndReject)
		}, letters("m"), Judgement{Uncaused: 1}},
		"a retry that is not told of its first try": {func(b book) {
			b.unanswered(0, 5)
			b.published(5, "m", FoundPending)
		}, nil, Judgement{Illegal: 1}},
		"the first try was never made again": {func(b book) {
			b.unanswered(0, 1)
			b.published(5, "m", FoundPending)
		}, nil, Judgement{}},
		"failed, then rejected": {func(b book) {
			b.held("a", "m", 1, 10, EndNack)
			b.held("a", "m", 2, 20, EndReject)
		}, letters("m"), Judgement{}},
		"two dead letters": {func(b book) {
			b.held("a", "m", 1, 10, EndReject)
		}, letters("m", "m"), Judgement{Uncaused: 1}},
		"rejected, and no dead letter": {func(b book) {
			b.held("a", "m", 1, 10, EndReject)
		}, nil, Judgement{Lost: 1}},
		"a dead letter that nobody had rejected": {func(b book) {
			b.held("a", "m", 1, 10, EndAck)
		}, letters("m"), Judgement{Illegal: 1}},
		"a dead letter that nobody knows": {func(book) {}, letters("m"), Judgement{Illegal: 1}},
		"deliveries that are counted anew": {func(b book) {
			b.held("b", "m", 1, 20, EndAck)
			b.held("a", "m", 2, 10, EndNack)
		}, nil, Judgement{Illegal: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBook()
			c.write(b)
			got := b.JudgeMessages(c.letters)
			require.Len(t, got.Violations, got.Broken())
			got.Violations = nil
			require.Equal(t, &c.want, got)
		})
	}
}

// A queue counts deliveries, so that after a failure there may be more than one
// of them more: claims of nodes that were killed.
func TestJudgeFailuresOfMessages(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.published(0, "m", FoundNothing)
	b.held("a", "m", 1, 10, EndNack)
	b.struck(Kill, "b", 50, 60)
	b.held("a", "m", 3, 1100, EndAck)
	got := b.Judge()
	require.Zero(t, got.Broken(), got.Violations)
	require.Equal(t, map[Cause]int{CauseNack: 1}, got.Causes)
}

// A publish whose reply was lost is answered after one that began later.
func TestJudgeClaimsFromTheFirstPublish(t *testing.T) {
	t.Parallel()
	b := newBook()
	b.published(400, "m", FoundPending)
	b.publish(Call{Draft: 0, Called: b.at(0), Returned: b.at(500), Message: "m", Found: FoundNothing})
	b.struck(Kill, "a", 50, 60)
	b.held("b", "m", 2, 1100, EndAck)
	require.Zero(t, b.Judge().Broken())
}
