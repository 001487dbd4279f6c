package fleet

import (
	"context"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

// heldUp delays the commands of a function until release is closed.
type heldUp struct {
	of      string
	reached chan struct{} // has room for one
	release chan struct{}
}

func (h heldUp) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h heldUp) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h heldUp) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(string(debug.Stack()), h.of) {
			select {
			case h.reached <- struct{}{}:
			default:
			}
			<-h.release
		}
		return next(ctx, cmd)
	}
}

// While a node starts, and waits for Redis, calls about topics of its System do not wait for it: peers
// make them as soon as the node listens. With a lock that is held meanwhile the time of this test stands
// still.
func TestStartThatWaitsForRedisHoldsNoLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, end := newFleet(t.Context(), &Plan{Nodes: 2})
		other, n := newNode(f, 0), newNode(f, 1)
		f.nodes = append(f.nodes, other, n)
		require.NoError(t, other.start())
		for _, err := range other.running().sys.Client().Reshard(t.Context(), jobs, 2) {
			require.NoError(t, err) // the node that starts reads what has been changed lately
		}
		run, err := n.launch()
		require.NoError(t, err)
		h := heldUp{of: "learnPolled", reached: make(chan struct{}, 1), release: make(chan struct{})}
		run.rdb.AddHook(h)
		started := make(chan error, 1)
		go func() { started <- run.sys.Start(t.Context()) }()
		<-h.reached
		added := make(chan error, 1)
		go func() {
			handle := func(context.Context, wakebell.Timer[string]) error { return nil }
			added <- run.sys.Add(t.Context(), wakebell.Handle(wakebell.NewTopic[string](orders), handle))
		}()
		select {
		case err := <-added:
			require.ErrorIs(t, err, wakebell.ErrNotRunning)
		case <-time.After(time.Minute):
			require.FailNow(t, "Add waits for Start")
		}
		close(h.release)
		require.NoError(t, <-started)
		n.become(run)
		f.stop(end)
	})
}
