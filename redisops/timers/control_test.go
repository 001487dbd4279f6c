package timers

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

func (f *fixture) control(t *testing.T) wakebelltype.Control {
	t.Helper()
	c, err := f.Control(t.Context(), f.topic)
	require.NoError(t, err)
	return c
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		require.Zero(t, f.control(t))
		hints := f.listen(t)
		paused, err := f.Pause(t.Context(), f.topic, "ops@example", "bank is down: call 42")
		require.NoError(t, err)
		require.True(t, paused.Paused)
		require.WithinDuration(t, f.now(t), paused.PausedAt, time.Minute)
		require.Equal(t, "ops@example", paused.PausedBy)
		require.Equal(t, paused, f.control(t))
		h := next(t, hints)
		require.Equal(t, exchange.Hint{Source: f.topic, Kind: exchange.HintControl, Sent: h.Sent}, h)
		require.WithinDuration(t, f.now(t), h.Sent, time.Minute)

		again, err := f.Pause(t.Context(), f.topic, "another operator", "")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Control{Paused: true, PausedAt: paused.PausedAt, PausedBy: "another operator"}, again, "the time of the first pause stays")
		next(t, hints)
		require.True(t, f.rdb.SIsMember(t.Context(), f.keys.Topics, f.topic).Val())

		resumed, err := f.Resume(t.Context(), f.topic)
		require.NoError(t, err)
		require.Zero(t, resumed)
		require.Equal(t, exchange.HintControl, next(t, hints).Kind)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Control).Val(), "nothing is left")
		resumed, err = f.Resume(t.Context(), f.topic)
		require.NoError(t, err)
		require.Zero(t, resumed)
	})
}

func TestRetune(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		all := wakebelltype.Settings{
			MaxConcurrent: 20, LeaseTTL: 90 * time.Second, MaxLeaseAge: time.Hour, PollingInterval: 1500 * time.Microsecond,
			MaxPollingInterval: time.Minute, RetryInitial: time.Second, RetryLimit: 36 * time.Hour, MaxAttempts: 3,
		}
		_, err := f.Pause(t.Context(), f.topic, "", "why")
		require.NoError(t, err)
		got, err := f.Retune(t.Context(), f.topic, all)
		require.NoError(t, err)
		require.Equal(t, all, got.Settings)
		require.Equal(t, "why", got.Reason, "a pause stays")
		require.Equal(t, "1m30s", f.rdb.HGet(t.Context(), f.key.Control, "lease_ttl").Val(), "stored in a readable form")

		got, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxLeaseAge: -time.Hour})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Settings{MaxLeaseAge: -1}, got.Settings, "off differs from unset")
		require.Equal(t, "0s", f.rdb.HGet(t.Context(), f.key.Control, "max_lease_age").Val())
		got, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxAttempts: 5})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Settings{MaxAttempts: 5}, got.Settings, "replaces all overrides")
		_, err = f.Resume(t.Context(), f.topic)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Control{Settings: wakebelltype.Settings{MaxAttempts: 5}}, f.control(t))
		got, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{})
		require.NoError(t, err)
		require.Zero(t, got)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Control).Val())
	})
}

func TestControlIsChecked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for want, set := range map[string]wakebelltype.Settings{
			"max_concurrent: 10001, want 1 to 10000":  {MaxConcurrent: 10_001},
			"lease_ttl: 1ms, want 100ms to 24h0m0s":   {LeaseTTL: time.Millisecond},
			"max_lease_age: 1ns":                      {MaxLeaseAge: 1},
			"polling_interval: 2h0m0s":                {PollingInterval: 2 * time.Hour},
			"max_polling_interval: 1ns":               {MaxPollingInterval: 1},
			"max_attempts: -1":                        {MaxAttempts: -1},
			"retry_limit: 1s is below retry_initial":  {RetryInitial: time.Minute, RetryLimit: time.Second},
			"retry_initial: 1000h0m0s, want 1ms to 7": {RetryInitial: 1000 * time.Hour},
		} {
			_, err := f.Retune(t.Context(), f.topic, set)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
			require.ErrorContains(t, err, want)
		}
		_, err := f.Pause(t.Context(), "", "", "")
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		_, err = f.Control(t.Context(), "")
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Control).Val())

		long, err := f.Pause(t.Context(), f.topic, "", strings.Repeat("é", 1000))
		require.NoError(t, err)
		require.Len(t, long.Reason, scripts.MaxReason)
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Control, "lease_ttl", "soon", "unknown", "x").Err())
		_, err = f.Control(t.Context(), f.topic)
		require.ErrorContains(t, err, `read "lease_ttl" of`)
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Control, "lease_ttl", "1ms").Err())
		_, err = f.Control(t.Context(), f.topic)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid, "out of bounds")

		require.NoError(t, f.rdb.Set(t.Context(), f.key.Control, "x", 0).Err())
		_, err = f.Control(t.Context(), f.topic)
		require.ErrorIs(t, err, wakebelltype.ErrWrongType)
		_, err = f.Resume(t.Context(), f.topic)
		require.ErrorIs(t, err, wakebelltype.ErrWrongType)
		require.ErrorContains(t, err, "resume")
	})
}

