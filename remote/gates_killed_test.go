package remote_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

// nodeTurnLease is how long turns outlive a node in a separate process.
const nodeTurnLease = 8 * time.Second

// beWaiter acquires a turn through a node, and prints when it holds the turn.
func beWaiter(address, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := connection.WithoutRedis(connection.Config{Logger: quiet})
	if err != nil {
		return err
	}
	c, err := remote.Dial(ctx, address, conn, remote.DialConfig{Config: remote.Config{Token: secret}})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("asks")
	turn, err := c.Gates().Acquire(ctx, name)
	if err != nil {
		return err
	}
	fmt.Println("got", turn.Fence(), time.Now().UnixNano())
	return turn.Release(ctx)
}

// The node that holds a client's turn is killed. The next turn, through another
// node, begins after the context of the client's turn has ended.
func TestNodeOfTurnIsKilled(t *testing.T) {
	t.Parallel()
	redisAddr := redistest.SharedAddr(t)
	addresses := [2]string{deadAddress(t), deadAddress(t)}
	var nodes [2]*child
	for i, address := range addresses {
		nodes[i] = spawn(t, "node", redisAddr, address)
		eventually(t, func() bool { return nodes[i].said("ready") == 1 })
	}
	c, err := remote.Dial(t.Context(), addresses[0], conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config:   remote.Config{Token: secret},
		DeadLink: time.Minute,
		TurnTTL:  time.Hour, // so the lease in Redis decides
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	name := redistest.Name(t)
	turn, err := c.Gates().Acquire(ctx, name)
	require.NoError(t, err)
	ended := make(chan time.Time, 1)
	context.AfterFunc(turn.Context(), func() { ended <- time.Now() })
	next := spawn(t, "waiter", addresses[1], name)
	eventually(t, func() bool { return next.said("asks") == 1 })
	require.NoError(t, turn.Context().Err())

	nodes[0].kill()
	killed := time.Now()
	over := receive(t, ended)
	require.ErrorIs(t, context.Cause(turn.Context()), gate.ErrTurnLost)
	require.ErrorIs(t, turn.Release(ctx), gate.ErrTurnLost)

	var fence uint64
	var began int64
	eventually(t, func() bool {
		n, _ := fmt.Sscan(next.after("got "), &fence, &began)
		return n == 2
	}, "the next has its turn")
	require.Greater(t, fence, turn.Fence())
	require.False(t, time.Unix(0, began).Before(turn.Until()), "it began %v before the other was over", turn.Until().Sub(time.Unix(0, began)))
	t.Logf("kill -9 of the node: its turn was over after %v, the next began %v after it, with a lease of %v",
		over.Sub(killed).Round(time.Millisecond), time.Unix(0, began).Sub(over).Round(time.Millisecond), nodeTurnLease)
}
