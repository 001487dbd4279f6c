package timers

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// losing returns a store whose client does not retry by itself, behind a proxy that
// loses the next reply of a script.
func losing(t *testing.T, r redisops.Retry) (f *fixture, lose func()) {
	t.Helper()
	proxy := faultproxy.Start(t, redistest.SharedAddr(t))
	var next atomic.Bool
	proxy.SetRule(func(command []string) faultproxy.Fate {
		if strings.HasPrefix(strings.ToLower(command[0]), "eval") && next.CompareAndSwap(true, false) {
			return faultproxy.Lose()
		}
		return faultproxy.Fate{}
	})
	rdb := redistest.Shared(t, func(o *redis.Options) { o.Addr, o.MaxRetries = proxy.Addr, -1 })
	f = newFixture(t, rdb)
	f.Retry = r
	for _, script := range lua.Loaded { // so that the lost reply is not NOSCRIPT
		require.NoError(t, script.Load(t.Context(), rdb).Err())
	}
	return f, func() { next.Store(true) }
}

// TestCallsWhoseReplyIsLostAreRetried checks that every call is retried when its
// reply was lost, with the effect of a single call.
func TestCallsWhoseReplyIsLostAreRetried(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cases := map[string]func(t *testing.T, f *fixture, lose func()){
		"schedule": func(t *testing.T, f *fixture, lose func()) {
			lose()
			out := f.schedule(t, Entry{ID: "a", Payload: []byte("x"), In: time.Hour})
			require.Equal(t, wakebelltype.OutcomeReplaced, out[0].Outcome, "it finds what it wrote")
			require.Equal(t, "x", string(f.get(t, "a").Payload))
		},
		"schedule of a large batch": func(t *testing.T, f *fixture, lose func()) {
			entries := many(layout.BatchEntries, "x ")
			lose()
			require.Equal(t, wakebelltype.OutcomeReplaced, f.schedule(t, entries...)[0].Outcome, "it finds what it wrote")
			f.has(t, entries)
		},
		"schedule once": func(t *testing.T, f *fixture, lose func()) {
			e := Entry{ID: "a", Once: time.Hour}
			f.schedule(t, e)
			f.Settle(t, storetest.Verdict(exchange.Ack, f.Claim(t, 1).Leases[0]))
			lose()
			require.Equal(t, wakebelltype.OutcomeAlreadyDone, f.schedule(t, e)[0].Outcome)
		},
		"keep": func(t *testing.T, f *fixture, lose func()) {
			lose()
			require.Equal(t, wakebelltype.OutcomeKeptPending, f.schedule(t, Entry{ID: "a", In: time.Hour, Policy: wakebelltype.PolicyKeep})[0].Outcome)
		},
		"debounce": func(t *testing.T, f *fixture, lose func()) {
			first := f.schedule(t, Entry{ID: "a", In: time.Hour, MaxDelay: time.Hour, Policy: wakebelltype.PolicyDebounce})
			lose()
			again := f.schedule(t, Entry{ID: "a", In: time.Hour, MaxDelay: time.Hour, Policy: wakebelltype.PolicyDebounce})
			require.WithinDuration(t, first[0].Due, again[0].Due, time.Millisecond)
		},
		"schedule with replicas": func(t *testing.T, f *fixture, lose func()) {
			lose()
			_, err := f.Schedule(ctx, f.topic, Entry{ID: "a", Replicas: 1, ReplicaTimeout: time.Millisecond})
			require.ErrorIs(t, err, wakebelltype.ErrTooFewReplicas)
			f.get(t, "a")
		},
		"cancel": func(t *testing.T, f *fixture, lose func()) {
			f.due(t, "a")
			lose()
			found, err := f.Cancel(ctx, f.topic, "a")
			require.NoError(t, err)
			require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceAbsent}, found, "it is gone")
		},
		"cancel all": func(t *testing.T, f *fixture, lose func()) {
			f.due(t, "a")
			lose()
			_, err := f.CancelAll(ctx, f.topic)
			require.NoError(t, err)
			require.Zero(t, f.rdb.ZCard(ctx, f.key.Timeline).Val())
		},
		"reschedule": func(t *testing.T, f *fixture, lose func()) {
			f.due(t, "a")
			lose()
			out, err := f.Reschedule(ctx, f.topic, "a", time.Time{}, time.Hour)
			require.NoError(t, err)
			require.Equal(t, wakebelltype.OutcomeMoved, out.Outcome)
		},
		"run now": func(t *testing.T, f *fixture, lose func()) {
			f.schedule(t, Entry{ID: "a", In: time.Hour})
			lose()
			found, err := f.RunNow(ctx, f.topic, "a")
			require.NoError(t, err)
			require.Equal(t, wakebelltype.PresencePending, found)
		},
		"pause": func(t *testing.T, f *fixture, lose func()) {
			lose()
			c, err := f.Pause(ctx, f.topic, "me", "why")
			require.NoError(t, err)
			require.True(t, c.Paused)
			require.Equal(t, "why", c.Reason)
		},
		"get": func(t *testing.T, f *fixture, lose func()) {
			f.due(t, "a")
			lose()
			require.Equal(t, "a", f.get(t, "a").ID)
		},
		"forget": func(t *testing.T, f *fixture, lose func()) {
			f.due(t, "a")
			lose()
			require.NoError(t, f.Forget(ctx, f.topic))
		},
		"redrive": func(t *testing.T, f *fixture, lose func()) {
			f.dead(t, 5)
			lose()
			var reported []string
			done, err := f.Redrive(ctx, f.topic, wakebelltype.RedriveOptions{Rate: 10_000, Each: func(l wakebelltype.RedrivenLetter) { reported = append(reported, l.ID) }})
			require.NoError(t, err)
			require.Equal(t, wakebelltype.RedriveResult{Redriven: 5}, done)
			require.Equal(t, []string{"0", "1", "2", "3", "4"}, reported)
			require.EqualValues(t, 5, f.rdb.ZCard(ctx, f.key.Timeline).Val())
		},
		"delete dead letters": func(t *testing.T, f *fixture, lose func()) {
			f.dead(t, 5)
			lose()
			n, err := f.DeleteDead(ctx, f.topic, wakebelltype.DeadFilter{})
			require.NoError(t, err)
			require.EqualValues(t, 5, n)
		},
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, lose := losing(t, redisops.Retry{Otherwise: 10 * time.Second})
			run(t, f, lose)
		})
	}
}

