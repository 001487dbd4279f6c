package remote

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/wire"
)

// answering returns a client with a link that is up, to a node that replies what
// answer returns; nil: no reply.
func answering(t *testing.T, answer func(asked proto.Message) messages.Answer) *Client {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	link := &clientLink{
		cfg: DialConfig{Config: Config{MaxMessage: DefaultMaxMessage}},
		ctx: ctx, end: end, up: true, room: make(chan struct{}, maxFlight), change: make(chan struct{}),
		waiting: map[uint64]chan messages.Answer{}, wake: make(chan struct{}, 1), closing: make(chan struct{}),
		turns: map[uint64]*turn{}, places: make(chan struct{}, maxPlaces),
	}
	link.done.Go(func() {
		for {
			select {
			case <-link.wake:
			case <-ctx.Done():
				return
			}
			for _, c := range link.Take().GetCommands() {
				if a := answer(wire.Commanded(c)); a != nil {
					link.replies(&messages.Replies{Replies: []*messages.Reply{wire.ReplyOf(a)}})
				}
			}
		}
	})
	t.Cleanup(link.Close)
	return &Client{link: link, cfg: DialConfig{TurnTTL: DefaultTurnTTL}}
}

func TestCallWithoutDeadlineDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := answering(t, func(proto.Message) messages.Answer { return nil })
		began := time.Now()
		_, err := c.Stats(t.Context(), "t")
		require.ErrorIs(t, err, wakebell.ErrUnavailable)
		require.Equal(t, 15*time.Second, time.Since(began))
		require.Empty(t, c.link.waiting)
		require.Empty(t, c.link.room)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = c.Stats(ctx, "t")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 75*time.Second, time.Since(began), "a call with a deadline waits until its deadline")
	})
}

// The node has granted a turn, and the first answers about it are lost.
func TestTurnWhoseAnswersAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var places []uint64
		extensions, held := 0, time.Time{}
		c := answering(t, func(asked proto.Message) messages.Answer {
			switch m := asked.(type) {
			case *messages.AcquireTurnRequest:
				if places = append(places, m.GetPlace()); len(places) < 3 {
					return nil
				}
				held = time.Now()
				return &messages.Turn{Request: m.GetRequest(), Gate: m.GetGate(), Place: m.GetPlace(), Fence: 7}
			case *messages.ExtendTurnRequest:
				if extensions++; extensions%2 == 0 {
					return nil
				}
				held = time.Now()
				return &messages.ExtendTurnResponse{Request: m.GetRequest(), Gate: m.GetGate(), Fence: m.GetFence(), Good: durationpb.New(DefaultTurnTTL)}
			case *messages.ReleaseTurnRequest:
				return &messages.ReleaseTurnResponse{Request: m.GetRequest(), Gate: m.GetGate(), Fence: m.GetFence()}
			}
			return nil
		})
		turn, err := c.Gates().Acquire(t.Context(), "g")
		require.NoError(t, err)
		require.EqualValues(t, 7, turn.Fence())
		require.Equal(t, []uint64{places[0], places[0], places[0]}, places, "it keeps its place in the queue")
		require.Equal(t, 30*time.Second, turn.Waited())

		<-time.After(time.Minute)
		require.NoError(t, turn.Context().Err(), "every other extension was answered")
		require.Less(t, time.Since(held), DefaultTurnTTL)
		require.NoError(t, turn.Release(t.Context()))
	})
}

// A node that starts refuses turns for a while, as it refuses calls.
func TestAcquireWaitsForNodeThatStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refusals := 0
		c := answering(t, func(asked proto.Message) messages.Answer {
			switch m := asked.(type) {
			case *messages.AcquireTurnRequest:
				if refusals++; refusals < 4 {
					fault := messages.Failure(messages.Code_CODE_DRAINING, "the system has not started")
					fault.Request = m.GetRequest()
					return fault
				}
				return &messages.Turn{Request: m.GetRequest(), Gate: m.GetGate(), Place: m.GetPlace(), Fence: 7}
			case *messages.ExtendTurnRequest:
				return &messages.ExtendTurnResponse{Request: m.GetRequest(), Gate: m.GetGate(), Fence: m.GetFence(), Good: durationpb.New(DefaultTurnTTL)}
			case *messages.ReleaseTurnRequest:
				return &messages.ReleaseTurnResponse{Request: m.GetRequest(), Gate: m.GetGate(), Fence: m.GetFence()}
			}
			return nil
		})
		c.cfg.DeadLink = DefaultDeadLink
		bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, ctx := range []context.Context{bounded, t.Context()} {
			refusals = 0
			turn, err := c.Gates().Acquire(ctx, "g")
			require.NoError(t, err)
			require.Equal(t, 140*time.Millisecond, turn.Waited(), "20, 40 and 80 ms")
			require.NoError(t, turn.Release(t.Context()))
		}
	})
}

// Without a deadline a node is waited for as if its link was down, and an overload is not.
func TestAcquireWithoutDeadlineGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		code := messages.Code_CODE_DRAINING
		c := answering(t, func(asked proto.Message) messages.Answer {
			if m, ok := asked.(*messages.AcquireTurnRequest); ok {
				fault := messages.Failure(code, "not now")
				fault.Request = m.GetRequest()
				return fault
			}
			return nil
		})
		c.cfg.DeadLink = DefaultDeadLink
		began := time.Now()
		_, err := c.Gates().Acquire(t.Context(), "g")
		require.ErrorIs(t, err, wakebell.ErrDraining)
		require.GreaterOrEqual(t, time.Since(began), DefaultDeadLink)
		code, began = messages.Code_CODE_OVERLOADED, time.Now()
		_, err = c.Gates().Acquire(t.Context(), "g")
		require.ErrorIs(t, err, wakebell.ErrOverloaded)
		require.Zero(t, time.Since(began))
	})
}
