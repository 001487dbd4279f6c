package shards

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// startMoving gives a topic another number of shards, as a resharding does when all
// clients have read the announcement.
func (f *fixture) startMoving(t testing.TB, n int) sharding.Layout {
	t.Helper()
	l, err := f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) {
		l.Shards = l.Count()
		return f.resharded(t.Context(), f.topic, l, n, time.Now().Add(-time.Minute))
	})
	require.NoError(t, err)
	require.True(t, l.Moves())
	return l
}

// moveAll moves what can be moved. The pass that it ends first may have begun before, when
// something could not be moved yet.
func (f *fixture) moveAll(t testing.TB, l sharding.Layout) {
	t.Helper()
	for passes := 0; passes < 2; {
		moved, ended, err := f.move(t.Context(), f.topic, l)
		require.NoError(t, err)
		switch {
		case moved > 0:
			passes = 0
		case ended:
			passes++
		}
	}
}

// in returns the ids of the timers of physical topics.
func (f *fixture) in(t testing.TB, names []string) (ids []string) {
	t.Helper()
	for _, name := range names {
		found, err := f.timers.RDB.ZRange(t.Context(), f.timers.Keys().Of(name).Timeline, 0, -1).Result()
		require.NoError(t, err)
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	return ids
}

func TestTimersMoveWithEverything(t *testing.T) {
	t.Parallel()
	for _, counts := range [][2]int{{1, 4}, {4, 3}, {4, 1}} {
		t.Run(fmt.Sprintf("%d to %d", counts[0], counts[1]), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, counts[0])
			testMoving(t, f, counts[1])
		})
	}
}

func testMoving(t *testing.T, f *fixture, n int) {
	all := numbered(700)
	for i := range all {
		if i%3 == 0 {
			all[i].Key = fmt.Sprintf("customer %d", i%60)
		}
	}
	f.schedule(t, all...)
	// One was attempted and waits for its retry, one is dead, one is leased, one is due soon.
	f.schedule(t, timers.Entry{ID: "retried"}, timers.Entry{ID: "dead"})
	streams, leases := f.claim(t)
	for i := range streams {
		for _, l := range leases[i] {
			verdict := exchange.DeadLetter
			if l.ID == "retried" {
				verdict = exchange.Nack
			}
			settle := storetest.Verdict(verdict, l)
			settle.Delay, settle.Reason = time.Hour, "broken"
			streams[i].Settle(t, settle)
		}
	}
	f.schedule(t, timers.Entry{ID: "leased"})
	streams, leases = f.claim(t)
	f.margin = 20 * time.Minute // a slow machine takes seconds for what follows
	f.schedule(t, timers.Entry{ID: "soon", In: 10 * time.Minute})
	before := map[string]timers.Timer{}
	list, _, err := f.List(t.Context(), f.topic, timers.Filter{Limit: 1000})
	require.NoError(t, err)
	for _, timer := range list {
		before[timer.ID] = timer
	}
	require.Len(t, before, 703)

	counted, err := f.Throughput(t.Context(), f.topic, time.Hour)
	require.NoError(t, err)
	l := f.startMoving(t, n)
	f.moveAll(t, l)
	moved, err := f.Throughput(t.Context(), f.topic, time.Hour)
	require.NoError(t, err)
	require.Equal(t, scheduled(counted), scheduled(moved))
	require.EqualValues(t, 704, scheduled(moved))
	for _, name := range sharding.Names(f.topic, l.From) {
		left, err := f.timers.RDB.Exists(t.Context(), f.timers.Keys().Of(name).Counts).Result()
		require.NoError(t, err)
		require.Zero(t, left)
	}
	require.Equal(t, []string{"leased", "soon"}, f.in(t, sharding.Names(f.topic, l.From)))
	after, _, err := f.List(t.Context(), f.topic, timers.Filter{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, after, 703)
	for _, timer := range after {
		want := before[timer.ID]
		timer.Cursor, want.Cursor = "", ""
		require.Equal(t, want, timer)
		got, err := f.Get(t.Context(), f.topic, timer.ID)
		require.NoError(t, err)
		require.Equal(t, want.Key, got.Key)
	}
	retried, err := f.Get(t.Context(), f.topic, "retried")
	require.NoError(t, err)
	require.Equal(t, "broken", retried.LastError)
	dead, err := f.LastDead(t.Context(), f.topic, 10)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	_, name := sharding.Placed(dead[0].Entry, f.topic)
	require.Equal(t, l.Shard(f.topic, "dead", ""), name, "a redrive writes the timer where it belongs")

	for i := range streams {
		for _, lease := range leases[i] {
			streams[i].Settle(t, storetest.Verdict(exchange.Ack, lease))
		}
	}
	found, err := f.Cancel(t.Context(), f.topic, "soon", "leased", "t000", "absent")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Presence{2, 1, 2, 1}, found)
	l, err = f.Settle(t.Context(), f.topic)
	require.NoError(t, err)
	require.False(t, l.Moving)
	_, err = f.Get(t.Context(), f.topic, "t000")
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
}