// dead makes n dead letters, of the timers 0 to n-1.
func (f *fixture) dead(t testing.TB, n int) {
	t.Helper()
	for i := range n {
		f.due(t, fmt.Sprint(i))
		f.Settle(t, storetest.Verdict(exchange.DeadLetter, f.Claim(t, 1).Leases[0]))
	}
}

// TestRedriveThatClientRepeatsCountsOnce checks that the retries inside the
// Redis client, which the store does not see, do not count twice.
func TestRedriveThatClientRepeatsCountsOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.dead(t, 3)
		k := []string{f.key.Timeline, f.key.Payloads, f.key.Leases, f.key.Dead, f.key.Hint, f.key.Stream("x", 0), f.key.Counts}
		k = append(k, f.key.order()...)
		args, err := walkArgs(wakebelltype.DeadFilter{}, "-", "", 100)
		require.NoError(t, err)
		args = append(args, "0", "0", 1, "")
		first, err := f.RunList(t.Context(), 2, redriveScript, k, args...)
		require.NoError(t, err)
		again, err := f.RunList(t.Context(), 2, redriveScript, k, args...)
		require.NoError(t, err)
		require.Equal(t, first, again)
		args[len(args)-2] = 2
		next, err := f.RunList(t.Context(), 2, redriveScript, k, args...)
		require.NoError(t, err)
		require.Len(t, next, 2, "another call is another answer")
		require.EqualValues(t, 3+3, sum(t, f.Timers, f.topic, time.Hour).Scheduled, "3 were scheduled, 3 redriven")
	})
}

// refusing is a dialer that counts and refuses connections.
func refusing(n *atomic.Int32) func(*redis.Options) {
	return func(o *redis.Options) {
		o.MaxRetries, o.DialerRetries = -1, 1
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			n.Add(1)
			return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("refused")}
		}
	}
}

