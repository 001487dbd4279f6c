package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestUnreadableCountsOfDeliveries checks that an unreadable count of deliveries
// counts as none: its message and the others are delivered, and each settlement
// works.
func TestUnreadableCountsOfDeliveries(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f = f.holder(SourceOptions{MaxDeliveries: 3})
		for _, text := range append(storetest.NoIntegers, "") {
			for _, v := range []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Fail, exchange.Release} {
				f.put(t, "odd", "good")
				unreadable := func() {
					for _, list := range []string{f.keys.pending, f.keys.processing} {
						for _, stored := range f.list(t, list) {
							if strings.Contains(stored, "odd") {
								require.NoError(t, f.rdb.HSet(t.Context(), f.keys.counts, stored, text).Err())
							}
						}
					}
				}
				unreadable()
				leases := f.Claim(t, 2).Leases
				require.Equal(t, []string{"odd", "good"}, payloads(leases), "%q", text)
				require.Equal(t, 1, leases[0].Claims, "%q", text)
				unreadable()
				reply := f.Settle(t, storetest.Verdict(v, leases[0]), storetest.Verdict(exchange.Ack, leases[1]))
				require.Empty(t, reply.Refused, "%q", text)
				f.pass(t, time.Now())
				for _, l := range f.Claim(t, 2).Leases { // a nack and a release
					require.Equal(t, "odd", string(l.Payload))
					f.Settle(t, storetest.Verdict(exchange.Ack, l))
				}
			}
		}
	})
}

// TestUnreadableCounterOfTokens checks that a token counter that Redis or Lua
// cannot increment continues from the clock.
func TestUnreadableCounterOfTokens(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		seen := map[string]bool{}
		for _, text := range append(storetest.NoIntegers, "", "9223372036854775807", "9007199254740991") {
			f.put(t, "a", "b")
			require.NoError(t, f.rdb.Set(t.Context(), f.keys.counter, text, 0).Err())
			leases := f.Claim(t, 2).Leases
			require.Len(t, leases, 2, "%q", text)
			for _, l := range leases {
				token, _, _ := strings.Cut(string(l.Token), " ")
				require.False(t, seen[token], "%q: %s was given before", text, token)
				seen[token] = true
				require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, l)).Refused)
			}
		}
	})
}

// TestUnreadablePlacesOfDeadLetters checks that a foreign place of a dead letter
// does not hide those after it.
func TestUnreadablePlacesOfDeadLetters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, text := range storetest.NoIntegers {
			f.put(t, fmt.Sprint("message", i))
			l := f.Claim(t, 1).Leases[0]
			require.NoError(t, f.rdb.ZAdd(t.Context(), f.keys.places, redis.Z{Score: 9e15, Member: text}).Err())
			require.Len(t, f.Settle(t, storetest.Verdict(exchange.DeadLetter, l)).DeadLettered, 1, "%q", text)
			require.Len(t, f.list(t, f.keys.dlq), i+1)
		}
	})
}

// TestUnreadableAnswersOfQueueExchanges checks that an unreadable stored answer of
// an exchange counts as none.
func TestUnreadableAnswersOfQueueExchanges(t *testing.T) {
	t.Parallel()
	for _, text := range append(storetest.NoIntegers, "", "1", "1\n", "1 x", "1\n1 0 0 0 9\n", "1\n1 0 0 0 2\nxyz", "1 1 0 0 0 0\nxyz") {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.put(t, "a")
				r := f.Request(1, time.Minute)
				stream := f.keys.stream(r.Incarnation, r.Stream)
				require.NoError(t, f.rdb.Set(t.Context(), stream, storetest.WithSequence(text, r.Sequence), 0).Err())
				require.Equal(t, []string{"a"}, payloads(f.Run(t, r).Leases))
			})
		})
	}
}

func TestMessageThatCannotBeReadIsAtFault(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, body := range []string{
			`bad`, `[]`, `{"payload":"x"}`, `{"id":"a"}`, `{"id":"a","payload":"x","payload_hex":"00"}`, `{"id":"a","payload_hex":"0"}`,
			`{"id":"a","payload":1}`,
		} {
			require.NoError(t, f.rdb.LPush(t.Context(), f.keys.pending, "\x1eRMQ1:"+body).Err())
			lease := f.Claim(t, 1).Leases[0]
			require.NotEmpty(t, lease.Fault, body)
			s := storetest.Verdict(exchange.DeadLetter, lease)
			s.Reason = lease.Fault
			require.Empty(t, f.Settle(t, s).Refused)
			require.EqualValues(t, i+1, f.rdb.LLen(t.Context(), f.keys.dlq).Val())
		}
	})
}
