package shards

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// moved moves the topic of a fixture to the same topic of another, to the end.
func (f *fixture) moved(t testing.TB, to *fixture, o wakebelltype.MoveOptions) (last MoveProgress) {
	t.Helper()
	for p, err := range f.Move(t.Context(), f.topic, to.Store, to.topic, o) {
		require.NoError(t, err)
		last = p
	}
	require.True(t, last.Done)
	require.Zero(t, last.Left)
	return last
}

// pair returns a fixture, and one with the same topic on another Redis.
func pair(t testing.TB, from, to redis.UniversalClient, shards, there int) (source, target *fixture) {
	t.Helper()
	source = newFixture(t, from, wakebelltype.Keys{}, shards)
	target = newFixture(t, to, wakebelltype.Keys{}, 1)
	target.topic = source.topic
	if there > 1 {
		_, err := target.Divide(t.Context(), target.topic, there)
		require.NoError(t, err)
	}
	return source, target
}

func TestTopicMovesWithEverything(t *testing.T) {
	t.Parallel()
	second := redistest.Start(t)
	masters := redistest.Cluster(t)
	for _, c := range []struct {
		shards, there, want int
		cluster             bool
	}{{shards: 1, want: 1}, {shards: 4, want: 4}, {shards: 1, there: 3, want: 3}, {shards: 1, want: 1, cluster: true}, {shards: 3, there: 4, want: 4, cluster: true}} {
		t.Run(fmt.Sprintf("%d to %d, cluster %v", c.shards, c.want, c.cluster), func(t *testing.T) {
			t.Parallel()
			var other redis.UniversalClient = second.Client(t)
			if c.cluster {
				other = masters.Client(t)
			}
			from, to := pair(t, redistest.Shared(t), other, c.shards, c.there)
			testMoveAway(t, from, to, c.want)
			to.moved(t, from, wakebelltype.MoveOptions{All: true}) // and from a Cluster
			list, _, err := from.List(t.Context(), from.topic, timers.Filter{Limit: 1000})
			require.NoError(t, err)
			require.Len(t, list, 704)
		})
	}
}

