package timers

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// foreign writes a due timer as a peer does, with a payload of size bytes.
func (f *fixture) foreign(t *testing.T, id string, size int) {
	t.Helper()
	require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, id, strings.Repeat("x", size)).Err())
	require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, redis.Z{Score: 5, Member: id}).Err())
}

// TestTooLargePayloads checks that a timer whose payload is over the limit is
// dead-lettered with the size as the reason, and that the timers beside it are
// delivered.
func TestTooLargePayloads(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.MaxPayload = 1000
		f.foreign(t, "large", 1001)
		f.foreign(t, "limit", 1000)
		f.due(t, "a")

		got, err := f.Get(t.Context(), f.topic, "large")
		require.ErrorIs(t, err, wakebelltype.ErrTooLarge)
		require.ErrorContains(t, err, "1001 bytes, at most 1000")
		require.Equal(t, Timer{ID: "large", Due: time.Unix(5, 0).UTC(), Activation: time.Unix(5, 0).UTC(), Payload: []byte{}}, got)
		require.Len(t, f.get(t, "limit").Payload, 1000)
		listed, _, err := f.List(t.Context(), f.topic, Filter{})
		require.NoError(t, err)
		require.Len(t, listed, 3)
		moved, err := f.Reschedule(t.Context(), f.topic, "large", time.Unix(4, 0), 0)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeMoved, moved.Outcome)

		request := f.Request(10, time.Minute)
		const reason = "the payload has 1001 bytes, more than 1000"
		for range 2 { // the second is the stored answer
			reply := f.Run(t, request)
			require.Equal(t, []string{"limit", "a"}, storetest.IDs(reply.Leases))
			require.Len(t, reply.DeadLettered, 1)
			b := reply.DeadLettered[0]
			require.Equal(t, exchange.DeadLettered{
				Index: -1, Entry: b.Entry, At: b.At, ID: "large", Activation: time.Unix(4, 0).UTC(), Reason: reason,
			}, b)
		}
		dead, err := f.DeadLetter(t.Context(), f.topic, f.firstDead(t).Entry)
		require.NoError(t, err)
		require.Equal(t, "large", dead.ID)
		require.Equal(t, reason, dead.Reason)
		require.Empty(t, dead.Payload)
		require.False(t, f.rdb.HExists(t.Context(), f.key.Payloads, "large").Val())
		result, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.RedriveResult{SkippedBroken: 1}, result, "there is nothing to deliver")
	})
}

// TestPayloadsThatBecomeTooLarge checks that a payload that another program made
// too large while its timer was leased is neither read nor stored when the lease
// expires or is settled.
func TestPayloadsThatBecomeTooLarge(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.MaxPayload = 1000
		f.due(t, "a", "b")
		request := f.Request(2, time.Minute)
		leases := f.Run(t, request).Leases
		for _, l := range leases {
			require.NoError(t, f.rdb.HSet(t.Context(), f.key.Payloads, l.ID, strings.Repeat("x", 1001)).Err())
		}
		require.Empty(t, f.Run(t, request).Leases, "answered again")
		s := storetest.Verdict(exchange.DeadLetter, leases[0])
		s.Reason = "rejected"
		require.Len(t, f.Settle(t, s).DeadLettered, 1)
		require.Empty(t, f.firstDead(t).Payload)
		f.Settle(t, storetest.Verdict(exchange.Nack, leases[1]))
		require.Equal(t, exchange.DeadLettered{
			Index: -1, ID: "b", Claims: 1, Failures: 1, Reason: "the payload has 1001 bytes, more than 1000",
			Activation: leases[1].Activation,
		}, withoutPlace(f.Claim(t, 1).DeadLettered[0]))
	})
}

func withoutPlace(b exchange.DeadLettered) exchange.DeadLettered {
	b.Entry, b.At = "", time.Time{}
	return b
}

// firstDead returns the oldest dead letter of the topic.
func (f *fixture) firstDead(t *testing.T) DeadLetter {
	t.Helper()
	dead, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 1)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	return dead[0]
}
