package shards

import (
	"bytes"
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

// ofKey returns n timers of a key, which are due for long, in their order.
func ofKey(key string, n int) []timers.Entry {
	entries := make([]timers.Entry, n)
	for i := range entries {
		entries[i] = timers.Entry{ID: fmt.Sprintf("%s%04d", key, i), Key: key, At: time.Now().Add(-time.Hour).Add(time.Duration(i) * time.Second).Truncate(time.Second)}
	}
	return entries
}

func idsOf(entries []timers.Entry) (ids []string) {
	for i := range entries {
		ids = append(ids, entries[i].ID)
	}
	return ids
}

// serial claims timers of physical topics with PerKey(1), as new pollers do.
type serial struct {
	f       *fixture
	streams map[string]*storetest.Stream
}

func (f *fixture) serial() *serial { return &serial{f, map[string]*storetest.Stream{}} }

// sweep sweeps the keys of a physical topic.
func (s *serial) sweep(t testing.TB, name string) {
	t.Helper()
	require.NoError(t, s.f.timers.Source(name, timers.SourceOptions{}).SweepKeys(t.Context(), exchange.Flow{PerKey: 1}))
}

// one returns what the next exchange of a physical topic claims, of which it settles the
// leases of the one before.
func (s *serial) one(t testing.TB, name string, settle ...exchange.Lease) []exchange.Lease {
	t.Helper()
	stream := s.streams[name]
	if stream == nil {
		s.sweep(t, name)
		stream = storetest.NewStream(s.f.timers.Source(name, timers.SourceOptions{}))
		s.streams[name] = stream
	}
	r := stream.Request(10, time.Minute)
	r.Flow.PerKey = 1
	for _, l := range settle {
		r.Settle = append(r.Settle, storetest.Verdict(exchange.Ack, l))
	}
	return stream.Run(t, r).Leases
}

// all handles all that a physical topic has, one after the other, and returns their ids.
func (s *serial) all(t testing.TB, name string) (ids []string) {
	t.Helper()
	for leases := s.one(t, name); len(leases) > 0; leases = s.one(t, name, leases...) {
		require.Len(t, leases, 1, "one timer of the key at a time")
		ids = append(ids, leases[0].ID)
	}
	return ids
}

// stepOf takes one batch of a physical topic and delivers it, and returns what the batch had.
func (t *transport) stepOf(tb testing.TB, from string) (took taking, c content) {
	tb.Helper()
	took, err := t.take(tb.Context(), from)
	require.NoError(tb, err)
	if took.token == "" {
		return took, c
	}
	c, err = readBatch(took.batch)
	require.NoError(tb, err)
	require.NoError(tb, t.deliver(tb.Context(), from, took.token, took.batch))
	return took, c
}

// few lets a step take few timers, so that few have to be made.
func (f *fixture) few() { f.bounds.timers = 3 }

// TestKeyMovesInSeveralSteps has a key with more timers, or more bytes, than a step takes.
// Between two steps neither side starts a timer of it, and then they are in their order.
func TestKeyMovesInSeveralSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ timers, bytes, steps int }{
		"many timers": {2*movePage + 50, 10, 3}, "many bytes": {35, 100 << 10, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			all := ofKey("k", c.timers)
			for i := range all {
				all[i].Payload = bytes.Repeat([]byte("x"), c.bytes)
			}
			f.schedule(t, all...)
			l, pollers := f.startMoving(t, 2), f.serial()
			to, process := l.Shard(f.topic, "", "k"), f.toShards(f.topic, l)
			for steps := 1; ; steps++ {
				took, err := process.take(t.Context(), f.topic)
				require.NoError(t, err)
				batch, err := readBatch(took.batch)
				require.NoError(t, err)
				require.LessOrEqual(t, len(batch.items), movePage)
				require.LessOrEqual(t, len(batch.items)*c.bytes, moveBytes)
				require.Empty(t, pollers.one(t, f.topic))
				require.NoError(t, process.deliver(t.Context(), f.topic, took.token, took.batch))
				if !batch.more {
					require.Equal(t, c.steps, steps)
					break
				}
				require.Empty(t, pollers.one(t, f.topic))
				require.Empty(t, pollers.one(t, to))
			}
			require.Equal(t, idsOf(all), pollers.all(t, to))
			used, err := f.used(t.Context(), f.topic)
			require.NoError(t, err)
			require.False(t, used)
		})
	}
}