// TestPauseInTrouble checks that a topic can be paused when memory is full, and by
// a user without channels.
func TestPauseInTrouble(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "resetchannels", "+@all", "~timers_*").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	require.NoError(t, admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
	paused, err := f.Pause(t.Context(), f.topic, "ops", "")
	require.NoError(t, err)
	require.Equal(t, paused, f.control(t))
}

// A pause with an end is over at that instant for all readers, and the poller that reads it
// then removes it, which notifies the nodes of earlier versions.
func TestPauseEndsByItself(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		set := wakebelltype.Settings{MaxConcurrent: 3}
		_, err := f.Retune(ctx, f.topic, set)
		require.NoError(t, err)
		paused, err := f.PauseUntil(ctx, f.topic, wakebelltype.Pause{By: "ann", For: time.Hour})
		require.NoError(t, err)
		require.Equal(t, paused.PausedAt.Add(time.Hour), paused.PausedUntil)
		require.Equal(t, paused, f.control(t))
		stats, err := f.Stats(ctx, f.topic)
		require.NoError(t, err)
		require.Equal(t, paused.PausedUntil, stats.PausedUntil)
		read, left, mark, err := f.src.Control(ctx)
		require.NoError(t, err)
		require.Equal(t, paused, read)
		require.InDelta(t, time.Hour, left, float64(time.Minute))
		require.NotEqual(t, noMark, mark)
		tuned, err := f.Retune(ctx, f.topic, wakebelltype.Settings{MaxConcurrent: 4})
		require.NoError(t, err)
		require.Equal(t, paused.PausedUntil, tuned.PausedUntil, "the end stays")

		_, err = f.PauseUntil(ctx, f.topic, wakebelltype.Pause{Until: paused.PausedAt})
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		require.ErrorContains(t, err, "until: it has passed")
		for _, wrong := range []wakebelltype.Pause{{For: -1}, {For: 1, Until: paused.PausedUntil}, {Until: scripts.LastInstant.Add(time.Hour)}} {
			_, err = f.PauseUntil(ctx, f.topic, wrong)
			require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		}
		require.Equal(t, tuned, f.control(t), "nothing has changed")

		// A client of an earlier version replaces the mark with each change.
		ends := f.rdb.HGet(ctx, f.key.Control, "until").Val()
		require.NoError(t, f.rdb.HSet(ctx, f.key.Control, "mark", "another").Err())
		require.True(t, f.control(t).Paused)
		require.Zero(t, f.control(t).PausedUntil, "that client has said nothing of an end")
		require.NoError(t, f.rdb.HSet(ctx, f.key.Control, "until", strings.Fields(ends)[0]).Err())
		require.Zero(t, f.control(t).PausedUntil, "what is broken is no end")

		soon, err := f.PauseUntil(ctx, f.topic, wakebelltype.Pause{For: time.Microsecond})
		require.NoError(t, err)
		require.Equal(t, paused.PausedAt, soon.PausedAt, "it was paused all the time")
		require.Eventually(t, func() bool { return !f.control(t).Paused }, time.Minute, time.Millisecond)
		require.Equal(t, tuned.Settings, f.control(t).Settings)
		stats, err = f.Stats(ctx, f.topic)
		require.NoError(t, err)
		require.False(t, stats.Paused)
		require.Zero(t, stats.PausedUntil)
		require.True(t, f.rdb.HExists(ctx, f.key.Control, "paused").Val(), "a read changes nothing")
		hints := f.listen(t)
		read, left, _, err = f.src.Control(ctx)
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Control{Settings: tuned.Settings}, read)
		require.Zero(t, left)
		require.Equal(t, exchange.HintControl, next(t, hints).Kind)
		require.False(t, f.rdb.HExists(ctx, f.key.Control, "paused").Val())
	})
}

// A node that may not write the settings sees the end of a pause nevertheless.
func TestPauseEndsForNodeThatMayOnlyReadIt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	require.NoError(t, f.rdb.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "allchannels", "+@all", "%R~timers_control:*").Err())
	reader := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "reader", "secret" }))
	paused, err := f.PauseUntil(t.Context(), reader.topic, wakebelltype.Pause{For: time.Hour})
	require.NoError(t, err)
	read, left, _, err := reader.src.Control(t.Context())
	require.NoError(t, err)
	require.Equal(t, paused, read)
	require.InDelta(t, time.Hour, left, float64(time.Minute))
	_, err = f.PauseUntil(t.Context(), reader.topic, wakebelltype.Pause{For: time.Microsecond})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		read, _, _, err := reader.src.Control(t.Context())
		return err == nil && !read.Paused
	}, time.Minute, time.Millisecond)
}
