package shards

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// promises are what holds for a topic with any number of shards.
var promises = []struct {
	name string
	test func(t *testing.T, f *fixture)
}{
	{"results are in the order of the call", testResults},
	{"calls by id find the timer", testIDs},
	{"a timer with a key is found by its id", testKeyedIDs},
	{"a listing is in the order of instants", testList},
	{"dead letters are listed, redriven and deleted", testDead},
	{"history is listed in its order", testHistory},
	{"counts of shards are added", testCounts},
	{"settings apply to all shards", testControl},
	{"idempotent calls take effect once", testIdempotent},
	{"a topic is listed once and can be forgotten", testTopics},
	{"events of all shards are watched", testTail},
}

func TestTopicsWithAnyNumberOfShards(t *testing.T) {
	t.Parallel()
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			onEach(t, p.test)
		})
	}
}

func TestTopicsWithShardsOnCluster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t)
	for _, shards := range []int{1, 4} {
		for _, p := range promises {
			t.Run(fmt.Sprintf("%s, %d shards", p.name, shards), func(t *testing.T) {
				t.Parallel()
				p.test(t, newFixture(t, masters.Client(t), wakebelltype.Keys{HashTag: true}, shards))
			})
		}
	}
}

func testResults(t *testing.T, f *fixture) {
	b := timers.NewBatch("", 0)
	other := f.topic + "-other"
	var want []string
	for i := range 40 {
		e := timers.Entry{ID: fmt.Sprintf("t%d", i), Payload: []byte{byte(i)}, At: hour}
		topic := f.topic
		if i%3 == 0 {
			topic = other
		}
		require.NoError(t, b.Add(topic, &e))
		want = append(want, e.ID)
	}
	done, err := f.Write(t.Context(), nil, b)
	require.NoError(t, err)
	var got []string
	for _, d := range done {
		got = append(got, d.ID)
		require.Equal(t, wakebelltype.OutcomeCreated, d.Outcome)
	}
	require.Equal(t, want, got)

	used := 0
	for _, name := range sharding.Names(f.topic, f.shards) {
		st, err := f.timers.Stats(t.Context(), name)
		require.NoError(t, err)
		if st.Total > 0 {
			used++
		}
	}
	require.Equal(t, f.shards, used, "26 timers use all shards")

	_, err = f.Schedule(t.Context(), f.topic, timers.Entry{ID: "a"}, timers.Entry{ID: "a"})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	_, err = f.Schedule(t.Context(), "orders~4~1", timers.Entry{ID: "a"})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	require.ErrorContains(t, err, `topic: "orders~4~1" has the form of a shard`)
}

func testIDs(t *testing.T, f *fixture) {
	f.schedule(t, numbered(20)...)
	for _, e := range numbered(20) {
		timer, err := f.Get(t.Context(), f.topic, e.ID)
		require.NoError(t, err)
		require.Equal(t, "payload of "+e.ID, string(timer.Payload))
	}
	done := f.schedule(t, timers.Entry{ID: "t005", At: hour, Policy: wakebelltype.PolicyKeep})
	require.Equal(t, wakebelltype.OutcomeKeptPending, done[0].Outcome)

	moved, err := f.Reschedule(t.Context(), f.topic, "t006", hour.Add(2*time.Hour), 0)
	require.NoError(t, err)
	require.Equal(t, wakebelltype.OutcomeMoved, moved.Outcome)
	presence, err := f.RunNow(t.Context(), f.topic, "t007")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.PresencePending, presence)

	for _, err := range []error{
		second(f.Get(t.Context(), f.topic, "absent")),
		second(f.RunNow(t.Context(), f.topic, "absent")),
		second(f.Reschedule(t.Context(), f.topic, "absent", hour, 0)),
	} {
		require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	}
	found, err := f.Cancel(t.Context(), f.topic, "t001", "absent", "t002", "t003", "t004")
	require.NoError(t, err)
	pending := wakebelltype.PresencePending
	require.Equal(t, []wakebelltype.Presence{pending, wakebelltype.PresenceAbsent, pending, pending, pending}, found)
	_, err = f.Get(t.Context(), f.topic, "t002")
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	n, err := f.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 16, n)
}

func second[T any](_ T, err error) error { return err }

// testKeyedIDs uses ids that are not in the shard of their key, and a client that read the
// map before a timer had a key.
func testKeyedIDs(t *testing.T, f *fixture) {
	reader := f.other(t)
	_, err := reader.Get(t.Context(), f.topic, "none")
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprintf("t%d", i))
		f.schedule(t, timers.Entry{ID: ids[i], Key: "customer", At: hour})
	}
	home := sharding.Name(f.topic, f.shards, sharding.ShardOf("", "customer", f.shards))
	st, err := f.timers.Stats(t.Context(), home)
	require.NoError(t, err)
	require.EqualValues(t, 12, st.Total, "timers of a key share a shard")

	for _, id := range ids {
		timer, err := reader.Get(t.Context(), f.topic, id)
		require.NoError(t, err)
		require.Equal(t, "customer", timer.Key)
	}
	_, err = reader.RunNow(t.Context(), f.topic, ids[0])
	require.NoError(t, err)
	found, err := f.other(t).Cancel(t.Context(), f.topic, append(ids, "absent")...)
	require.NoError(t, err)
	require.NotContains(t, found[:12], wakebelltype.PresenceAbsent)
	require.Equal(t, wakebelltype.PresenceAbsent, found[12])
}