// TestTimersOfKeyMoveInTheirOrder has a key whose first timer waits for its retry, and
// another whose timers are parked.
func TestTimersOfKeyMoveInTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	past := time.Now().Add(-time.Minute)
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("t%02d", 19-i)
		want = append(want, id)
		f.schedule(t, timers.Entry{ID: id, Key: "a", At: past.Add(time.Duration(i) * time.Second)})
	}
	claim := func(name string, ttl time.Duration) (*storetest.Stream, []exchange.Lease) {
		stream := storetest.NewStream(f.timers.Source(name, timers.SourceOptions{}))
		r := stream.Request(5, ttl)
		r.Flow.PerKey = 1
		return stream, stream.Run(t, r).Leases
	}
	stream, leases := claim(f.topic, time.Minute)
	require.Equal(t, want[:1], storetest.IDs(leases))
	l := f.startMoving(t, 4)
	f.moveAll(t, l)
	require.Len(t, f.in(t, []string{f.topic}), 20, "a key of which a timer runs stays")
	f.schedule(t, timers.Entry{ID: "new", Key: "a", At: past.Add(30 * time.Second)})
	pins, err := f.timers.RDB.Exists(t.Context(), f.timers.Keys().Of(f.topic).Pins()).Result()
	require.NoError(t, err)
	require.Zero(t, pins, "a timer that is written is not pinned any more")
	require.Len(t, f.in(t, []string{f.topic}), 21, "and so do new timers of it")
	want = append(want, "new")
	retry := storetest.Verdict(exchange.Nack, leases[0])
	retry.Delay = time.Hour
	stream.Settle(t, retry)
	f.moveAll(t, l)
	require.Empty(t, f.in(t, []string{f.topic}))

	home := l.Shard(f.topic, "", "a")
	_, leases = claim(home, time.Minute)
	require.Empty(t, leases, "the first one waits for its retry")
	_, err = f.RunNow(t.Context(), f.topic, want[0])
	require.NoError(t, err)
	for _, id := range want {
		stream, leases = claim(home, time.Minute)
		require.Equal(t, []string{id}, storetest.IDs(leases))
		stream.Settle(t, storetest.Verdict(exchange.Ack, leases[0]))
	}
	k := f.timers.Keys().Of(home)
	left, err := f.timers.RDB.Exists(t.Context(), k.TimerKeys, k.KeyOrder).Result()
	require.NoError(t, err)
	require.Zero(t, left)
}

// dropPins ends the time for which timers stay that were not written.
func (f *fixture) dropPins(t testing.TB) {
	t.Helper()
	for _, name := range f.names(t) {
		require.NoError(t, f.timers.RDB.Del(t.Context(), f.timers.Keys().Of(name).Pins()).Err())
	}
}

func (f *fixture) names(t testing.TB) []string {
	t.Helper()
	names, err := f.all(t.Context(), f.topic)
	require.NoError(t, err)
	return names
}

// TestOutboxIsDeliveredOnce repeats the last steps of a move, also after its timers were
// handled.
func TestOutboxIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, numbered(10)...)
	l := f.startMoving(t, 2)
	took, err := f.toShards(f.topic, l).take(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 10, took.timers)
	for range 2 {
		require.NoError(t, f.deliver(t.Context(), f.topic, l, f.topic, took.token, took.batch))
		require.Len(t, f.in(t, l.Names(f.topic)), 10)
	}
	_, err = f.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)
	require.NoError(t, f.deliver(t.Context(), f.topic, l, f.topic, took.token, took.batch))
	require.Empty(t, f.in(t, f.names(t)))
	index, err := f.timers.RDB.HKeys(t.Context(), f.timers.Keys().Of(f.topic).Taken()).Result()
	require.NoError(t, err)
	require.Equal(t, []string{"n"}, index)
	require.Positive(t, f.timers.RDB.TTL(t.Context(), f.timers.Keys().Of(f.topic).Taken()).Val(), "it expires")
	for _, broken := range []string{"", "t1 2 3", "t1 2\nabc", "t9\nabc", "t-1\n", "d1 x\nab", "p", "p1\na", "p0 1\n1", "p1 1\nk01 2\nabc"} {
		require.Error(t, f.deliver(t.Context(), f.topic, l, f.topic, took.token, broken), "%q", broken)
	}
}

