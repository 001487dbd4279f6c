package remote_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

const otherSecret = "another-secret-of-more-bytes"

// beAsker is an actor on unmodified protoactor-go that sends many requests in one
// turn, and prints when all are answered.
func beAsker(address, topic, requests string) error {
	n, err := strconv.Atoi(requests)
	if err != nil {
		return err
	}
	gateway, done, seen := actor.NewPID(address, "wakebell/gateway"), make(chan struct{}), map[uint64]bool{}
	system := behindRemote(0)
	system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			for i := range n {
				c.Request(gateway, &messages.GetTimerRequest{Request: uint64(i + 1), Topic: topic, Id: "a"}) //nolint:gosec // small
			}
		case *messages.GetTimerResponse:
			if seen[m.GetRequest()] = true; len(seen) == n {
				close(done)
			}
		}
	}))
	<-done
	fmt.Println("answered", n)
	return nil
}

// A batch may have more requests than there is room for: those that fit are passed on, and
// its answers make room for the rest.
func TestBatchOfManyRequestsIsAnswered(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID("a"), wakebell.In(time.Hour))
	require.NoError(t, err)
	for _, requests := range []string{"31", "32", "500", "5000"} {
		asker := spawn(t, "asker", n.server.Address(), n.topic.Name(), requests)
		require.Eventually(t, func() bool { return asker.said("answered "+requests) == 1 }, 2*time.Minute, 10*time.Millisecond, requests)
	}
}

// A client that waits for a turn requests timers that do not exist.
func TestRequestsForMissingTimersDuringWaitForTurn(t *testing.T) {
	t.Parallel()
	n := serve(t, withToken())
	c := dial(t, n)
	held, err := n.Gates().Acquire(t.Context(), n.topic.Name())
	require.NoError(t, err)
	waiting, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Gates().Acquire(waiting, n.topic.Name())
		done <- err
	}()
	for range 300 {
		_, _, err := c.Get(t.Context(), n.topic.Name(), "none")
		require.ErrorIs(t, err, wakebell.ErrNotFound)
	}
	cancel()
	require.Error(t, receive(t, done))
	require.NoError(t, held.Release(t.Context()))
}
