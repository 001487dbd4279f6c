package shards

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// handled claims and acks the timers of a physical topic that a rate of one a minute for each
// key lets start.
func (f *fixture) handled(t testing.TB, name string) []exchange.Lease {
	t.Helper()
	stream := storetest.NewStream(f.timers.Source(name, timers.SourceOptions{}))
	r := stream.Request(10, time.Minute)
	r.Flow.KeyRateLimit, r.Flow.KeyRatePer = 1, time.Minute
	leases := stream.Run(t, r).Leases
	for _, l := range leases {
		stream.Settle(t, storetest.Verdict(exchange.Ack, l))
	}
	return leases
}

// TestKeyWithoutTimersKeepsItsRate changes the place of a topic while a key has used its
// token and has no timers. Its next timer waits for the next token there.
func TestKeyWithoutTimersKeepsItsRate(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"reshard", "move"} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				other, _ := redistest.Embedded(t)
				f, to := pair(t, rdb, other, 1, 1)
				f.schedule(t, timers.Entry{ID: "first", Key: "k"})
				require.Len(t, f.handled(t, f.topic), 1)

				place, second := f, timers.Entry{ID: "second", Key: "k"}
				if change == "move" {
					place = to
					f.moved(t, to, wakebelltype.MoveOptions{})
					place.schedule(t, second)
				} else {
					written := false
					for p, err := range f.Reshard(t.Context(), f.topic, 2) {
						require.NoError(t, err)
						if p.Layout.Moves() && !written {
							f.schedule(t, second)
							written = true
						}
					}
				}
				l, err := place.Layout(t.Context(), place.topic)
				require.NoError(t, err)
				name := l.Shard(place.topic, "second", "k")
				require.Equal(t, []string{"second"}, place.in(t, []string{name}))
				require.Empty(t, place.handled(t, name))
				<-time.After(time.Minute)
				require.Len(t, place.handled(t, name), 1)
			})
		})
	}
}

// TestReshardEndsWhenNoCallIsAboutToWrite has a call pin a timer of a key that has used its
// token where the topic was before. The change does not end until the call is done, and then
// the token is known in the new shard.
func TestReshardEndsWhenNoCallIsAboutToWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
		f.schedule(t, timers.Entry{ID: "first", Key: "k"})
		l := f.startMoving(t, 2)
		require.Len(t, f.handled(t, f.topic), 1)
		moving := func() bool {
			l, err := f.Settle(t.Context(), f.topic)
			require.NoError(t, err)
			return l.Moving
		}

		pinned := []written{{id: "second", key: "k"}}
		codes, err := f.pin(t.Context(), l, f.topic, "call", pinned)
		require.NoError(t, err)
		require.Equal(t, "k", codes)
		require.True(t, moving(), "a call is about to write")
		f.unpin(t.Context(), pinnedRoutes{call: "call", fields: map[string][]any{f.topic: {"isecond", "kk"}}})
		require.False(t, moving())
		_, err = f.pin(t.Context(), l, f.topic, "call", pinned)
		require.ErrorIs(t, err, scripts.ErrStaleLayout)

		f.schedule(t, timers.Entry{ID: "third", Key: "k"})
		to := l.Shard(f.topic, "", "k")
		require.Equal(t, []string{"third"}, f.in(t, []string{to}))
		require.Empty(t, f.handled(t, to), "the token was used in the old shard")
		<-time.After(time.Minute)
		require.Len(t, f.handled(t, to), 1)
	})
}

// TestPinThatIsLeftBehindDoesNotKeepReshardGoing has a call that died.
func TestPinThatIsLeftBehindDoesNotKeepReshardGoing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
		f.schedule(t, timers.Entry{ID: "x"})
		l := f.startMoving(t, 2)
		codes, err := f.pin(t.Context(), l, f.topic, "died", []written{{id: "x"}})
		require.NoError(t, err)
		require.Equal(t, "e", codes)
		_, err = f.Cancel(t.Context(), f.topic, "x")
		require.NoError(t, err)
		for range 3 {
			l, err = f.Settle(t.Context(), f.topic)
			require.NoError(t, err)
			if !l.Moving {
				break
			}
			<-time.After(time.Minute)
		}
		require.False(t, l.Moving)
	})
}

// TestEndOfMoveCopiesTokens has a key use its tokens after the last step of a move to another
// Redis has copied some.
func TestEndOfMoveCopiesTokens(t *testing.T) {
	t.Parallel()
	f, to := pair(t, redistest.Shared(t), redistest.Shared(t), 1, 1)
	m, err := f.mover(t.Context(), f.topic, to.Store, to.topic+"-there", wakebelltype.MoveOptions{})
	require.NoError(t, err)
	_, _, err = m.step(t.Context(), m.names)
	require.NoError(t, err)
	back := float64(time.Now().Add(time.Hour).Unix())
	require.NoError(t, f.timers.RDB.ZAdd(t.Context(), f.timers.Keys().Of(f.topic).KeyRates, redis.Z{Score: back, Member: "k"}).Err())
	done, err := m.end(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	there, err := to.timers.RDB.ZScore(t.Context(), to.timers.Keys().Of(to.topic+"-there").KeyRates, "k").Result()
	require.NoError(t, err)
	require.InDelta(t, back, there, 0)
}
