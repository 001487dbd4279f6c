package timers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestReplayAnswersAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b", "c", "d", "e")
		old := f.Claim(t, 2).Leases
		r := f.Request(2, time.Minute)
		r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, old[0])}
		r.Extend = []exchange.Held{storetest.Held(old[1]), {ID: "gone", Token: "1"}}
		first := f.Run(t, r)
		require.Equal(t, []string{"c", "d"}, storetest.IDs(first.Leases))
		again := f.Run(t, r)
		require.Equal(t, first.Leases, again.Leases)
		require.Equal(t, first.Refused, again.Refused)
		require.Equal(t, []exchange.Refusal{{Index: 2, Reason: exchange.Lost}}, again.Refused)
		require.Equal(t, first.Extended, again.Extended)
		require.Less(t, again.Remaining, first.Remaining)

		_, err := f.Cancel(t.Context(), f.topic, "c")
		require.NoError(t, err)
		f.schedule(t, Entry{ID: "d", In: time.Hour})
		require.Empty(t, f.Run(t, r).Leases, "leases that are no longer held are left out")

		require.Equal(t, []string{"e"}, storetest.IDs(f.Claim(t, 5).Leases))
		_, err = f.src.Exchange(t.Context(), r)
		require.ErrorIs(t, err, exchange.ErrStale)
		require.NotErrorIs(t, err, exchange.ErrUnavailable)
	})
}

// TestReplayReportsDeadLettersAgain checks that a lost reply is repeated with its
// dead letters, including those that the claim made.
func TestReplayReportsDeadLettersAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f = f.holder(SourceOptions{MaxClaims: 1})
		f.due(t, "ended\n1 -1", "one", "two", "three")
		require.Len(t, f.Run(t, f.Request(1, time.Millisecond)).Leases, 1)
		held := f.Claim(t, 3).Leases
		require.Eventually(t, func() bool { return !f.get(t, "ended\n1 -1").Running }, 30*time.Second, time.Millisecond)
		r := f.Request(5, time.Minute)
		r.Settle = []exchange.Settlement{
			storetest.Verdict(exchange.DeadLetter, held[2]), storetest.Verdict(exchange.Ack, held[0]), storetest.Verdict(exchange.DeadLetter, held[1]),
			storetest.Verdict(exchange.DeadLetter, exchange.Lease{ID: "gone", Token: "1"}),
		}
		r.Settle[2].Failed = true
		first := f.Run(t, r)
		require.Equal(t, []exchange.Refusal{{Index: 3, Reason: exchange.Lost}}, first.Refused)
		dead, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 0)
		require.NoError(t, err)
		require.Len(t, dead, 3)
		for i, index := range []int{0, 2, -1} {
			b, d := first.DeadLettered[i], dead[i]
			require.Equal(t, index, b.Index)
			require.Equal(t, DeadLetter{
				Entry: b.Entry, ID: b.ID, Payload: d.Payload, Claims: b.Claims, Failures: b.Failures,
				Reason: d.Reason, Activation: b.Activation, At: b.At,
			}, d)
		}
		require.Equal(t, "never settled", first.DeadLettered[2].Reason)
		require.Equal(t, "body of ended\n1 -1", string(first.DeadLettered[2].Payload))
		require.Equal(t, first.DeadLettered, f.Run(t, r).DeadLettered)

		require.NoError(t, f.rdb.Del(t.Context(), f.key.Dead).Err())
		again := f.Run(t, r).DeadLettered
		require.Empty(t, again[2].Payload, "the dead letter is gone but still reported")
		again[2].Payload = first.DeadLettered[2].Payload
		require.Equal(t, first.DeadLettered, again)
		require.Empty(t, f.Claim(t, 5).DeadLettered, "each is reported by its own exchange only")
	})
}

func TestStreamsAndIncarnationsCountApart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b", "c")
		r := f.Request(1, time.Minute)
		require.Equal(t, []string{"a"}, storetest.IDs(f.Run(t, r).Leases))
		r.Stream = 1
		require.Equal(t, []string{"b"}, storetest.IDs(f.Run(t, r).Leases))
		r.Incarnation += "'"
		require.Equal(t, []string{"c"}, storetest.IDs(f.Run(t, r).Leases))
		ttl := f.rdb.PTTL(t.Context(), f.key.Stream(r.Incarnation, 1)).Val()
		require.Greater(t, ttl, time.Minute)
	})
}

// lossy loses the reply to a command after Redis has run it, as a network may, so
// that the client sends it again.
type lossy struct {
	net.Conn
	lose *atomic.Int32
}

func (c lossy) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.lose.Load() > 0 && c.lose.Add(-1) >= 0 {
		_ = c.Close()
		return 0, errors.New("connection lost with its answer")
	}
	return n, err
}

// TestLostRepliesClaimNothingTwice checks a call that the client sends four times
// because the replies are lost: it must claim ten timers and return ten.
func TestLostRepliesClaimNothingTwice(t *testing.T) {
	t.Parallel()
	var lose atomic.Int32
	rdb := redistest.Shared(t, func(o *redis.Options) {
		o.MaxRetries = 3
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return lossy{c, &lose}, err
		}
	})
	f := newFixture(t, rdb)
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("%02d", i)
	}
	f.due(t, names...)
	f.Claim(t, 0) // loads the script, so that one reply is one exchange
	require.NoError(t, rdb.Ping(t.Context()).Err())
	lose.Store(1)
	reply := f.Claim(t, 10)
	require.Len(t, reply.Leases, 10)
	require.LessOrEqual(t, lose.Load(), int32(0), "an answer was lost")
	stats, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 30, stats.Due)
}

func TestScriptFlushCostsNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	f := newFixture(t, rdb)
	f.due(t, "a", "b")
	require.Len(t, f.Claim(t, 1).Leases, 1)
	require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
	require.Len(t, f.Claim(t, 1).Leases, 1)
	require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
	f.due(t, "c")
}
