package remote_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote"
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

// One frame requests many large timers, and the answers are not read: the node holds
// no more of them than the bounds allow, and serves others meanwhile.
func TestFrameOfManyLargeAnswersIsBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	cfg := withToken()
	cfg.Tokens[otherSecret] = "honest"
	cfg.Token = otherSecret
	n := serve(t, cfg)
	_, err := n.topic.Schedule(t.Context(), n.Client(), strings.Repeat("x", 1000<<10), wakebell.ID("large"), wakebell.In(time.Hour))
	require.NoError(t, err)
	commands := &messages.Commands{}
	for i := range 400 {
		commands.Commands = append(commands.Commands, &messages.Command{Kind: &messages.Command_GetTimer{
			GetTimer: &messages.GetTimerRequest{Request: uint64(i + 1), Topic: n.topic.Name(), Id: "large"}, //nolint:gosec // small
		}})
	}
	before := int64(heap())
	stream, err := n.dial(t).NewStream(bearing(t.Context(), secret), &premote.Remoting_ServiceDesc.Streams[0], rpc.Timers_Session_FullMethodName)
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(commands))
	honest, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{Config: remote.Config{Token: otherSecret}})
	require.NoError(t, err)
	t.Cleanup(honest.Close)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := honest.Stats(ctx, n.topic.Name())
		cancel()
		require.NoError(t, err)
	}
	most := int64(0)
	for range 10 {
		most = max(most, int64(heap())-before)
		<-time.After(200 * time.Millisecond)
	}
	require.Less(t, most, int64(200<<20), "400 answers are 400 MiB")

	// All of it is answered once it is read.
	answered := 0
	for answered < 400 {
		replies := &messages.Replies{}
		require.NoError(t, stream.RecvMsg(replies))
		for _, r := range replies.GetReplies() {
			if r.GetError() == nil {
				size := len(r.GetGetTimer().GetTimer().GetContent().GetBody())
				require.Equal(t, 1000<<10, size, "the whole body")
			}
			answered++
		}
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
