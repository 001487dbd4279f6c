package redisops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
)

// A full Redis refuses new timers and lets those that it has be handled.
func TestFullMemoryCanBeDrained(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t))
	f.due(t, "a", "b", "c", "d", "e")
	leases := f.claim(t, 3).Leases
	require.NoError(t, f.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "new"}, Entry{ID: "d", Payload: []byte("changed")})
	require.ErrorIs(t, err, ErrMemoryFull)
	require.NotErrorIs(t, err, exchange.ErrUnavailable)
	_, err = f.Get(t.Context(), f.topic, "new")
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, "body of d", string(f.get(t, "d").Payload))

	r := f.request(2, time.Minute)
	r.Settle = []exchange.Settlement{verdict(exchange.Ack, leases[0]), verdict(exchange.Bury, leases[1])}
	r.Extend = []exchange.Held{held(leases[2])}
	reply := f.run(t, r)
	require.Empty(t, reply.Refused)
	require.Equal(t, []string{"d", "e"}, ids(reply.Leases))
	letters, _, err := f.DeadLetters(t.Context(), f.topic, DeadFilter{}, "", 1)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	found, err := f.Cancel(t.Context(), f.topic, "d")
	require.NoError(t, err)
	require.Equal(t, []Presence{Running}, found)
}

// With a key of a wrong type nothing is written, and the error names it.
func TestWrongTypesLeaveAllUntouched(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "a", "b")
		lease := f.claim(t, 1).Leases[0]
		ctx := t.Context()
		all := []string{f.key.timeline, f.key.payloads, f.key.leases, f.key.dead, f.key.hint}
		for _, key := range append(all, f.key.stream(f.incarnation, 0)) {
			kept := f.rdb.Exists(ctx, key).Val() == 1
			if kept {
				require.NoError(t, f.rdb.Rename(ctx, key, key+"-kept").Err())
			}
			require.NoError(t, f.rdb.SAdd(ctx, key, "x").Err())
			before := f.dump(t)
			r := f.request(5, time.Minute)
			r.Settle = []exchange.Settlement{verdict(exchange.Bury, lease)}
			_, err := f.src.Exchange(ctx, r)
			require.ErrorIs(t, err, ErrWrongType)
			require.ErrorContains(t, err, fmt.Sprintf("%q holds a set, want", key))
			if key != f.key.dead && key != f.key.stream(f.incarnation, 0) {
				_, err = f.Schedule(ctx, f.topic, Entry{ID: "new"})
				require.ErrorIs(t, err, ErrWrongType, key)
				_, err = f.Cancel(ctx, f.topic, "a")
				require.ErrorIs(t, err, ErrWrongType, key)
				_, err = f.CancelAll(ctx, f.topic)
				require.ErrorIs(t, err, ErrWrongType, key)
			}
			require.Equal(t, before, f.dump(t))
			require.NoError(t, f.rdb.Del(ctx, key).Err())
			if kept {
				require.NoError(t, f.rdb.Rename(ctx, key+"-kept", key).Err())
			}
		}
		require.NoError(t, f.rdb.Set(ctx, f.keys.Topics, "x", 0).Err())
		require.NoError(t, f.rdb.Del(ctx, f.keys.Topics).Err())
		require.Empty(t, f.settle(t, verdict(exchange.Ack, lease)).Refused, "and all is well again")
	})
}

// dump is all of a topic's keys that hold what they should.
func (f *fixture) dump(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, key := range []string{f.key.timeline, f.key.payloads, f.key.leases, f.key.dead} {
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

// A user without rights on channels and on the registry can do all the work.
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
	require.Equal(t, Created, f.schedule(t, Entry{ID: "a", Payload: []byte("x")})[0].Outcome)
	require.Contains(t, log.String(), "topic not registered")
	lease := f.claim(t, 1).Leases[0]
	f.settle(t, verdict(exchange.Release, lease))
	f.claim(t, 1)
	found, err := f.Cancel(t.Context(), f.topic, "a")
	require.NoError(t, err)
	require.Equal(t, []Presence{Running}, found)
	err = f.Listen(t.Context(), []string{f.topic}, func(exchange.Hint) {})
	require.ErrorIs(t, err, ErrChannelDenied)
}

// A user with rights on one topic alone passes the check of that topic.
func TestCheckNeedsNoOtherTopic(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "narrow", "on", ">secret", "+@all", "~timers_*:mine").Err())
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "narrow", "secret" }))
	require.NoError(t, f.Check(t.Context(), []string{"mine"}))
	require.NoError(t, f.Check(t.Context(), nil), "it answers, and knows the commands")
	require.ErrorContains(t, f.Check(t.Context(), []string{"other"}), "NOPERM")
}

func TestCheckRefusesAnOldRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Start(t, "--rename-command", "ZMSCORE", "gone").Client(t))
	for _, topics := range [][]string{nil, {f.topic}} {
		err := f.Check(t.Context(), topics)
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, "older than version 6.2")
	}
}

// busy is how long Redis has computed for its clients, which is what blocks
// others, and not how long the machine kept it waiting.
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
		reply := f.claim(t, 100)
		require.Len(t, reply.Leases, 1)
		require.Equal(t, fmt.Sprintf("%03d", i), reply.Leases[0].ID)
		require.Zero(t, reply.Next)
		require.Less(t, f.busy(t)-before, 300*time.Millisecond)
	}
	// Large ones behind many small ones: a step of 16 is read at most.
	for i := range 70 {
		f.schedule(t, Entry{ID: fmt.Sprintf("small %02d", i), At: time.Unix(1, 0)})
	}
	before := f.busy(t)
	require.Len(t, f.claim(t, 100).Leases, 70)
	require.Less(t, f.busy(t)-before, 300*time.Millisecond)

	small := f.holder(SourceOptions{MaxBytes: 5000})
	_, err := f.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)
	for i := range 20 {
		f.schedule(t, Entry{ID: fmt.Sprintf("%03d", i), Payload: big[:1000]})
	}
	require.Len(t, small.claim(t, 20).Leases, 5)
	require.Len(t, small.claim(t, 20).Leases, 5)
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t, func(o *redis.Options) { o.MaxRetries = -1 }))
	f.due(t, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.src.Exchange(ctx, f.request(1, time.Minute))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, exchange.ErrUnavailable)
	server.Kill()
	_, err = f.src.Exchange(t.Context(), f.request(1, time.Minute))
	require.ErrorIs(t, err, exchange.ErrUnavailable)
	_, err = f.Schedule(t.Context(), f.topic, Entry{ID: "x"})
	require.ErrorIs(t, err, exchange.ErrUnavailable)
	require.ErrorIs(t, f.Check(t.Context(), nil), exchange.ErrUnavailable)
}