// TestBatchThatIsTakenAfterEndIsDelivered takes a batch when the timers have moved, as
// the last command of a killed process may. Nodes find it by the time in which a client may
// have written there, too.
func TestBatchThatIsTakenAfterEndIsDelivered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb, wakebelltype.Keys{}, 4)
		f.schedule(t, numbered(20)...)
		f.moveAll(t, f.startMoving(t, 2))
		settle := func() sharding.Layout {
			t.Helper()
			<-time.After(settleAfter)
			l, err := f.Settle(t.Context(), f.topic)
			require.NoError(t, err)
			return l
		}
		require.False(t, settle().Moving)

		from := sharding.Names(f.topic, 4)[3]
		_, err := f.timers.Schedule(t.Context(), from, timers.Entry{ID: "late", Payload: []byte("x"), In: time.Hour})
		require.NoError(t, err)
		process := f.toShards(f.topic, sharding.Layout{})
		process.fence = nil // it is of an earlier version
		took, err := process.take(t.Context(), from)
		require.NoError(t, err)
		require.EqualValues(t, 1, took.timers)
		l := settle()
		require.True(t, l.Moving)
		moves, err := f.DeliverAbandoned(t.Context(), f.topic)
		require.NoError(t, err)
		require.True(t, moves)
		require.Contains(t, f.in(t, l.Names(f.topic)), "late")
		require.Zero(t, rdb.Exists(t.Context(), f.timers.Keys().Of(from).Moving()).Val())
		require.False(t, settle().Moving)
	})
}

// TestTimerInOutboxIsFound calls for timers that a process took and did not store.
func TestTimerInOutboxIsFound(t *testing.T) {
	t.Parallel()
	calls := map[string]func(f *fixture) error{
		"get":        func(f *fixture) error { _, err := f.Get(t.Context(), f.topic, "t004"); return err },
		"reschedule": func(f *fixture) error { _, err := f.Reschedule(t.Context(), f.topic, "t004", hour, 0); return err },
		"run now":    func(f *fixture) error { _, err := f.RunNow(t.Context(), f.topic, "t004"); return err },
		"cancel": func(f *fixture) error {
			found, err := f.Cancel(t.Context(), f.topic, "t004")
			require.Equal(t, []wakebelltype.Presence{wakebelltype.PresencePending}, found)
			return err
		},
		"schedule": func(f *fixture) error {
			done, err := f.Schedule(t.Context(), f.topic, timers.Entry{ID: "t004", Payload: []byte("new"), At: hour})
			require.Equal(t, wakebelltype.OutcomeReplaced, done[0].Outcome)
			return err
		},
		"cancel all": func(f *fixture) error {
			n, err := f.CancelAll(t.Context(), f.topic)
			require.EqualValues(t, 10, n)
			return err
		},
		"a node": func(f *fixture) error { return f.Deliver(t.Context(), f.topic) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			f.schedule(t, numbered(10)...)
			l := f.startMoving(t, 4)
			took, err := f.toShards(f.topic, l).take(t.Context(), f.topic)
			require.NoError(t, err)
			require.EqualValues(t, 10, took.timers)
			require.NoError(t, call(f))
			want := map[string]int{"cancel": 9, "cancel all": 0}
			n, special := want[name]
			if !special {
				n = 10
			}
			require.Len(t, f.in(t, l.Names(f.topic)), n)
			require.Empty(t, f.in(t, []string{f.topic}))
			left, err := f.outbox(t.Context(), f.topic)
			require.NoError(t, err)
			require.Empty(t, slices.Collect(maps.Keys(left)))
		})
	}
}

// TestTimerStaysWhileItIsWritten takes timers between the two commands of a call that
// writes one of them.
func TestTimerStaysWhileItIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, numbered(10)...)
	f.schedule(t, timers.Entry{ID: "a", Key: "x", At: hour}, timers.Entry{ID: "b", Key: "x", At: hour})
	l := f.startMoving(t, 4)
	batch := timers.NewBatch("", 3)
	for _, e := range []timers.Entry{{ID: "t003", At: hour}, {ID: "new", At: hour}, {ID: "c", Key: "x", At: hour}} {
		require.NoError(t, batch.Add(f.topic, &e))
	}
	divided, _, err := f.divided(t.Context(), nil, batch, nil)
	require.NoError(t, err)
	f.moveAll(t, l)
	require.Equal(t, []string{"a", "b", "t003"}, f.in(t, []string{f.topic}))
	_, _, err = f.divided(t.Context(), nil, batch, nil) // a call of another process, which ends here
	require.NoError(t, err)
	_, err = f.timers.Write(t.Context(), nil, divided)
	require.NoError(t, err)
	f.moveAll(t, l)
	require.Equal(t, []string{"a", "b", "c", "t003"}, f.in(t, []string{f.topic}))
	f.dropPins(t)
	f.moveAll(t, l)
	require.Empty(t, f.in(t, []string{f.topic}))
	require.Len(t, f.in(t, l.Names(f.topic)), 14)
}

func scheduled(all wakebelltype.Throughput) (n int64) {
	for _, p := range all.Points {
		n += p.Scheduled
	}
	return n
}
