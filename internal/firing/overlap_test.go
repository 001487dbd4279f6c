package firing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// While the store fires a batch, the engine prepares the next one. Even if one of the calls
// fails, each entry fires once.
func TestOverlappingBatchesFireEachEntryOnce(t *testing.T) {
	t.Parallel()
	const n, calls = 1200, 3
	for fails := range calls {
		for what, fault := range map[string]*fault{
			"a request that is lost": {err: io.EOF, unsent: true, whole: true},
			"an answer that is lost": {err: io.EOF, whole: true},
			"a refusal":              {err: errors.New("ERR refused"), unsent: true},
			"a panic":                {unsent: true, whole: true},
		} {
			t.Run(fmt.Sprint("call ", fails+1, " meets ", what), func(t *testing.T) {
				t.Parallel()
				rdb := redistest.Start(t).Client(t)
				e := loadEntries(t, rdb, n, time.Now().Add(-time.Second))
				fired := map[string]int{}
				e.cfg.OnFire = func(f Fire) { fired[f.Name]++ }
				for !e.complete || len(e.items) < n {
					require.NoError(t, e.look(t.Context()))
				}
				fault.at = int64(fails)
				rdb.AddHook(fault)
				e.lookAt = time.Now().Add(time.Hour)
				_, err := e.Turn(t.Context())
				require.Equal(t, fault.whole, err != nil, "%v", err)
				require.Less(t, fault.at, fault.calls.Load(), "it has met a call")
				fault.mended.Store(true)
				for _, it := range e.items { // those that are tried later, now
					if it.tries > 0 {
						e.queue.put(it, e.now)
					}
				}
				_, err = e.Turn(t.Context())
				require.NoError(t, err)

				var timers int64
				for i := range 10 {
					count, err := rdb.ZCard(t.Context(), fmt.Sprintf("timers_timeline:topic-%d", i)).Result()
					require.NoError(t, err)
					timers += count
				}
				require.EqualValues(t, n, timers)
				for name, times := range fired {
					require.Equal(t, 1, times, name)
				}
				if fault.unsent { // of the others the answer is lost
					require.Len(t, fired, n)
				}
			})
		}
	}
}

// fault is a hook that has a call of the script that fires fail.
type fault struct {
	at     int64 // how many succeed before
	err    error // nil: it panics
	unsent bool
	whole  bool // the turn fails, not a single entry: so do all calls from then on

	mended atomic.Bool
	calls  atomic.Int64
}

func (f *fault) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *fault) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n := int64(0)
		if cmd.Name() == "evalsha" {
			n = f.calls.Add(1)
		}
		switch {
		case n <= f.at || f.mended.Load() || n > f.at+1 && !f.whole:
			return next(ctx, cmd)
		case f.err == nil:
			panic("a hook")
		case n == f.at+1 && !f.unsent:
			if err := next(ctx, cmd); err != nil {
				return err
			}
		}
		cmd.SetErr(f.err)
		return f.err
	}
}

func (f *fault) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
