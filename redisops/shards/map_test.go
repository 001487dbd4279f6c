package shards

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// counter counts the commands that name a key, and fails them while failing is set.
type counter struct {
	key     string
	sent    atomic.Int64
	failing atomic.Bool
	denying atomic.Bool // with the error of a user without rights
}

// noPerm is an error of Redis.
type noPerm string

func (e noPerm) Error() string { return string(e) }
func (noPerm) RedisError()     {}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 && args[1] == c.key {
			c.sent.Add(1)
			if c.failing.Load() {
				err := &net.OpError{Op: "read", Err: net.ErrClosed}
				cmd.SetErr(err)
				return err
			}
			if c.denying.Load() {
				err := noPerm("NOPERM No permissions to access a key")
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func TestMapIsReadAtMostOnceInTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		commands := &counter{key: "timers_shards"}
		rdb.AddHook(commands)
		s := newStore(t, rdb, wakebelltype.Keys{})
		call := func() {
			t.Helper()
			_, err := s.Stats(t.Context(), "orders")
			require.NoError(t, err)
		}
		for range 10 {
			call()
		}
		require.EqualValues(t, 1, commands.sent.Load())
		<-time.After(Fresh)
		call()
		require.EqualValues(t, 2, commands.sent.Load(), "a topic without shards costs a command in two seconds of use")
		<-time.After(time.Hour)
		require.EqualValues(t, 2, commands.sent.Load(), "and none while the store is not used")

		_, err := newStore(t, rdb, wakebelltype.Keys{}).Divide(t.Context(), "orders", 4)
		require.NoError(t, err)
		names, err := s.all(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, names, 5, "four shards, and the place before them")
	})
}

func TestMapStaysWhileRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		commands := &counter{key: "timers_shards"}
		rdb.AddHook(commands)
		s := newStore(t, rdb, wakebelltype.Keys{})
		commands.failing.Store(true)
		_, err := s.Stats(t.Context(), "orders")
		require.ErrorIs(t, err, exchange.ErrUnavailable, "nothing is known yet")

		commands.failing.Store(false)
		_, err = s.Divide(t.Context(), "orders", 4)
		require.NoError(t, err)
		commands.failing.Store(true)
		<-time.After(Fresh)
		sent := commands.sent.Load()
		for range 5 {
			names, err := s.all(t.Context(), "orders")
			require.NoError(t, err)
			require.Len(t, names, 5)
		}
		require.EqualValues(t, 1, commands.sent.Load()-sent, "Redis is not asked by each call")
	})
}

func TestUserWithoutRightToMapHasNoShards(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "old", "on", ">secret", "~timers_*:orders", "~timers_topics", "&*", "+@all").Err())
	rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "old", "secret" })
	var log strings.Builder
	of, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	of.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := New(of)
	for range 3 {
		_, err = s.Schedule(t.Context(), "orders", timers.Entry{ID: "a", Payload: []byte("x")})
		require.NoError(t, err)
	}
	require.Equal(t, 1, strings.Count(log.String(), "lacks the right to the key"))
	n, err := admin.ZCard(t.Context(), "timers_timeline:orders").Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// TestRefusedReadOfMapDoesNotHideShards takes the right to the map away for a while, as
// a change of the rights does, and the failover to a server that has not loaded them.
func TestRefusedReadOfMapDoesNotHideShards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		commands := &counter{key: "timers_shards"}
		rdb.AddHook(commands)
		admin := newStore(t, rdb, wakebelltype.Keys{})
		_, err := admin.Divide(t.Context(), "orders", 4)
		require.NoError(t, err)
		fresh := newStore(t, rdb, wakebelltype.Keys{}) // which has not read the map
		commands.denying.Store(true)
		entry := timers.Entry{ID: "a", Payload: []byte("x")}
		<-time.After(Fresh)
		_, err = admin.Schedule(t.Context(), "orders", entry)
		require.ErrorIs(t, err, wakebelltype.ErrDenied, "the topic was seen with shards")
		_, err = fresh.Stats(t.Context(), "orders")
		require.NoError(t, err, "a user without the right has no shards")

		commands.denying.Store(false)
		<-time.After(Fresh)
		for _, s := range []*Store{admin, fresh} {
			_, err = s.Schedule(t.Context(), "orders", entry)
			require.NoError(t, err)
			names, err := s.all(t.Context(), "orders")
			require.NoError(t, err)
			require.Len(t, names, 5)
		}
		require.Zero(t, rdb.Exists(t.Context(), "timers_timeline:orders").Val())
	})
}