func testMoveAway(t *testing.T, from, to *fixture, shards int) {
	all := numbered(700)
	for i := range all {
		if i%3 == 0 {
			all[i].Key = fmt.Sprintf("customer %d", i%60)
		}
	}
	from.schedule(t, all...)
	from.schedule(t, timers.Entry{ID: "retried"}, timers.Entry{ID: "dead"}, timers.Entry{ID: "once", Once: time.Hour})
	streams, leases := from.claim(t)
	for i := range streams {
		for _, l := range leases[i] {
			verdict := map[string]exchange.Verdict{"retried": exchange.Nack, "dead": exchange.DeadLetter, "once": exchange.Ack}[l.ID]
			settle := storetest.Verdict(verdict, l)
			settle.Delay, settle.Reason = time.Hour, "broken"
			streams[i].Settle(t, settle)
		}
	}
	_, err := from.Pause(t.Context(), from.topic, "anna", "it moves")
	require.NoError(t, err)
	before := map[string]timers.Timer{}
	list, _, err := from.List(t.Context(), from.topic, timers.Filter{Limit: 1000})
	require.NoError(t, err)
	for _, timer := range list {
		timer.Cursor = ""
		before[timer.ID] = timer
	}
	require.Len(t, before, 701)
	counted, err := from.Throughput(t.Context(), from.topic, time.Hour)
	require.NoError(t, err)
	from.schedule(t, timers.Entry{ID: "leased", Key: "held"}, timers.Entry{ID: "behind it", Key: "held"})
	streams, leases = from.claim(t)
	from.schedule(t, timers.Entry{ID: "soon", In: 2 * time.Second})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last MoveProgress
	for p, err := range from.Move(ctx, from.topic, to.Store, to.topic, wakebelltype.MoveOptions{}) {
		if last = p; err != nil {
			require.ErrorIs(t, err, context.Canceled)
		} else if p.Left == 3 { // these are not moved
			cancel()
		}
	}
	require.False(t, last.Done)
	require.Equal(t, []string{"behind it", "leased", "soon"}, from.in(t, from.names(t)))
	after, _, err := to.List(t.Context(), to.topic, timers.Filter{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, after, 701)
	for _, timer := range after {
		timer.Cursor = ""
		require.Equal(t, before[timer.ID], timer)
	}
	l, err := to.Layout(t.Context(), to.topic)
	require.NoError(t, err)
	require.Equal(t, shards, l.Count())

	for i := range streams {
		for _, lease := range leases[i] {
			verdict := map[string]exchange.Verdict{"leased": exchange.Ack, "behind it": exchange.Release}[lease.ID]
			streams[i].Settle(t, storetest.Verdict(verdict, lease))
		}
	}
	from.moved(t, to, wakebelltype.MoveOptions{All: true})
	require.Empty(t, from.in(t, from.names(t)))
	to.schedule(t, timers.Entry{ID: "x", At: hour}) // 704 with "behind it" and "soon"
	dead, err := to.LastDead(t.Context(), to.topic, 10)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	done := to.schedule(t, timers.Entry{ID: "once", Once: time.Hour})
	require.Equal(t, wakebelltype.OutcomeAlreadyDone, done[0].Outcome)
	c, err := to.Control(t.Context(), to.topic)
	require.NoError(t, err)
	require.Equal(t, "it moves", c.Reason)
	there, err := to.Throughput(t.Context(), to.topic, time.Hour)
	require.NoError(t, err)
	require.Equal(t, scheduled(counted)+4, scheduled(there))
	for _, name := range from.names(t) {
		k := from.timers.Keys().Of(name)
		left, err := from.timers.RDB.Keys(t.Context(), k.Stream("*", 0)[:len(k.Stream("", 0))-3]+"*").Result()
		if _, clustered := from.timers.RDB.(*redis.ClusterClient); !clustered {
			require.NoError(t, err)
			require.False(t, slices.ContainsFunc(left, func(key string) bool { return key == k.Leaving() || key == k.Left() }), "%v", left)
		}
	}
}

// TestMoveIsContinuedWithItsTarget ends a process after each step of a batch.
func TestMoveIsContinuedWithItsTarget(t *testing.T) {
	t.Parallel()
	second, third := redistest.Start(t), redistest.Start(t)
	for _, arrives := range []bool{false, true} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("arrived %v, target lost %v", arrives, lost), func(t *testing.T) {
				t.Parallel()
				from, to := pair(t, redistest.Shared(t), second.Client(t), 2, 3)
				_, other := pair(t, redistest.Shared(t), third.Client(t), 1, 0)
				other.topic = from.topic
				from.schedule(t, numbered(50)...)
				m, err := from.mover(t.Context(), from.topic, to.Store, to.topic, wakebelltype.MoveOptions{})
				require.NoError(t, err)
				took, err := m.take(t.Context(), m.names[0])
				require.NoError(t, err)
				require.Positive(t, took.timers)
				if arrives { // and is not dropped
					batch, err := readBatch(took.batch)
					require.NoError(t, err)
					parts, _ := to.spread(to.topic, m.layout, batch)
					for name, part := range parts {
						_, err := m.arrive(t.Context(), batch, name, took.token+" "+m.names[0], part)
						require.NoError(t, err)
					}
				}
				_, err = from.Dump(t.Context(), from.topic)
				require.ErrorContains(t, err, "timers are on their way to another Redis")
				for _, err := range from.Move(t.Context(), from.topic, other.Store, other.topic, wakebelltype.MoveOptions{}) {
					require.ErrorContains(t, err, "the target does not know the move")
				}
				if lost {
					back, err := from.AbortMove(t.Context(), from.topic)
					require.NoError(t, err)
					require.Equal(t, took.timers, back)
					require.Len(t, from.in(t, from.names(t)), 50)
					from.moved(t, other, wakebelltype.MoveOptions{})
					require.Len(t, other.in(t, other.names(t)), 50)
					return
				}
				n := int64(0)
				if arrives { // those that arrived are handled before the move goes on
					n, err = to.CancelAll(t.Context(), to.topic)
					require.NoError(t, err)
					require.Equal(t, took.timers, n)
				}
				from.moved(t, to, wakebelltype.MoveOptions{})
				require.Len(t, to.in(t, to.names(t)), 50-int(n), "a batch arrives once")
				require.Empty(t, from.in(t, from.names(t)))
			})
		}
	}
}