func testControl(t *testing.T, f *fixture) {
	c, err := f.Pause(t.Context(), f.topic, "operator", "test")
	require.NoError(t, err)
	require.True(t, c.Paused)
	_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxConcurrent: 7})
	require.NoError(t, err)
	for _, name := range sharding.Names(f.topic, f.shards) {
		c, err := f.timers.Control(t.Context(), name)
		require.NoError(t, err)
		require.True(t, c.Paused, name)
		require.Equal(t, 7, c.Settings.MaxConcurrent, name)
	}
	st, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.True(t, st.Paused)
	_, err = f.Resume(t.Context(), f.topic)
	require.NoError(t, err)
	c, err = f.Control(t.Context(), f.topic)
	require.NoError(t, err)
	require.False(t, c.Paused)
	require.Equal(t, 7, c.Settings.MaxConcurrent)
}

func testIdempotent(t *testing.T, f *fixture) {
	write := func() []wakebelltype.Scheduled {
		b := timers.NewBatch("", 0)
		for _, e := range numbered(20) {
			e.Payload = []byte("x")
			require.NoError(t, b.Add(f.topic, &e))
		}
		done, err := f.Write(t.Context(), timers.NewKey("owner", "write", []byte("same")), b)
		require.NoError(t, err)
		return done
	}
	first := write()
	ids := []string{"t003", "absent", "t004", "t005"}
	cancel := func() []wakebelltype.Presence {
		found, err := f.CancelKeyed(t.Context(), f.topic, timers.NewKey("owner", "cancel", []byte("same")), ids...)
		require.NoError(t, err)
		return found
	}
	cancelled := cancel()
	require.Equal(t, first, write(), "the first answer again")
	st, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 17, st.Total, "the cancelled timers are not stored again")
	require.Equal(t, cancelled, cancel())

	_, err = f.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)
	l, err := f.Divide(t.Context(), f.topic, 8)
	require.NoError(t, err)
	require.Equal(t, 8, l.Count())
	require.Equal(t, first, write(), "the first answer is found where the topic was before")
	require.Equal(t, cancelled, cancel())
	ids = append(ids, "other")
	_, err = f.CancelKeyed(t.Context(), f.topic, timers.NewKey("owner", "cancel", []byte("other")), ids...)
	require.ErrorIs(t, err, wakebelltype.ErrKeyUsed)
	st, err = f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.Zero(t, st.Total)
}

func testTopics(t *testing.T, f *fixture) {
	f.schedule(t, numbered(30)...)
	removed, err := f.RemoveTopic(t.Context(), f.topic)
	require.NoError(t, err)
	require.NotEmpty(t, removed.Use)
	f.schedule(t, numbered(30)...)
	found := map[string]bool{}
	for _, list := range []func(context.Context, uint64) ([]string, uint64, error){f.Topics, f.DiscoverTopics} {
		clear(found)
		for cursor := uint64(0); ; {
			names, next, err := list(t.Context(), cursor)
			require.NoError(t, err)
			for _, name := range names {
				found[name] = true
				require.False(t, sharding.Reserved(name))
			}
			if cursor = next; next == 0 {
				break
			}
		}
		require.True(t, found[f.topic])
	}
	require.NoError(t, f.Forget(t.Context(), f.topic))
	st, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.Zero(t, st.Total)
	removed, err = f.RemoveTopic(t.Context(), f.topic)
	require.NoError(t, err)
	require.False(t, removed.Existed)
}

func testTail(t *testing.T, f *fixture) {
	names := sharding.Names(f.topic, f.shards)
	missing := map[string]bool{}
	for _, name := range names {
		missing["of "+name] = true
	}
	attached := make(chan struct{}, 1)
	published := make(chan error, 1)
	go func() { // not in the callback, which keeps the subscription from being read
		<-attached
		_, err := each(t.Context(), names, func(ctx context.Context, name string) (int, error) {
			return 0, f.timers.PublishEvents(ctx, name, []wakebelltype.Event{{Kind: wakebelltype.EventAcked, ID: "of " + name, Node: "n"}})
		})
		published <- err
	}()
	err := f.Tail(t.Context(), f.topic, func(e wakebelltype.Event) bool {
		require.Equal(t, f.topic, e.Topic)
		if e.Kind == wakebelltype.EventAttached {
			attached <- struct{}{}
		}
		delete(missing, e.ID)
		return len(missing) > 0
	})
	require.NoError(t, err)
	require.NoError(t, <-published)
}
