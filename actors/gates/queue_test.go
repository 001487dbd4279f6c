package gates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
)

// newGatekeeper returns an actor that has not been started.
func newGatekeeper() *gatekeeper {
	return &gatekeeper{
		cfg:   &Config{Logger: actortest.DiscardLogger, Store: &actortest.OpenGate{}},
		parts: map[int]*part{}, queues: map[string]*gateQueue{},
	}
}

// TestWaitingIsAnsweredAfterRequestInFlight checks that the question whether a
// ticket waits is answered after the reply to the request in flight. The store may
// have issued the ticket before that reply arrives.
func TestWaitingIsAnsweredAfterRequestInFlight(t *testing.T) {
	t.Parallel()
	k := newGatekeeper()
	ask := func() chan bool {
		question := isWaiting{"gate", 7, make(chan bool, 1)}
		k.answerWaiting(question)
		return question.answer
	}
	require.False(t, <-ask(), "the gate is not in use")

	q, w := k.queue("gate"), &waiter{}
	require.False(t, <-ask(), "no request is in flight")
	q.inFlight = &gateRequest{joins: []*waiter{w}}
	early, other := ask(), ask()
	require.Empty(t, early)
	q.inFlight, q.waiting[7] = nil, w
	k.answerQuestions(q)
	require.True(t, <-early)
	require.True(t, <-other)
	require.True(t, <-ask())

	q.inFlight, q.turn = &gateRequest{joins: []*waiter{{}}}, &Turn{Fence: 8}
	delete(q.waiting, 7)
	require.Empty(t, ask())
	q.turn = &Turn{Fence: 7}
	require.False(t, <-ask(), "the ticket has the turn")
}