// TestTimerOfKeyThatMovesIsWrittenWhereItIs schedules timers of a key of which a part has
// left: those that are there stay until they are written, and new ones follow the part.
func TestTimerOfKeyThatMovesIsWrittenWhereItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.few()
	all := ofKey("k", 8)
	f.schedule(t, all...)
	l := f.startMoving(t, 2)
	to, process := l.Shard(f.topic, "", "k"), f.toShards(f.topic, l)
	_, batch := process.stepOf(t, f.topic)
	require.True(t, batch.more)

	f.schedule(t, timers.Entry{ID: "k0001", Key: "k", At: all[7].At.Add(time.Second)})
	f.schedule(t, timers.Entry{ID: "k0005", Key: "k", At: all[0].At.Add(-time.Second)})
	f.schedule(t, timers.Entry{ID: "new", Key: "k", At: all[3].At.Add(-time.Millisecond)})
	require.Equal(t, []string{"k0003", "k0004", "k0005", "k0006", "k0007"}, f.in(t, []string{f.topic}))
	require.Equal(t, []string{"k0000", "k0001", "k0002", "new"}, f.in(t, []string{to}))
	f.moveAll(t, l)
	require.Equal(t, []string{"k0005", "k0000", "k0002", "new", "k0003", "k0004", "k0006", "k0007", "k0001"}, f.serial().all(t, to))
}

// TestKeyOpensWhenRestOfItIsGone removes the timers of a key of which a part has left.
func TestKeyOpensWhenRestOfItIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.few()
	all := ofKey("k", 8)
	f.schedule(t, all...)
	l := f.startMoving(t, 2)
	to, process := l.Shard(f.topic, "", "k"), f.toShards(f.topic, l)
	process.stepOf(t, f.topic)
	_, err := f.Cancel(t.Context(), f.topic, idsOf(all[3:])...)
	require.NoError(t, err)
	used, err := f.used(t.Context(), f.topic)
	require.NoError(t, err)
	require.True(t, used, "the change does not end before the key is open")
	require.Empty(t, f.serial().one(t, to))
	_, batch := process.stepOf(t, f.topic)
	require.Equal(t, content{kind: ofPart, part: "k"}, batch)
	require.Equal(t, idsOf(all[:3]), f.serial().all(t, to))
	used, err = f.used(t.Context(), f.topic)
	require.NoError(t, err)
	require.False(t, used)
}

// TestNodesFinishKeyThatMoves ends the process that moves a key between two steps, and has
// a timer of it that waits for its retry: it goes on.
func TestNodesFinishKeyThatMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f := newFixture(t, rdb, wakebelltype.Keys{}, 1)
		f.few()
		all := ofKey("k", 8)
		f.schedule(t, all...)
		pollers := f.serial()
		first := pollers.one(t, f.topic)[0]
		nack := storetest.Verdict(exchange.Nack, first)
		nack.Delay = 10 * time.Second
		pollers.streams[f.topic].Settle(t, nack)
		l := f.startMoving(t, 2)
		to := l.Shard(f.topic, "", "k")
		f.toShards(f.topic, l).stepOf(t, f.topic)

		<-time.After(11 * time.Second)
		require.Empty(t, pollers.one(t, f.topic))
		leases := pollers.one(t, to)
		require.Len(t, leases, 1)
		require.Equal(t, first.ID, leases[0].ID)
		require.Empty(t, pollers.one(t, to, leases...), "others of the key follow")
		<-time.After(2 * time.Minute)
		pollers.sweep(t, to)
		require.Empty(t, pollers.one(t, to), "a sweep opens no key whose timers move")

		moves, err := f.DeliverAbandoned(t.Context(), f.topic)
		require.NoError(t, err)
		require.True(t, moves)
		require.Empty(t, f.in(t, []string{f.topic}))
		require.Equal(t, idsOf(all[1:]), pollers.all(t, to))
	})
}