func TestBrokenLayoutConcernsItsTopic(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	require.NoError(t, f.timers.RDB.HSet(t.Context(), f.layouts.key(), "", "7", "broken", "{", "fine", `{"shards":2}`).Err())
	s := f.other(t)
	_, err := s.Stats(t.Context(), "broken")
	require.ErrorContains(t, err, `topic "broken" in`)
	_, err = s.Stats(t.Context(), "fine")
	require.NoError(t, err)
	names, err := s.Physical(t.Context(), "fine", "other")
	require.NoError(t, err)
	require.Equal(t, []string{"fine~2~0", "fine~2~1", "other"}, names)
}

func TestTopicIsDividedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	_, err := f.Pause(t.Context(), f.topic, "operator", "later")
	require.NoError(t, err)
	_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxConcurrent: 3})
	require.NoError(t, err)
	stale := f.stopped(t)
	l, err := f.Divide(t.Context(), f.topic, 4)
	require.NoError(t, err)
	require.Equal(t, 4, l.Count())
	c, err := f.Control(t.Context(), f.topic)
	require.NoError(t, err)
	require.True(t, c.Paused, "settings stay")
	require.Equal(t, "later", c.Reason)
	require.Equal(t, 3, c.Settings.MaxConcurrent)
	_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxInFlight: 3})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid, "a shard has at least one")
	_, err = stale().Retune(t.Context(), f.topic, wakebelltype.Settings{MaxInFlight: 3})
	require.ErrorIs(t, err, wakebelltype.ErrInvalid, "also of a client that has read the map before")
	_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxInFlight: 4})
	require.NoError(t, err)

	again, err := f.other(t).Divide(t.Context(), f.topic, 8)
	require.NoError(t, err)
	require.Equal(t, l, again, "the stored number wins")
	for _, n := range []int{0, -1, sharding.MaxShards + 1} {
		_, err = f.Divide(t.Context(), f.topic, n)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	}
	_, err = f.Divide(t.Context(), strings.Repeat("x", wakebelltype.MaxName), 4)
	require.ErrorIs(t, err, wakebelltype.ErrInvalid)

	used := f.topic + "-used"
	_, err = f.Schedule(t.Context(), used, timers.Entry{ID: "a"})
	require.NoError(t, err)
	l, err = f.Divide(t.Context(), used, 4)
	require.NoError(t, err)
	require.Equal(t, 1, l.Count(), "a topic with timers stays as it is")
}

// TestTimersOfStaleClientAreFound writes where a client that has not read the map would.
func TestTimersOfStaleClientAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		s := newStore(t, rdb, wakebelltype.Keys{})
		_, err := s.Divide(t.Context(), "orders", 4)
		require.NoError(t, err)
		stale := func(id string) {
			t.Helper()
			_, err := s.timers.Schedule(t.Context(), "orders", timers.Entry{ID: id, Payload: []byte("x"), In: time.Hour})
			require.NoError(t, err)
		}
		settle := func() sharding.Layout {
			t.Helper()
			l, err := s.Settle(t.Context(), "orders")
			require.NoError(t, err)
			return l
		}
		stale("a")
		_, err = s.Get(t.Context(), "orders", "a")
		require.NoError(t, err)
		found, err := s.Cancel(t.Context(), "orders", "absent", "a")
		require.NoError(t, err)
		require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceAbsent, wakebelltype.PresencePending}, found)

		require.True(t, settle().Moving, "a client may still write there")
		stale("b")
		<-time.After(settleAfter)
		require.True(t, settle().Moving, "a timer is there")
		_, err = s.Cancel(t.Context(), "orders", "b")
		require.NoError(t, err)
		require.False(t, settle().Moving)
		names, err := s.Polled(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, names, 5, "the place before is still handled")
		stale("c")
		<-time.After(settleAfter)
		require.True(t, settle().Moving, "a timer has come since")
		_, err = s.Cancel(t.Context(), "orders", "c")
		require.NoError(t, err)
		<-time.After(settleAfter)
		require.False(t, settle().Moving)
		<-time.After(sharding.Linger)
		names, err = s.Polled(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, names, 4)
	})
}
