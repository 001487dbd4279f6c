package timers

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestFullMemoryCanBeDrained checks that a full Redis refuses new timers and lets
// existing ones be handled.
func TestFullMemoryCanBeDrained(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t))
	f.due(t, "a", "b", "c", "d", "e")
	leases := f.Claim(t, 3).Leases
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "new"}, Entry{ID: "d", Payload: []byte("changed")})
	require.ErrorIs(t, err, wakebelltype.ErrMemoryFull)
	require.NotErrorIs(t, err, exchange.ErrUnavailable)
	_, err = f.Get(t.Context(), f.topic, "new")
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
	require.Equal(t, "body of d", string(f.get(t, "d").Payload))

	r := f.Request(2, time.Minute)
	r.Settle = []exchange.Settlement{storetest.Verdict(exchange.Ack, leases[0]), storetest.Verdict(exchange.DeadLetter, leases[1])}
	r.Extend = []exchange.Held{storetest.Held(leases[2])}
	reply := f.Run(t, r)
	require.Empty(t, reply.Refused)
	require.Equal(t, []string{"d", "e"}, storetest.IDs(reply.Leases))
	dead, _, err := f.DeadLetters(t.Context(), f.topic, wakebelltype.DeadFilter{}, "", 1)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	found, err := f.Cancel(t.Context(), f.topic, "d")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceRunning}, found)
}

// TestWrongTypesLeaveAllUntouched checks that nothing is written if a key has a
// wrong type, and that the error names the key.
func TestWrongTypesLeaveAllUntouched(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		lease := f.Claim(t, 1).Leases[0]
		ctx := t.Context()
		all := []string{f.key.Timeline, f.key.Payloads, f.key.Leases, f.key.Dead, f.key.Hint}
		for _, key := range append(all, f.key.Stream(f.Incarnation, 0)) {
			kept := f.rdb.Exists(ctx, key).Val() == 1
			if kept {
				require.NoError(t, f.rdb.Rename(ctx, key, key+"-kept").Err())
			}
			require.NoError(t, f.rdb.SAdd(ctx, key, "x").Err())
			before := f.dump(t)
			r := f.Request(5, time.Minute)
			r.Settle = []exchange.Settlement{storetest.Verdict(exchange.DeadLetter, lease)}
			_, err := f.src.Exchange(ctx, r)
			require.ErrorIs(t, err, wakebelltype.ErrWrongType)
			require.ErrorContains(t, err, fmt.Sprintf("%q holds a set, want", key))
			if key != f.key.Dead && key != f.key.Stream(f.Incarnation, 0) {
				_, err = f.Schedule(ctx, f.topic, Entry{ID: "new"})
				require.ErrorIs(t, err, wakebelltype.ErrWrongType, key)
				_, err = f.Cancel(ctx, f.topic, "a")
				require.ErrorIs(t, err, wakebelltype.ErrWrongType, key)
				_, err = f.CancelAll(ctx, f.topic)
				require.ErrorIs(t, err, wakebelltype.ErrWrongType, key)
			}
			require.Equal(t, before, f.dump(t))
			require.NoError(t, f.rdb.Del(ctx, key).Err())
			if kept {
				require.NoError(t, f.rdb.Rename(ctx, key+"-kept", key).Err())
			}
		}
		require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused, "settling works again")
	})
}

// TestWrongTypesOfFlowControlLeaveAllUntouched checks the same for the keys of flow
// control.
func TestWrongTypesOfFlowControlLeaveAllUntouched(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		flow := exchange.Flow{PerKey: 1, KeyRateLimit: 1000, KeyRatePer: time.Second}
		f.dueOf(t, "k", "a", "b")
		lease := f.keyRated(t, 1, flow).Leases[0]
		for _, key := range []string{f.key.Flow, f.key.TimerKeys, f.key.KeyOrder, f.key.KeyStates, f.key.KeyRates} {
			require.NoError(t, f.rdb.Copy(t.Context(), key, key+"-kept", 0, true).Err())
			f.mistype(t, key)
			before := f.dump(t)
			r := f.Request(1, time.Minute)
			r.Flow, r.Settle = flow, []exchange.Settlement{ack(lease)}
			_, err := f.src.Exchange(t.Context(), r)
			require.ErrorIs(t, err, wakebelltype.ErrWrongType)
			require.ErrorContains(t, err, fmt.Sprintf("%q holds a list, want", key))
			require.Equal(t, before, f.dump(t))
			f.do(t, "del", key)
			require.NoError(t, f.rdb.Copy(t.Context(), key+"-kept", key, 0, true).Err())
		}
		require.Equal(t, []string{"b"}, storetest.IDs(f.keyRated(t, 1, flow, ack(lease)).Leases))
	})
}

// dump returns all of a topic's keys that have the right type.
func (f *fixture) dump(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, key := range []string{f.key.Timeline, f.key.Payloads, f.key.Leases, f.key.Dead} {
		switch f.rdb.Type(t.Context(), key).Val() {
		case "zset":
			fmt.Fprintln(&out, key, f.rdb.ZRangeWithScores(t.Context(), key, 0, -1).Val())
		case "hash":
			fmt.Fprintln(&out, key, f.rdb.HGetAll(t.Context(), key).Val())
		case "stream":
			fmt.Fprintln(&out, key, f.rdb.XLen(t.Context(), key).Val())
		}
	}
	return out.String()
}

