package scripts

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// pipelines is a hook that counts pipelines, and the commands in them.
type pipelines struct{ sent, commands atomic.Int64 }

func (n *pipelines) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (n *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (n *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if commands[0].Name() == "evalsha" {
			n.sent.Add(1)
			n.commands.Add(int64(len(commands)))
		}
		return next(ctx, commands)
	}
}

var (
	echo   = redis.NewScript("return ARGV[1]")
	broken = redis.NewScript("return redis.error_reply('STALE 5')")
)

// batchedRunner returns a runner on a server that knows the scripts, and counts its pipelines.
func batchedRunner(t *testing.T, rdb *redis.Client) (Runner, *pipelines) {
	t.Helper()
	for _, script := range []*redis.Script{echo, broken} {
		require.NoError(t, script.Load(t.Context(), rdb).Err())
	}
	n := &pipelines{}
	rdb.AddHook(n)
	return Runner{RDB: rdb, Batcher: NewBatcher()}, n
}

// TestScriptsOfManyTopicsSharePipeline checks when scripts wait: while many topics call,
// at most sendEvery, and never while few do.
func TestScriptsOfManyTopicsSharePipeline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		r, n := batchedRunner(t, rdb)
		callers := make([]Caller, 3*minCallers)
		call := func(which []Caller, alone bool) time.Duration {
			began := time.Now()
			var all sync.WaitGroup
			for i := range which {
				all.Go(func() {
					reply, sent, err := r.RunBatched(t.Context(), "", &which[i], alone, echo, []string{"k"}, i)
					if !sent.IsZero() && !sent.Equal(began.Add(sendEvery)) {
						t.Errorf("sent %v after the call", sent.Sub(began))
					}
					if err != nil || reply != fmt.Sprint(i) {
						t.Errorf("%q, %v", reply, err)
					}
				})
			}
			all.Wait()
			return time.Since(began)
		}
		few := func() {
			require.Zero(t, call(callers[:minCallers-1], false), "few topics do not wait")
			<-time.After(measureFor)
		}
		few()
		few()
		require.Zero(t, call(callers, false), "the first calls of many topics do not wait")
		<-time.After(measureFor)
		require.Zero(t, n.sent.Load())
		require.Equal(t, sendEvery, call(callers[:minCallers], false))
		require.EqualValues(t, 1, n.sent.Load())
		require.EqualValues(t, minCallers-1, n.commands.Load(), "the first is sent at once")
		require.Zero(t, call(callers, true), "those with work enough do not wait")
		<-time.After(measureFor)
		require.Zero(t, call(callers[:1], false))
		<-time.After(measureFor)
		few()
		few()
		require.EqualValues(t, 1, n.sent.Load())
	})
}

// TestEachScriptOfPipelineIsJudgedAlone checks answers, errors and scripts that Redis
// does not know.
func TestEachScriptOfPipelineIsJudgedAlone(t *testing.T) {
	t.Parallel()
	r, n := batchedRunner(t, redistest.Start(t).Client(t))
	var all []*batched
	for i := range maxBatch + 5 {
		script := echo
		if i%10 == 3 {
			script = broken
		}
		all = append(all, newBatched(script, []string{"k"}, []any{i}))
	}
	r.sendAll(t.Context(), all)
	for i, b := range all {
		<-b.done
		if i%10 == 3 {
			require.EqualError(t, b.err, "STALE 5")
			continue
		}
		require.NoError(t, b.err)
		require.Equal(t, fmt.Sprint(i), b.reply)
	}
	require.EqualValues(t, 2, n.sent.Load(), "one has at most maxBatch")
}

func TestLostConnectionFailsEachScriptOfItsPipeline(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r, _ := batchedRunner(t, server.Client(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 }))
	require.NoError(t, server.Close())
	all := []*batched{newBatched(echo, []string{"k"}, nil), newBatched(echo, []string{"k"}, nil)}
	r.sendAll(t.Context(), all)
	for _, b := range all {
		_, err := r.answer(t.Context(), "", b)
		require.ErrorContains(t, err, "redis is unavailable")
	}
}
