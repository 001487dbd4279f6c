package shards

import (
	"fmt"
	"testing"
	"testing/synctest"
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

// A timer that waits for its retry without its key moves with the others of the key, so that
// these do not run beside it elsewhere: here in two steps, between which the key is closed.
func TestRetryMovesWithTimersOfItsKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		skips, swept bool          // swept: before the other is scheduled, which is the only one then that the key knows
		then         exchange.Flow // limits after it has failed
	}{
		"SkipFailed":              {true, false, exchange.Flow{PerKey: 1}},
		"SkipFailed, after sweep": {true, true, exchange.Flow{PerKey: 1}},
		"RateLimitByKey":          {false, false, exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Minute, KeyRateBurst: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			f.bounds.timers = 1
			stream := storetest.NewStream(f.timers.Source(f.topic, timers.SourceOptions{SkipFailed: c.skips}))
			run := func(flow exchange.Flow, want int, settle ...exchange.Settlement) []exchange.Lease {
				r := stream.Request(want, time.Minute)
				r.Flow, r.Settle = flow, settle
				return stream.Run(t, r).Leases
			}
			all := ofKey("k", 2)
			f.schedule(t, all[0])
			nack := storetest.Verdict(exchange.Nack, run(exchange.Flow{PerKey: 1}, 1)[0])
			nack.Delay = time.Hour
			if c.swept {
				run(exchange.Flow{PerKey: 1}, 0, nack)
				f.serial().sweep(t, f.topic)
			} else {
				f.schedule(t, all[1])
				run(exchange.Flow{PerKey: 1}, 0, nack)
				other := run(c.then, 1)
				require.Len(t, other, 1)
				run(c.then, 0, storetest.Verdict(exchange.Release, other[0]))
			}
			all[1].At = hour.Add(time.Hour) // a move takes the last timers first
			f.schedule(t, all[1])

			l := f.startMoving(t, 2)
			to := l.Shard(f.topic, "", "k")
			for len(f.in(t, []string{to})) == 0 {
				_, _, err := f.move(t.Context(), f.topic, l)
				require.NoError(t, err)
			}
			require.Len(t, f.in(t, []string{f.topic}), 1)
			state := f.timers.RDB.HGet(t.Context(), f.timers.Keys().Of(to).KeyStates, "k").Val()
			require.Regexp(t, "^c", state, "the key is closed, until the other has arrived")
			f.moveAll(t, l)
			require.Len(t, f.in(t, []string{to}), 2)
		})
	}
}

// A key of which a token is not back keeps its rate while the shards change, also if it has no
// timers any more: a new one is written where the token was taken, and moves with it.
func TestTokensOfKeyHoldWhileShardsChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	flow := exchange.Flow{KeyRateLimit: 1, KeyRatePer: time.Hour, KeyRateBurst: 1}
	claimed := func(name string, settle ...exchange.Settlement) []exchange.Lease {
		source := f.timers.Source(name, timers.SourceOptions{})
		require.NoError(t, source.SweepKeys(t.Context(), flow))
		stream := storetest.NewStream(source)
		r := stream.Request(10, time.Minute)
		r.Flow, r.Settle = flow, settle
		return stream.Run(t, r).Leases
	}
	all := ofKey("k", 2)
	f.schedule(t, all[0])
	first := claimed(f.topic)
	require.Len(t, first, 1)
	require.Empty(t, claimed(f.topic, storetest.Verdict(exchange.Ack, first[0])))
	l := f.startMoving(t, 2)
	f.schedule(t, all[1])
	require.Equal(t, []string{all[1].ID}, f.in(t, []string{f.topic}))
	require.Empty(t, claimed(f.topic))
	f.moveAll(t, l)
	to := l.Shard(f.topic, "", "k")
	require.Equal(t, []string{all[1].ID}, f.in(t, []string{to}))
	require.Empty(t, claimed(to), "the token is not back")
	f.schedule(t, timers.Entry{ID: "third", Key: "k", At: hour})
	require.Len(t, f.in(t, []string{to}), 2, "nothing of the key is left")
}

// A timer that waits for its retry without its key, and is the only one of the key, does not hold
// it where it arrives.
func TestRetryWithoutItsKeyArrivesWithoutIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	stream := storetest.NewStream(f.timers.Source(f.topic, timers.SourceOptions{SkipFailed: true}))
	run := func(stream *storetest.Stream, want int, settle ...exchange.Settlement) []exchange.Lease {
		r := stream.Request(want, time.Minute)
		r.Flow.PerKey, r.Settle = 1, settle
		return stream.Run(t, r).Leases
	}
	all := ofKey("k", 2)
	f.schedule(t, all[0])
	nack := storetest.Verdict(exchange.Nack, run(stream, 1)[0])
	nack.Delay = time.Hour
	run(stream, 0, nack)
	l := f.startMoving(t, 2)
	f.moveAll(t, l)
	f.schedule(t, all[1])
	to := f.timers.Source(l.Shard(f.topic, "", "k"), timers.SourceOptions{SkipFailed: true})
	require.Equal(t, []string{all[1].ID}, storetest.IDs(run(storetest.NewStream(to), 10)))
}

// Timers of a key run whose node has crashed keep their order where they move before they are claimed
// again, also in several steps: those of equal instants that of their schedules, and one whose lease
// expired after those of the others.
func TestKeyRunOfDeadNodeMovesInItsOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ timers, step, late int }{
		"at once": {3, 0, -1}, "of many": {12, 0, -1}, "in steps": {12, 5, -1},
		"the last expires later": {3, 0, 2}, "in steps, the last expires later": {12, 2, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
				if c.step > 0 {
					f.bounds.timers = c.step
				}
				past := time.Now().Add(-time.Hour).Truncate(time.Second)
				var want []string
				for i := range c.timers { // their ids are in the opposite order
					want = append(want, fmt.Sprintf("t%02d", c.timers-i))
					f.schedule(t, timers.Entry{ID: want[i], Key: "k", At: past})
				}
				claim := func(name string, change func(r *exchange.Request)) []exchange.Lease {
					stream := storetest.NewStream(f.timers.Source(name, timers.SourceOptions{}))
					r := stream.Request(20, time.Minute)
					r.Flow.PerKey = 1
					change(r)
					return stream.Run(t, r).Leases
				}
				run := claim(f.topic, func(r *exchange.Request) { r.KeyRun = 20 })
				require.Equal(t, want, storetest.IDs(run))
				if c.late >= 0 {
					l := run[c.late]
					claim(f.topic, func(r *exchange.Request) {
						r.LeaseTTL, r.Extend = time.Hour, []exchange.Held{{ID: l.ID, Token: l.Token}}
					})
					<-time.After(2 * time.Minute)
					require.Empty(t, claim(f.topic, func(*exchange.Request) {}), "it is leased still")
				}
				<-time.After(2 * time.Hour)
				l := f.startMoving(t, 2)
				f.moveAll(t, l)
				home := l.Shard(f.topic, "", "k")
				require.Len(t, f.in(t, []string{home}), c.timers)
				var got []string
				for settle := []exchange.Settlement(nil); len(got) < c.timers; {
					leases := claim(home, func(r *exchange.Request) { r.Settle = settle })
					if settle = nil; len(leases) > 0 {
						got, settle = append(got, leases[0].ID), []exchange.Settlement{storetest.Verdict(exchange.Ack, leases[0])}
					}
				}
				require.Equal(t, want, got)
			})
		})
	}
}