// Every code and sentence that is known has a meaning here, and the other way
// round; the root package says which of them may be retried.
func TestWhatRedisErrorsMean(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for code := range meanings {
		known[code] = false
	}
	for _, s := range sentences {
		known[s.begins] = false
	}
	for text, want := range map[string]error{
		"LOADING Redis is loading the dataset in memory":              exchange.ErrUnavailable,
		"READONLY You can't write against a read only one":            exchange.ErrUnavailable,
		"MASTERDOWN Link with MASTER is down":                         exchange.ErrUnavailable,
		"CLUSTERDOWN Hash slot not served":                            exchange.ErrUnavailable,
		"BUSY Redis is busy running a script":                         exchange.ErrUnavailable,
		"TRYAGAIN Multiple keys request during rehashing":             exchange.ErrUnavailable,
		"NOREPLICAS Not enough good replicas to write.":               exchange.ErrUnavailable,
		"MISCONF Redis is configured to save RDB snapshots":           exchange.ErrUnavailable,
		"UNBLOCKED force unblock, instance state changed":             exchange.ErrUnavailable,
		"ERR max number of clients reached":                           exchange.ErrUnavailable,
		"redis: all sentinels specified in configuration are not":     exchange.ErrUnavailable,
		"redis: cluster has no nodes":                                 exchange.ErrUnavailable,
		"redis: all ring shards are down":                             exchange.ErrUnavailable,
		"STALE 12":                                                    exchange.ErrStale,
		"OOM command not allowed when used memory > limit":            ErrMemoryFull,
		"WRONGTYPE Operation against a key":                           ErrWrongType,
		"WRONGTYPE 1 string hash":                                     ErrWrongType,
		"WRONGTYPE 9 string hash":                                     ErrWrongType,
		"NOPERM No permissions to access a key":                       ErrDenied,
		"NOAUTH Authentication required.":                             ErrDenied,
		"WRONGPASS invalid username-password pair":                    ErrDenied,
		"CROSSSLOT Keys in request don't hash to the same slot":       ErrUnsupported,
		"MOVED 1 127.0.0.1:7000":                                      ErrUnsupported,
		"ASK 1 127.0.0.1:7000":                                        ErrUnsupported,
		"ERR unknown command 'ZMSCORE', with args beginning with: ":   ErrUnsupported,
		"ERR Unknown Redis command called from script script: 012345": ErrUnsupported,
		// A command of a script that the user may not run: Redis 7.0, then 7.2 and later, and Valkey.
		"ERR The user executing the script can't run this command or subcommand script: 01ab, on @user_script:4.":                                     ErrDenied,
		"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: 01ab, on @user_script:4.": ErrDenied,
		"ERR ACL failure in script: User app has no permissions to run the 'zscore' command script: 01ab, on @user_script:4.":                         ErrDenied,
		"ERR ACL failure in script: No permissions to access a key script: 01ab, on @user_script:4.":                                                  ErrDenied,
		"ERR ACL failure in script: No permissions to access a channel script: 01ab, on @user_script:4.":                                              ErrDenied,
		"ERR ACL failure in script: No permissions to access database script: 01ab, on @user_script:4.":                                               ErrDenied,
		// As Redis 6.2 says what ended a script.
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: The user executing the script can't run this command or subcommand": ErrDenied,
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -OOM command not allowed when used memory > 'maxmemory'. ":          ErrMemoryFull,
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica. ":            exchange.ErrUnavailable,
		"ERR Error running script (call to f_0): @user_script:9: @user_script: 9: Unknown Redis command called from Lua script":                       nil,
		"ERR something else":           nil,
		"NEWCODE of a version to come": nil,
	} {
		err := wrap(t.Context(), []string{"key"}, replyError(text))
		if want == nil {
			require.Equal(t, replyError(text), err)
			continue
		}
		require.ErrorIs(t, err, want, text)
		require.ErrorContains(t, err, lastOf(text))
		code, _, _ := strings.Cut(text, " ")
		known[code] = true
		for _, s := range sentences {
			known[s.begins] = known[s.begins] || strings.HasPrefix(text, s.begins)
		}
	}
	for begins, shown := range known {
		require.True(t, shown, "nothing shows what %q means", begins)
	}
}

// lastOf is what of a reply has to be in the error: who looks wants to know.
func lastOf(text string) string {
	if strings.HasPrefix(text, "WRONGTYPE") || strings.HasPrefix(text, "STALE") {
		return ""
	}
	return text
}

// Whatever befalls a connection, it is the server as a whole that does not
// answer.
func TestWhatNetworkErrorsMean(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"refused":           &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"reset":             &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"broken pipe":       &net.OpError{Op: "write", Err: syscall.EPIPE},
		"no route":          &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH},
		"timeout":           &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"no such host":      &net.DNSError{Err: "no such host", Name: "redis", IsNotFound: true},
		"closed":            io.EOF,
		"cut off":           io.ErrUnexpectedEOF,
		"closed pipe":       io.ErrClosedPipe,
		"closed by us":      net.ErrClosed,
		"pool timeout":      redis.ErrPoolTimeout,
		"pool exhausted":    redis.ErrPoolExhausted,
		"closed client":     redis.ErrClosed,
		"a dial's deadline": context.DeadlineExceeded,
	} {
		wrapped := wrap(t.Context(), nil, fmt.Errorf("somewhere: %w", err))
		require.ErrorIs(t, wrapped, exchange.ErrUnavailable, name)
		require.ErrorIs(t, wrapped, err, name)
	}
	require.NoError(t, wrap(t.Context(), nil, nil))
	other := errors.New("redis: can't parse reply")
	require.Equal(t, other, wrap(t.Context(), nil, other))
}

type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestDialTimeoutMeansUnavailable(t *testing.T) {
	t.Parallel()
	dialer := net.Dialer{Timeout: time.Nanosecond}
	_, err := dialer.DialContext(t.Context(), "tcp", redistest.SharedAddr(t))
	require.ErrorIs(t, err, context.DeadlineExceeded, "as the net package says it")
	require.ErrorIs(t, wrap(t.Context(), nil, err), exchange.ErrUnavailable)

	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	require.NotErrorIs(t, wrap(ctx, nil, ctx.Err()), exchange.ErrUnavailable, "the caller's own deadline")
	require.ErrorIs(t, wrap(ctx, nil, err), context.DeadlineExceeded)
}