// TestWithoutChannelRights checks that a user without rights on channels, the registry
// and the counts can schedule and handle timers.
func TestWithoutChannelRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "resetchannels", "+@all",
		"~timers_timeline:*", "~timers_payloads:*", "~timers_leases:*", "~timers_dead:*", "~timers_exchange:*", "~timers_hint:*").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	var log bytes.Buffer
	f.Logger = slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, f.Check(t.Context(), []string{f.topic}))
	require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, Entry{ID: "a", Payload: []byte("x")})[0].Outcome)
	require.Contains(t, log.String(), "topic not registered")
	require.Contains(t, log.String(), "scheduled timers are not counted")
	f.Settle(t, storetest.Verdict(exchange.DeadLetter, f.Claim(t, 1).Leases[0]))
	done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, done.Redriven)
	f.Settle(t, storetest.Verdict(exchange.Release, f.Claim(t, 1).Leases[0]))
	f.Claim(t, 1)
	found, err := f.Cancel(t.Context(), f.topic, "a")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceRunning}, found)
	err = f.Listen(t.Context(), []string{f.topic}, func(exchange.Hint) {})
	require.ErrorIs(t, err, wakebelltype.ErrChannelDenied)
}

// TestCheckNeedsNoOtherTopic checks that a user with rights on a single topic
// passes the check of that topic.
func TestCheckNeedsNoOtherTopic(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "narrow", "on", ">secret", "+@all", "~timers_*:mine").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "narrow", "secret" }))
	require.NoError(t, f.Check(t.Context(), []string{"mine"}))
	require.NoError(t, f.Check(t.Context(), nil), "the server answers and knows the commands")
	require.ErrorContains(t, f.Check(t.Context(), []string{"other"}), "NOPERM")
}

func TestCheckRefusesOldRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--rename-command", "ZMSCORE", "gone").Client(t))
	for _, topics := range [][]string{nil, {f.topic}} {
		err := f.Check(t.Context(), topics)
		require.ErrorIs(t, err, wakebelltype.ErrUnsupported)
		require.ErrorContains(t, err, "older than version 6.2")
	}
}

// busy returns how long Redis has computed for its clients, which blocks others,
// without the time for which the machine delayed it.
func (f *fixture) busy(t *testing.T) (total time.Duration) {
	t.Helper()
	info, err := f.rdb.InfoMap(t.Context(), "cpu").Result()
	require.NoError(t, err)
	for _, name := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info["CPU"][name], 64)
		require.NoError(t, err)
		total += time.Duration(seconds * float64(time.Second))
	}
	return total
}

// 100 payloads of 1 MiB come a few at a time.
func TestRepliesAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t).Client(t))
	big := make([]byte, 1<<20)
	for i := range 100 {
		f.schedule(t, Entry{ID: fmt.Sprintf("%03d", i), Payload: big})
	}
	for i := range 3 {
		before := f.busy(t)
		reply := f.Claim(t, 100)
		require.Len(t, reply.Leases, 1)
		require.Equal(t, fmt.Sprintf("%03d", i), reply.Leases[0].ID)
		require.Zero(t, reply.Next)
		require.Less(t, f.busy(t)-before, 300*time.Millisecond)
	}
	// Large payloads follow many small ones; a step reads at most 16.
	for i := range 70 {
		f.schedule(t, Entry{ID: fmt.Sprintf("small %02d", i), At: time.Unix(1, 0)})
	}
	before := f.busy(t)
	require.Len(t, f.Claim(t, 100).Leases, 70)
	require.Less(t, f.busy(t)-before, 300*time.Millisecond)

	small := f.holder(SourceOptions{MaxBytes: 5000})
	_, err := f.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)
	for i := range 20 {
		f.schedule(t, Entry{ID: fmt.Sprintf("%03d", i), Payload: big[:1000]})
	}
	require.Len(t, small.Claim(t, 20).Leases, 5)
	require.Len(t, small.Claim(t, 20).Leases, 5)
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }))
	f.due(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.src.Exchange(ctx, f.Request(1, time.Minute))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, exchange.ErrUnavailable)
	server.Kill()
	_, err = f.src.Exchange(t.Context(), f.Request(1, time.Minute))
	require.ErrorIs(t, err, exchange.ErrUnavailable)
	_, err = f.Schedule(t.Context(), f.topic, Entry{ID: "x"})
	require.ErrorIs(t, err, exchange.ErrUnavailable)
	require.ErrorIs(t, f.Check(t.Context(), nil), exchange.ErrUnavailable)
}

func TestDialTimeoutMeansUnavailable(t *testing.T) {
	t.Parallel()
	dialer := net.Dialer{Timeout: time.Nanosecond}
	_, err := dialer.DialContext(t.Context(), "tcp", redistest.SharedAddr(t))
	require.ErrorIs(t, err, context.DeadlineExceeded, "the error of the net package")
	require.ErrorIs(t, scripts.Wrap(t.Context(), nil, err), exchange.ErrUnavailable)

	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	require.NotErrorIs(t, scripts.Wrap(ctx, nil, ctx.Err()), exchange.ErrUnavailable, "the caller's own deadline")
	require.ErrorIs(t, scripts.Wrap(ctx, nil, err), context.DeadlineExceeded)
}
