package timers

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// logged collects lines of a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// moveAddress moves an address to another server. The one before becomes its replica, which
// keeps its connections.
func moveAddress(t *testing.T, proxy *faultproxy.Proxy, before, now *redistest.Server) {
	t.Helper()
	proxy.Redirect(now.Addr)
	host, port, err := net.SplitHostPort(now.Addr)
	require.NoError(t, err)
	require.NoError(t, now.Client(t).Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	require.NoError(t, before.Client(t).Do(t.Context(), "REPLICAOF", host, port).Err())
}

func runID(t *testing.T, s *redistest.Server) string {
	t.Helper()
	_, rest, ok := strings.Cut(s.Client(t).Info(t.Context(), "server").Val(), "run_id:")
	require.True(t, ok)
	return rest[:40]
}

// TestSubscriptionFollowsItsAddress checks that a subscription does not stay at a server
// that lives on as a replica, where only pings are answered, after its address has moved.
func TestSubscriptionFollowsItsAddress(t *testing.T) {
	t.Parallel()
	before, now := redistest.Start(t), redistest.Start(t)
	proxy := faultproxy.StartRaw(t, before.Addr)
	f := newFixture(t, before.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr }))
	log := &logged{}
	f.Logger, f.PingEvery = slog.New(slog.NewTextHandler(log, nil)), 20*time.Millisecond
	hints := f.listen(t)
	published := 0
	comes(t, hints, exchange.HintCheck, func() {
		published++
		require.NoError(t, f.rdb.Publish(t.Context(), f.key.Hint, "check 1 y").Err())
	})
	require.Eventually(t, func() bool { return f.echoes(t, published) > 1 }, 30*time.Second, time.Millisecond)

	// On a busy machine a ping or an echo may be late, and the subscription begins anew before
	// the address moves, or before the check.
	for seen := ""; ; before, now, seen = now, before, log.String() {
		moveAddress(t, proxy, before, now)
		comes(t, hints, exchange.HintSubscribed, func() {})
		require.Eventually(t, func() bool { return f.Deaf() == "" }, 30*time.Second, time.Millisecond)
		rdb := now.Client(t)
		heard := comes(t, hints, exchange.HintCheck, func() { require.NoError(t, rdb.Publish(t.Context(), f.key.Hint, "check 1 x").Err()) })
		require.Equal(t, "x", heard.ID)
		_, report, found := strings.Cut(strings.TrimPrefix(log.String(), seen), `msg="published messages do not arrive`)
		if found && strings.Contains(report, runID(t, before)) && strings.Contains(report, runID(t, now)) {
			return
		}
	}
}

// comes makes a call until a hint of a kind comes, and returns that. On a busy machine an echo
// may be late: the subscription is made again, and does not hear what is published meanwhile.
func comes(t *testing.T, hints <-chan exchange.Hint, kind exchange.HintKind, call func()) exchange.Hint {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		call()
		select {
		case h := <-hints:
			if h.Kind == kind {
				return h
			}
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("no hint of the kind %v", kind)
		}
	}
}

// echoes returns how many echoes have been published on the channel of hints, besides others.
func (f *fixture) echoes(t *testing.T, others int) int {
	t.Helper()
	return f.calls(t)["publish"] - others
}

// A user that may not publish on its channel keeps its subscription.
func TestSubscriptionIsNotCheckedWithoutRight(t *testing.T) {
	t.Parallel()
	for name, rights := range map[string][]any{"publish": {"-publish", "~*"}, "the key": {"~timers_timeline:*"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admin := server.Client(t)
			require.NoError(t, admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "plain", "on", ">secret", "&*", "+@all"}, rights...)...).Err())
			f := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
			log := &logged{}
			f.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			f.PingEvery = 10 * time.Millisecond
			hints := f.listen(t)
			require.Eventually(t, func() bool { return strings.Contains(log.String(), "subscription is not checked") }, 30*time.Second, time.Millisecond)
			comes(t, hints, exchange.HintCheck, func() { // on a busy machine it may have been made again before
				if err := admin.Publish(t.Context(), f.key.Hint, "check 1 x").Err(); err != nil {
					t.Error(err)
				}
			})
			require.NoError(t, admin.Publish(t.Context(), f.key.Hint, "check 1 last").Err())
			for h := next(t, hints); h.ID != "last"; h = next(t, hints) {
				require.Equal(t, "x", h.ID, "nothing else comes")
			}
			require.Empty(t, f.Deaf())
		})
	}
}

// A subscription that stays deaf is a problem all the time, and is logged once.
func TestDeafSubscriptionIsProblemWhileItLasts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	log, health := &logged{}, &scripts.Hearing{}
	rdb := server.Client(t)
	rdb.AddHook(elsewhere{})
	l := scripts.Listener{
		RDB: rdb, Log: slog.New(slog.NewTextHandler(log, nil)), PingEvery: 5 * time.Millisecond, Channels: []string{"c"}, Health: health,
		Received: func(string, string) error { return nil },
	}
	var sessions int
	enough := make(chan struct{})
	l.Confirmed = func(string) error {
		if sessions++; sessions == 4 {
			close(enough)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	<-enough
	require.Contains(t, health.Problem(), runID(t, server))
	require.Equal(t, 1, strings.Count(log.String(), `msg="published messages do not arrive`))
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Empty(t, health.Problem())
}

// elsewhere publishes on another channel than it should, so that nothing arrives, as at
// another server.
type elsewhere struct{}

func (elsewhere) DialHook(next redis.DialHook) redis.DialHook { return next }

func (elsewhere) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (elsewhere) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") {
			args[len(args)-2] = "elsewhere"
		}
		return next(ctx, cmd)
	}
}