func TestBudgetOfCall(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		retry    redisops.Retry
		deadline time.Duration // of the context; 0: none
		want     time.Duration // about; 0: one try
	}{
		"none":                       {redisops.Retry{}, 0, 0},
		"none, with a deadline":      {redisops.Retry{}, time.Hour, 0},
		"otherwise":                  {redisops.Retry{Otherwise: 5 * time.Second}, 0, 5 * time.Second},
		"the deadline, not longer":   {redisops.Retry{Otherwise: time.Hour}, 5 * time.Second, 5 * time.Second},
		"the deadline, not shorter":  {redisops.Retry{Otherwise: time.Second}, 10 * time.Second, 10 * time.Second},
		"at most, below a deadline":  {redisops.Retry{Otherwise: time.Second, Most: 3 * time.Second}, time.Hour, 3 * time.Second},
		"a deadline, below the most": {redisops.Retry{Otherwise: time.Second, Most: time.Hour}, 4 * time.Second, 4 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var tries atomic.Int32
				rdb, _ := redistest.Embedded(t, refusing(&tries))
				s, err := New(rdb, wakebelltype.Keys{})
				require.NoError(t, err)
				s.Retry = c.retry
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				began := time.Now()
				_, err = s.Get(ctx, "t", "x")
				took := time.Since(began)
				require.ErrorIs(t, err, exchange.ErrUnavailable, "the cause, not the end of the budget")
				if c.want == 0 {
					require.EqualValues(t, 1, tries.Load())
					return
				}
				require.LessOrEqual(t, took, c.want)
				require.Greater(t, took, c.want-1500*time.Millisecond, "retries continue while a delay fits")
				// Delays double from 25 ms to 1 s, so there are few tries.
				require.Less(t, tries.Load(), int32(10+2*c.want.Seconds()))
				require.Greater(t, tries.Load(), int32(5))
			})
		})
	}
}

func TestCancelledCallSaysWhyItWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int32
		rdb, _ := redistest.Embedded(t, refusing(&tries))
		s, err := New(rdb, wakebelltype.Keys{})
		require.NoError(t, err)
		s.Retry = redisops.Retry{Otherwise: time.Hour}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		_, err = s.Get(ctx, "t", "x")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, exchange.ErrUnavailable)
	})
}

// TestOtherErrorsAreNotRetried checks that permanent errors are not retried.
func TestOtherErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	rdb, server := redistest.Embedded(t, func(o *redis.Options) { o.MaxRetries = -1 })
	s, err := New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	s.Retry = redisops.Retry{Otherwise: time.Hour}
	for _, text := range []string{"OOM command not allowed", "NOPERM no", "ERR something else"} {
		server.SetError(text)
		_, err = s.Get(t.Context(), "t", "x")
		require.ErrorContains(t, err, text)
	}
	server.SetError("")
	require.NoError(t, rdb.Close())
	_, err = s.Get(t.Context(), "t", "x")
	require.ErrorIs(t, err, redis.ErrClosed)
}

// TestRefusedConnectionsAreGivenUpInTime checks that a call to a server that
// refuses connections fails within the budget. The tries of go-redis count; its
// first one takes almost 2 s.
func TestRefusedConnectionsAreGivenUpInTime(t *testing.T) {
	t.Parallel()
	const budget = 2 * time.Second
	for name, opts := range map[string]redis.Options{
		"the defaults of go-redis":    {},
		"without retries of go-redis": {MaxRetries: -1, DialerRetries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				opts.Addr = "127.0.0.1:6379"
				opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
				}
				rdb := redis.NewClient(&opts)
				defer func() { _ = rdb.Close() }()
				s, err := New(rdb, wakebelltype.Keys{})
				require.NoError(t, err)
				s.Retry = redisops.Retry{Otherwise: budget}
				began := time.Now()
				_, err = s.Schedule(t.Context(), "topic", Entry{ID: "x"})
				require.ErrorIs(t, err, exchange.ErrUnavailable)
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
				require.LessOrEqual(t, time.Since(began), budget)
				require.GreaterOrEqual(t, time.Since(began), budget/4)
			})
		})
	}
}
