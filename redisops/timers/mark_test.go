package timers

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// mark returns the mark that a read of the settings returns.
func (f *fixture) mark(t *testing.T) string {
	t.Helper()
	_, _, mark, err := f.src.Control(t.Context())
	require.NoError(t, err)
	return mark
}

// knowing runs an exchange of a poller that applies the settings with this mark.
func (f *fixture) knowing(t *testing.T, mark string, settle ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.Request(10, time.Minute)
	r.Control, r.Settle = mark, settle
	return f.Run(t, r)
}

func TestExchangeClaimsNothingUnderOtherSettings(t *testing.T) {
	t.Parallel()
	changes := map[string]func(t *testing.T, f *fixture){
		"a pause": func(t *testing.T, f *fixture) {
			_, err := f.Pause(t.Context(), f.topic, "ops", "")
			require.NoError(t, err)
		},
		"an override": func(t *testing.T, f *fixture) {
			_, err := f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxConcurrent: 1})
			require.NoError(t, err)
		},
		"a pause of an earlier version": func(t *testing.T, f *fixture) { f.do(t, "hset", f.key.Control, "paused", "1", "by", "x", "reason", "") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				before := f.mark(t)
				require.Equal(t, noMark, before)
				f.due(t, "a")
				reply := f.knowing(t, before)
				require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases))
				require.Equal(t, before, reply.Control)

				change(t, f)
				f.due(t, "b")
				reply = f.knowing(t, before, storetest.Verdict(exchange.Ack, reply.Leases[0]))
				require.Empty(t, reply.Leases)
				require.Empty(t, reply.Refused, "what is settled is settled")
				require.Zero(t, reply.Next, "it is due")
				require.NotEqual(t, before, reply.Control)
				require.Equal(t, f.mark(t), reply.Control)
				require.Equal(t, []string{"b"}, storetest.IDs(f.knowing(t, reply.Control).Leases), "whether a topic is paused is the poller's to know")

				_, err := f.Resume(t.Context(), f.topic)
				require.NoError(t, err)
				_, err = f.Retune(t.Context(), f.topic, wakebelltype.Settings{})
				require.NoError(t, err)
				require.Equal(t, noMark, f.mark(t))
				require.Zero(t, f.rdb.Exists(t.Context(), f.key.Control).Val())
			})
		})
	}
}

// TestMarkChangesWithSettings checks that no mark comes back.
func TestMarkChangesWithSettings(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		seen := map[string]bool{}
		changed := func(_ wakebelltype.Control, err error) {
			require.NoError(t, err)
			mark := f.mark(t)
			require.False(t, seen[mark], mark)
			require.Equal(t, mark, f.knowing(t, "").Control)
			seen[mark] = true
		}
		for range 2 {
			changed(f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxConcurrent: 1}))
			changed(f.Pause(t.Context(), f.topic, "ops", ""))
			changed(f.Pause(t.Context(), f.topic, "another operator", ""))
			changed(f.Retune(t.Context(), f.topic, wakebelltype.Settings{MaxConcurrent: 2}))
			changed(f.Resume(t.Context(), f.topic))
		}
	})
}

func TestRepeatedAnswerHasMarkOfNow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a")
		r := f.Request(1, time.Minute)
		r.Control = noMark
		require.Len(t, f.Run(t, r).Leases, 1)
		_, err := f.Pause(t.Context(), f.topic, "ops", "")
		require.NoError(t, err)
		again := f.Run(t, r)
		require.Len(t, again.Leases, 1, "it was claimed before")
		require.Equal(t, f.mark(t), again.Control)
	})
}

// Redis refuses a script that names a key to which the user has no right.
func TestExchangeRunsWithoutRightToSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "&*", "+@all",
		"~timers_timeline:*", "~timers_payloads:*", "~timers_leases:*", "~timers_dead:*", "~timers_exchange:*", "~timers_hint:*").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	admin := newFixture(t, server.Client(t)).on(f.topic)
	admin.due(t, "a")
	reply := f.knowing(t, "")
	require.Equal(t, []string{"a"}, storetest.IDs(reply.Leases))
	require.Empty(t, reply.Control)

	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "~timers_control:*").Err())
	require.Empty(t, f.knowing(t, "").Control, "it does not try each time")
	f.src.denied.Store(time.Now().Add(-controlAgain).UnixNano())
	require.Equal(t, noMark, f.knowing(t, "").Control)
}