// TestMovesThatAreRefused begins moves that cannot be made.
func TestMovesThatAreRefused(t *testing.T) {
	t.Parallel()
	second := redistest.Start(t)
	refused := func(from, to *fixture, want string) {
		t.Helper()
		n := 0
		for p, err := range from.Move(t.Context(), from.topic, to.Store, to.topic, wakebelltype.MoveOptions{}) {
			n++
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
			require.ErrorContains(t, err, want)
			require.Zero(t, p.Moved)
		}
		require.Equal(t, 1, n)
	}
	from, to := pair(t, redistest.Shared(t), second.Client(t), 1, 0)
	from.schedule(t, numbered(5)...)
	refused(from, from, "the target of topic "+fmt.Sprintf("%q", from.topic)+" is the source itself")
	require.Len(t, from.in(t, from.names(t)), 5)
	other := *to
	other.topic = from.topic + "~2~0"
	refused(from, &other, "has the form of a shard")

	_, err := to.mover(t.Context(), to.topic, from.Store, from.topic+"-other", wakebelltype.MoveOptions{})
	require.NoError(t, err)
	refused(from, to, "is being moved to another Redis itself")
	_, err = to.AbortMove(t.Context(), to.topic)
	require.NoError(t, err)

	from.startMoving(t, 2)
	refused(from, to, "source: invalid argument: shards: ")
	refused(to, from, "target: invalid argument: shards: ")
}

// TestMoveStopsForResharding announces another number of shards while timers move.
func TestMoveStopsForResharding(t *testing.T) {
	t.Parallel()
	second := redistest.Start(t)
	from, to := pair(t, redistest.Shared(t), second.Client(t), 1, 0)
	from.schedule(t, numbered(5)...)
	from.claim(t)
	from.schedule(t, timers.Entry{ID: "held"})
	from.claim(t) // so that the move does not end
	announced := false
	var failed error
	for _, err := range from.Move(t.Context(), from.topic, to.Store, to.topic, wakebelltype.MoveOptions{}) {
		if failed = err; !announced {
			announced = true
			_, err := to.layouts.change(t.Context(), to.topic, func(l sharding.Layout) (sharding.Layout, error) {
				l.Shards = l.Count()
				return l.Announced(2, time.Now()), nil
			})
			require.NoError(t, err)
		}
	}
	require.ErrorContains(t, failed, "target: ")
	require.ErrorContains(t, failed, "its number changes")
}

// TestMoveBeginsAfterReshardingThatDied has shards that do not know the last layout: the
// process that has changed it died before it told them.
func TestMoveBeginsAfterReshardingThatDied(t *testing.T) {
	t.Parallel()
	from, to := pair(t, redistest.Shared(t), redistest.Start(t).Client(t), 2, 1)
	from.schedule(t, numbered(3)...)
	from.reshardAll(t, 3)
	l, text, err := from.layouts.Stored(t.Context(), from.topic)
	require.NoError(t, err)
	l.ID, l.Number = "later", l.Number+1
	stored, err := from.layouts.store(t.Context(), from.topic, text, l)
	require.NoError(t, err)
	require.True(t, stored)
	require.True(t, from.moved(t, to, wakebelltype.MoveOptions{All: true}).Done)
}

// TestMoveKnowsLayoutsThatMapsLack moves a topic, with a mark of Once, by a process that has
// read the maps before another one has divided both topics.
func TestMoveKnowsLayoutsThatMapsLack(t *testing.T) {
	t.Parallel()
	from, to := pair(t, redistest.Shared(t), redistest.Start(t).Client(t), 1, 1)
	source, target := from.stopped(t), to.stopped(t)
	for _, of := range []*fixture{from, to} {
		_, err := of.Divide(t.Context(), of.topic, 4)
		require.NoError(t, err)
	}
	from.schedule(t, timers.Entry{ID: "once", Once: time.Hour})
	stale := &fixture{Store: source(), topic: from.topic}
	stale.moved(t, &fixture{Store: target(), topic: to.topic}, wakebelltype.MoveOptions{All: true})
	streams, leases := to.claim(t)
	for i := range streams {
		for _, l := range leases[i] {
			streams[i].Settle(t, storetest.Verdict(exchange.Ack, l))
		}
	}
	again := to.schedule(t, timers.Entry{ID: "once", Once: time.Hour})
	require.Equal(t, wakebelltype.OutcomeAlreadyDone, again[0].Outcome)
}