// TestKeyOfMoveThatStoppedOpens ends the process of a move to another Redis between two
// steps of a key. Both sides open the key a minute later, or when the move is aborted.
func TestKeyOfMoveThatStoppedOpens(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"continued", "aborted", "forgotten"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rdb, _ := redistest.Embedded(t)
				other, _ := redistest.Embedded(t)
				from, to := pair(t, rdb, other, 1, 1)
				from.few()
				all := ofKey("k", 8)
				from.schedule(t, all...)
				m, err := from.mover(t.Context(), from.topic, to.Store, to.topic, wakebelltype.MoveOptions{})
				require.NoError(t, err)
				m.stepOf(t, from.topic)
				require.Empty(t, from.serial().one(t, from.topic))
				require.Empty(t, to.serial().one(t, to.topic))
				switch end {
				case "continued":
					from.moved(t, to, wakebelltype.MoveOptions{})
					require.Equal(t, idsOf(all), to.serial().all(t, to.topic))
				case "aborted":
					back, err := from.AbortMove(t.Context(), from.topic)
					require.NoError(t, err)
					require.Zero(t, back)
					require.Equal(t, idsOf(all[3:]), from.serial().all(t, from.topic))
				case "forgotten":
					<-time.After(time.Minute)
					require.Equal(t, idsOf(all[3:]), from.serial().all(t, from.topic))
					require.Equal(t, idsOf(all[:3]), to.serial().all(t, to.topic))
				}
			})
		})
	}
}

// TestStepPassesOverFewTimersThatStay has timers that handlers have, after one that moves.
func TestStepPassesOverFewTimersThatStay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.bounds.timers = 5
	const steps = 4
	stay := make([]timers.Entry, steps*movePages*f.bounds.timers)
	for i := range stay {
		stay[i] = timers.Entry{ID: fmt.Sprint("stays", i), Key: fmt.Sprint("k", i%10)}
	}
	f.schedule(t, stay...)
	f.claim(t)
	f.schedule(t, timers.Entry{ID: "moves", At: time.Now().Add(20 * time.Second)})
	l := f.startMoving(t, 2)
	made := 0
	for moved := int64(0); moved == 0; made++ {
		var ended bool
		var err error
		moved, ended, err = f.move(t.Context(), f.topic, l)
		require.NoError(t, err)
		require.False(t, ended, "it has not looked at all of them")
	}
	require.GreaterOrEqual(t, made, steps)
	require.Equal(t, []string{"moves"}, f.in(t, l.Names(f.topic)))
}

// TestCountsMoveInPages has more counts than a step takes.
func TestCountsMoveInPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	k := f.timers.Keys().Of(f.topic)
	const counts = 10 * movePage
	for i := range counts {
		require.NoError(t, f.timers.RDB.HSet(t.Context(), k.Counts, fmt.Sprint("count ", i), 1).Err())
	}
	l := f.startMoving(t, 2)
	process := f.toShards(f.topic, l)
	taken, texts, err := process.runTake(t.Context(), f.topic, 4, takeCountsScript, []string{k.Counts, k.Moving(), k.Taken()}, ofCounts, "0", movePage)
	require.NoError(t, err)
	require.Positive(t, taken)
	require.Less(t, taken, int64(2*movePage))
	require.NoError(t, process.deliver(t.Context(), f.topic, texts[2], texts[3]))
	require.NoError(t, process.moveCounts(t.Context(), f.topic))
	require.Zero(t, f.timers.RDB.Exists(t.Context(), k.Counts).Val())
	sum := int64(0)
	for _, name := range l.Names(f.topic) {
		sum += f.timers.RDB.HLen(t.Context(), f.timers.Keys().Of(name).Counts).Val()
	}
	require.EqualValues(t, counts, sum)
}

// TestLatenessesMoveAndAddUp has latenesses of the same minute in both topics that meet.
func TestLatenessesMoveAndAddUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	ctx, keys := t.Context(), f.timers.Keys()
	f.schedule(t, timers.Entry{ID: "a"}) // a topic that is used
	count := func(name string, call uint64, l wakebelltype.Latenesses) {
		require.NoError(t, f.timers.WriteCounts(ctx, name, "me", call, wakebelltype.ThroughputCounts{Started: 1, Latenesses: l}))
	}
	count(f.topic, 1, wakebelltype.Latenesses{2, 25: 7})
	l := f.startMoving(t, 2)
	for i, name := range l.Names(f.topic) {
		count(name, uint64(2+i), wakebelltype.Latenesses{1, 3: 1})
	}
	require.NoError(t, f.toShards(f.topic, l).moveCounts(ctx, f.topic))
	require.Zero(t, f.timers.RDB.Exists(ctx, keys.Of(f.topic).Counts).Val())
	var sum wakebelltype.ThroughputCounts
	found, err := f.Throughput(ctx, f.topic, time.Hour)
	require.NoError(t, err)
	for _, p := range found.Points {
		sum.Add(p)
	}
	require.Equal(t, wakebelltype.Latenesses{4, 3: 2, 25: 7}, sum.Latenesses)
	require.EqualValues(t, 3, sum.Started)
}
