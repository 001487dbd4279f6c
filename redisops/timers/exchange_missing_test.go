package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// allFlows has a flow control for each variant of the exchange.
var allFlows = map[string]exchange.Flow{
	"none":           {},
	"rate limit":     {RateLimit: 1000, RatePer: time.Second, RateBurst: 1000},
	"in flight":      {MaxInFlight: 100},
	"per key":        {PerKey: 1},
	"key and topic":  {PerKey: 2, MaxInFlight: 100},
	"key rate limit": {KeyRateLimit: 1000, KeyRatePer: time.Second, KeyRateBurst: 1000},
}

// TestTimerWithoutPayloadIsDeadLettered checks that a due timer whose payload was deleted
// by hand becomes a dead letter, with what is known of it, under every flow control.
func TestTimerWithoutPayloadIsDeadLettered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for name, flow := range allFlows {
			f := f.on(f.topic + name)
			at := time.Now().Add(-time.Hour).Truncate(time.Microsecond).UTC()
			f.schedule(t, Entry{ID: "lost", Key: "k", Payload: []byte("x"), At: at},
				Entry{ID: "kept", Key: "other", Payload: []byte("y"), At: at}, Entry{ID: "later", Payload: []byte("z"), In: time.Hour})
			f.do(t, "HDEL", f.key.Payloads, "lost", "later")
			r := f.Request(10, time.Minute)
			r.Flow = flow
			for range 2 { // the second is the stored answer
				reply := f.Run(t, r)
				require.Equal(t, []string{"kept"}, storetest.IDs(reply.Leases), name)
				require.Len(t, reply.DeadLettered, 1, name)
				b := withoutPlace(reply.DeadLettered[0])
				if !flow.ByKey() {
					b.Key = "k" // which such an exchange does not read
				}
				require.Equal(t, exchange.DeadLettered{Index: -1, ID: "lost", Activation: at, Key: "k", Reason: exchange.PayloadMissing}, b, name)
				require.Zero(t, reply.Healed, name)
			}
			dead := f.firstDead(t)
			require.Equal(t, "payload missing", dead.Reason, name)
			require.Equal(t, at, dead.Activation, name)
			require.Empty(t, dead.Payload, name)
			require.EqualValues(t, 2, f.rdb.ZCard(t.Context(), f.key.Timeline).Val(), "the one in an hour waits: %s", name)
			result, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
			require.NoError(t, err)
			require.Equal(t, wakebelltype.RedriveResult{SkippedBroken: 1}, result, "there is nothing to deliver: %s", name)
		}
	})
}

// TestWaitingTimerOfKeyWithoutPayloadIsDeadLettered checks one that is parked, and woken
// by the settlement of another: the hand-over of a key, too.
func TestWaitingTimerOfKeyWithoutPayloadIsDeadLettered(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dueOf(t, "k", "a", "b", "c")
		l := f.perKey(t, 1, 1).Leases[0]
		activation := f.get(t, "b").Activation
		f.do(t, "HDEL", f.key.Payloads, "b")
		var dead []exchange.DeadLettered
		var claimed []string
		for range 3 {
			reply := f.perKey(t, 1, 1, ack(l))
			dead = append(dead, reply.DeadLettered...)
			if claimed = append(claimed, storetest.IDs(reply.Leases)...); len(reply.Leases) > 0 {
				l = reply.Leases[0]
			}
		}
		require.Equal(t, []string{"c"}, claimed)
		require.Len(t, dead, 1)
		require.Equal(t, exchange.DeadLettered{Index: -1, ID: "b", Activation: activation, Key: "k", Reason: exchange.PayloadMissing}, withoutPlace(dead[0]))
		f.noKeysLeft(t)
	})
}

// TestTimerWithoutPayloadBesidesLargeOnes checks a claim whose payloads are read beside
// its answer, and one that finds no other timer.
func TestTimerWithoutPayloadBesidesLargeOnes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, large(20)...)
		f.do(t, "HDEL", f.key.Payloads, "3")
		reply := f.Claim(t, 100)
		require.Len(t, reply.Leases, 19)
		require.Len(t, reply.DeadLettered, 1)
		require.Equal(t, exchange.PayloadMissing, reply.DeadLettered[0].Reason)

		alone := f.on(f.topic + "alone")
		alone.do(t, "ZADD", alone.key.Timeline, "5", "peer's")
		peeked, err := alone.src.Peek(t.Context())
		require.NoError(t, err)
		require.Zero(t, peeked.Next, "it is due")
		require.Equal(t, "peer's", alone.Claim(t, 1).DeadLettered[0].ID)
		require.Empty(t, alone.Claim(t, 1).DeadLettered)
	})
}

// TestLeasedTimerWithoutPayloadIsDeadLetteredWhenItIsDue checks that a handler may settle a
// timer whose payload was deleted meanwhile, and what the attempts of one are that fails.
func TestLeasedTimerWithoutPayloadIsDeadLetteredWhenItIsDue(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		leases := f.Claim(t, 2).Leases
		f.do(t, "DEL", f.key.Payloads)
		require.Empty(t, f.early(t, time.Hour).DeadLettered, "their handlers have them")
		reply := f.Settle(t, storetest.Verdict(exchange.Ack, leases[0]), storetest.Verdict(exchange.Nack, leases[1]))
		require.Empty(t, reply.Refused)
		require.Empty(t, reply.DeadLettered)
		require.Equal(t, exchange.DeadLettered{
			Index: -1, ID: "b", Claims: 1, Failures: 1, Activation: leases[1].Activation, Reason: exchange.PayloadMissing,
		}, withoutPlace(f.Claim(t, 1).DeadLettered[0]))
		require.Equal(t, "b", f.firstDead(t).ID)
	})
}
