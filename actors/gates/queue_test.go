package gates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages/gate"
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

// A turn with a ttl that ends because the gates close stays with its lease, also when the store
// answers a request from before.
func TestTurnOfRemoteOwnerIsLeftToLease(t *testing.T) {
	t.Parallel()
	for ttl, returned := range map[time.Duration]int{0: 1, time.Minute: 0} {
		k, system := newGatekeeper(), actortest.QuietSystem()
		k.root, k.incarnation = system.Root, &incarnation{ctx: t.Context()}
		q, w := k.queue("gate"), &waiter{gate: "gate", ttl: ttl, values: t.Context()}
		k.own(&turnOwner{pid: system.NewLocalPID("gone"), at: map[turnPlace]*waiter{}, done: func() {}}, w)
		w.turn = k.newTurn(w, 7, time.Now(), time.Now().Add(time.Minute))
		w.turn.owner, q.turn = w, w.turn
		k.endQueue(q, ErrClosed)
		k.applyTurn(q, &gateRequest{sent: time.Now()}, &gate.Reply{Held: 7, Remaining: time.Minute})
		require.Len(t, q.returns, returned, "ttl %v", ttl)
		system.Shutdown()
	}
}
