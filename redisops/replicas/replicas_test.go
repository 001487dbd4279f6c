package replicas

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// once is a client that makes each call once.
func once(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 }

// pair returns a reader, its server, which stands for a replica with other contents, and
// the client of the master.
func pair(t *testing.T) (reader redis.UniversalClient, replica *redistest.Server, master *redis.Client) {
	t.Helper()
	replica = redistest.Start(t)
	master = redistest.Start(t).Client(t)
	reader, err := Reader(replica.Client(t, once), master)
	require.NoError(t, err)
	require.NoError(t, replica.Client(t).Set(t.Context(), "at", "replica", 0).Err())
	require.NoError(t, master.Set(t.Context(), "at", "master", 0).Err())
	return reader, replica, master
}

var (
	whereScript = redis.NewScript(`return redis.call('GET', KEYS[1])`)
	writeScript = redis.NewScript(`redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])`)
)

func TestScriptsReadFromReplicaAndWriteToMaster(t *testing.T) {
	t.Parallel()
	reader, replica, master := pair(t)
	for range 2 { // by its text, and by its hash
		where, err := whereScript.Run(t.Context(), reader, []string{"at"}).Text()
		require.NoError(t, err)
		require.Equal(t, "replica", where)
		wrote, err := writeScript.Run(t.Context(), reader, []string{"written"}, "here").Text()
		require.NoError(t, err)
		require.Equal(t, "here", wrote)
	}
	require.EqualValues(t, 1, master.Exists(t.Context(), "written").Val())
	require.Zero(t, replica.Client(t).Exists(t.Context(), "written").Val())
	require.ErrorIs(t, reader.Get(t.Context(), "absent").Err(), redis.Nil)
	require.ErrorContains(t, reader.HGet(t.Context(), "at", "x").Err(), "WRONGTYPE", "an error of the command is its answer")
}

func TestPipelinesReadFromReplica(t *testing.T) {
	t.Parallel()
	reader, _, _ := pair(t)
	require.NoError(t, whereScript.Run(t.Context(), reader, []string{"at"}).Err()) // loads it
	pipe := reader.Pipeline()
	script, clock, get := whereScript.EvalSha(t.Context(), pipe, []string{"at"}), pipe.Time(t.Context()), pipe.Get(t.Context(), "at")
	write := pipe.Eval(t.Context(), `return redis.call('SET', KEYS[1], 'x').ok`, []string{"written"})
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	require.Equal(t, "replica", script.Val())
	require.Equal(t, "replica", get.Val())
	require.Equal(t, "OK", write.Val(), "the master ran it")
	require.False(t, clock.Val().IsZero())
}

// dials counts dials.
type dials struct{ atomic.Int64 }

func (d *dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d.Add(1)
		return next(ctx, network, addr)
	}
}
func (d *dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (d *dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A replica that is down is asked once in 5 s.
func TestReplicaThatIsDownIsLeftAlone(t *testing.T) {
	t.Parallel()
	reader, replica, _ := pair(t)
	replica.Kill()
	count := &dials{}
	reader.AddHook(count)
	for range 3 {
		where, err := whereScript.Run(t.Context(), reader, []string{"at"}).Text()
		require.NoError(t, err)
		require.Equal(t, "master", where)
		pipe := reader.Pipeline()
		get := pipe.Get(t.Context(), "at")
		_, err = pipe.Exec(t.Context())
		require.NoError(t, err)
		require.Equal(t, "master", get.Val())
	}
	require.EqualValues(t, 1, count.Load())
}

func TestCancelledReadIsNotRepeated(t *testing.T) {
	t.Parallel()
	reader, _, _ := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, reader.Get(ctx, "at").Err(), context.Canceled)
	require.Equal(t, "replica", reader.Get(t.Context(), "at").Val())
}
