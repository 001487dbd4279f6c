package shards

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestParkedTimerThatArrivesAloneIsDue moves timers that wait for one of their key, which
// does not arrive because its id is in the target.
func TestParkedTimerThatArrivesAloneIsDue(t *testing.T) {
	t.Parallel()
	for _, waiting := range []int{1, 2} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			all := ofKey("k", 1+waiting)
			f.schedule(t, all...)
			pollers := f.serial()
			nack := storetest.Verdict(exchange.Nack, pollers.one(t, f.topic)[0])
			nack.Delay = time.Hour
			pollers.streams[f.topic].Settle(t, nack)
			require.Empty(t, pollers.one(t, f.topic))
			l := f.startMoving(t, 2)
			to := l.Shard(f.topic, "", "k")
			_, err := f.timers.Schedule(t.Context(), to, timers.Entry{ID: all[0].ID, Payload: []byte("another"), At: hour})
			require.NoError(t, err)
			parked := f.timers.RDB.ZCount(t.Context(), f.timers.Keys().Of(f.topic).Timeline, fmt.Sprint(parkedAt), fmt.Sprint(parkedAt)).Val()
			require.EqualValues(t, waiting, parked)
			f.moveAll(t, l)

			stream := storetest.NewStream(f.timers.Source(to, timers.SourceOptions{})) // without a sweep
			var ids []string
			for settle := []exchange.Settlement(nil); ; {
				r := stream.Request(10, time.Minute)
				r.Flow.PerKey, r.Settle = 1, settle
				leases := stream.Run(t, r).Leases
				if len(leases) == 0 {
					break
				}
				ids = append(ids, leases[0].ID)
				settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, leases[0])}
			}
			require.Equal(t, idsOf(all[1:]), ids)
		})
	}
}

// What is left in the target of a timer that a peer has handled there does not bring one forward
// that arrives with its id.
func TestArrivingTimerDoesNotTakePlaceOfHandledOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	l := f.startMoving(t, 2)
	to := l.Shard(f.topic, "", "k")
	k, past := f.timers.Keys().Of(to), time.Now().Add(-time.Hour)
	for i, id := range []string{"a", "b"} {
		e := timers.Entry{ID: id, Key: "k", Payload: []byte("x"), At: past.Add(time.Duration(i) * time.Minute)}
		_, err := f.timers.Schedule(t.Context(), to, e)
		require.NoError(t, err)
	}
	require.NoError(t, f.timers.RDB.ZRem(t.Context(), k.Timeline, "a").Err())
	require.NoError(t, f.timers.RDB.HDel(t.Context(), k.Payloads, "a").Err())
	_, err := f.timers.Schedule(t.Context(), f.topic, timers.Entry{ID: "a", Key: "k", Payload: []byte("x"), At: time.Now()})
	require.NoError(t, err)
	f.moveAll(t, l)

	stream := storetest.NewStream(f.timers.Source(to, timers.SourceOptions{}))
	r := stream.Request(10, time.Minute)
	r.Flow.PerKey = 1
	require.Equal(t, []string{"b"}, storetest.IDs(stream.Run(t, r).Leases))
}
