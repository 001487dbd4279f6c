package timers

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestFlowControlThatHoldsNothingBack checks that an exchange with flow control does
// what one without it does.
func TestFlowControlThatHoldsNothingBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		request := func(want int) *exchange.Request {
			r := f.Request(want, time.Minute)
			r.Flow = exchange.Flow{MaxInFlight: 100}
			return r
		}
		r := request(10)
		reply := f.Run(t, r)
		require.Equal(t, []string{"a", "b"}, storetest.IDs(reply.Leases))
		require.Zero(t, reply.Held)
		again := f.Run(t, r)
		require.Equal(t, reply.Leases, again.Leases, "the answer is repeated")
		require.Zero(t, again.Held)

		r = request(10)
		r.Extend = []exchange.Held{storetest.Verdict(exchange.Ack, reply.Leases[1]).Held}
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Nack, reply.Leases[0])}
		r.Settle[0].Delay, r.Settle[0].Reason = time.Hour, "an error"
		reply = f.Run(t, r)
		require.Empty(t, reply.Refused)
		require.Empty(t, reply.Leases)
		require.NotEmpty(t, reply.Extended)
		require.Equal(t, "an error", f.get(t, "a").LastError)
	})
}

// TestTopicWithoutFlowControlPaysNothing checks that its exchanges have the keys, the
// arguments and the commands that they had before there was flow control.
func TestTopicWithoutFlowControlPaysNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	calls := func(flow exchange.Flow) map[string]int {
		f.due(t, "a")
		require.NoError(t, f.rdb.ConfigResetStat(t.Context()).Err())
		reply := f.claimWithin(t, 10, flow)
		require.Len(t, reply.Leases, 1)
		f.settleWithin(t, flow, exchange.Ack, reply.Leases...)
		return f.calls(t)
	}
	calls(exchange.Flow{}) // loads the script
	calls(exchange.Flow{RateLimit: 1000, RatePer: time.Second})
	plain, limited := calls(exchange.Flow{}), calls(exchange.Flow{RateLimit: 1000, RatePer: time.Second})
	require.Zero(t, plain["zremrangebyscore"]+plain["zcount"]+plain["pexpire"], "%v", plain)
	require.Positive(t, limited["zmscore"]*limited["pexpire"], "%v", limited)
	require.Zero(t, plain["publish"])

	r := f.Request(10, time.Minute)
	r.Flow = exchange.Flow{RatePer: time.Second} // the default of a topic without a limit
	require.Len(t, f.src.args(r, 0, anyMark), 15)
	f.rdb.AddHook(keyCount{t, 8}) // one is for its dead letters, which may have keys
	require.NoError(t, f.rdb.Del(t.Context(), f.key.Flow).Err())
	f.Run(t, r)
	require.Zero(t, f.rdb.Exists(t.Context(), f.key.Flow).Val())
}

// calls returns how often each command has run since the statistics were reset.
func (f *fixture) calls(t testing.TB) map[string]int {
	t.Helper()
	counted := map[string]int{}
	for _, line := range strings.Split(f.rdb.Info(t.Context(), "commandstats").Val(), "\r\n") {
		if name, rest, ok := strings.Cut(line, ":calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			var err error
			counted[strings.TrimPrefix(name, "cmdstat_")], err = strconv.Atoi(n)
			require.NoError(t, err)
		}
	}
	return counted
}

// keyCount is a client hook that requires that scripts have so many keys.
type keyCount struct {
	t    *testing.T
	want int
}

func (k keyCount) DialHook(next redis.DialHook) redis.DialHook { return next }

func (k keyCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (k keyCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			require.Equal(k.t, k.want, cmd.Args()[2])
		}
		return next(ctx, cmd)
	}
}