// TestMoveLeavesNoNoteInFormerShards checks a move that begins while nodes still handle the
// shards before a resharding, and that ends when they no longer do.
func TestMoveLeavesNoNoteInFormerShards(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, [2]*redis.Client{bubbleClient(t, server, 0), bubbleClient(t, server, 1)}, false)
		from, to := w.sites[0].clients[0], w.sites[1].clients[0]
		reshard := func(n int) {
			for _, err := range from.Reshard(t.Context(), modelTopic, n) {
				require.NoError(t, err)
			}
		}
		_, err := from.Schedule(t.Context(), modelTopic, timers.Entry{ID: "a", In: 24 * time.Hour})
		require.NoError(t, err)
		reshard(2)
		require.True(t, w.beginMove())
		<-time.After(sharding.Linger + time.Minute)
		for _, err := range from.Move(t.Context(), modelTopic, to, modelTopic, wakebelltype.MoveOptions{All: true}) {
			require.NoError(t, err)
		}
		reshard(1)
	})
}

// TestWhatClientsScheduleMeanwhile moves a topic whose clients use the target, and then the
// source again.
func TestWhatClientsScheduleMeanwhile(t *testing.T) {
	t.Parallel()
	second := redistest.Start(t)
	from, to := pair(t, redistest.Shared(t), second.Client(t), 2, 2)
	from.schedule(t, numbered(20)...)
	to.schedule(t, timers.Entry{ID: "t003", Payload: []byte("of the target"), At: hour})
	from.moved(t, to, wakebelltype.MoveOptions{})
	timer, err := to.Get(t.Context(), to.topic, "t003")
	require.NoError(t, err)
	require.Equal(t, "of the target", string(timer.Payload))
	from.schedule(t, timers.Entry{ID: "late", At: hour})
	last := from.moved(t, to, wakebelltype.MoveOptions{})
	require.EqualValues(t, 1, last.Moved)
	require.Len(t, to.in(t, to.names(t)), 21)
}

// TestOneProcessEndsMoveWhileAnotherGoesOn checks that the other one takes nothing more:
// a later move could not know whether its batch has arrived.
func TestOneProcessEndsMoveWhileAnotherGoesOn(t *testing.T) {
	t.Parallel()
	second := redistest.Start(t)
	from, to := pair(t, redistest.Shared(t), second.Client(t), 2, 2)
	from.schedule(t, numbered(20)...)
	m, err := from.mover(t.Context(), from.topic, to.Store, to.topic, wakebelltype.MoveOptions{})
	require.NoError(t, err)
	from.moved(t, to, wakebelltype.MoveOptions{})
	from.schedule(t, timers.Entry{ID: "late", At: hour}, timers.Entry{ID: "dead", At: hour})
	var p MoveProgress
	_, err = m.next(t.Context(), &p)
	require.ErrorIs(t, err, errMoveEnded)
	for _, name := range m.names {
		left, err := m.pending(t.Context(), name)
		require.NoError(t, err)
		require.Empty(t, left)
		_, err = m.moveEntries(t.Context(), name, from.timers.Keys().Of(name).Dead, ofDead)
		require.ErrorIs(t, err, errMoveEnded)
		require.ErrorIs(t, m.moveCounts(t.Context(), name), errMoveEnded)
	}
	last := from.moved(t, to, wakebelltype.MoveOptions{})
	require.EqualValues(t, 2, last.Moved)
}

// TestClocksOfMoveAgree compares the clock of a Redis with one that is ahead.
func TestClocksOfMoveAgree(t *testing.T) {
	t.Parallel()
	from, _ := pair(t, redistest.Shared(t), redistest.Shared(t), 1, 0)
	rdb, server := redistest.Embedded(t)
	to := newFixture(t, rdb, wakebelltype.Keys{}, 1)
	server.SetTime(time.Now().Add(2 * time.Second))
	err := checkClocks(t.Context(), from.Store, to.Store)
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.ErrorContains(t, err, "at most 500ms")
	server.SetTime(time.Now().Add(-2 * time.Second))
	require.Error(t, checkClocks(t.Context(), from.Store, to.Store))
	require.NoError(t, checkClocks(t.Context(), from.Store, from.Store))
}
