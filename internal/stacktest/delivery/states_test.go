package delivery_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// patient is the timeout of a call that has to outlast a fault.
const patient = 30 * time.Second

// site is the Redis that a fault affects.
type site struct {
	server *redistest.Server
	proxy  *faultproxy.Proxy      // between Redis and the system
	admin  *redis.Client          // not through the proxy
	addr   atomic.Pointer[string] // the address that the system connects to
	ended  chan struct{}          // closed when the command that strike started has ended
}

// fault is a state of Redis and its effects.
type fault struct {
	args   []string // of the server
	strike func(t *testing.T, s *site)
	mend   func(t *testing.T, s *site)

	// want is the error of a call without retries, for topic "hit" alone or for all
	// of Redis; nil: calls succeed.
	want error
	// alone: the other topic works, and the node stays ready.
	alone bool
	// settles: running timers can be settled during the fault.
	settles bool
}

var redisFaults = map[string]fault{
	"loading": {
		args: []string{"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"},
		want: wakebell.ErrUnavailable,
		strike: func(t *testing.T, s *site) {
			pipe := s.admin.Pipeline()
			for i := range 2000 {
				pipe.Set(t.Context(), "ballast:"+strconv.Itoa(i), strings.Repeat("x", 100), 0)
			}
			_, err := pipe.Exec(t.Context())
			require.NoError(t, err)
			// Loading takes 20 s, unless mend ends it.
			require.NoError(t, s.admin.ConfigSet(t.Context(), "key-load-delay", "10000").Err())
			s.meanwhile(t, "DEBUG", "RELOAD")
			stacktest.Eventually(t, func() bool { return redis.HasErrorPrefix(s.admin.Get(t.Context(), "x").Err(), "LOADING") })
		},
		mend: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.ConfigSet(t.Context(), "key-load-delay", "0").Err())
			<-s.ended
		},
	},
	"read only until a failover is over": {
		args: []string{"--repl-diskless-sync-delay", "0"},
		want: wakebell.ErrUnavailable,
		strike: func(t *testing.T, s *site) {
			replica := redistest.Start(t)
			host, port, err := net.SplitHostPort(s.server.Addr)
			require.NoError(t, err)
			other := replica.Client(t)
			require.NoError(t, other.ReplicaOf(t.Context(), host, port).Err())
			stacktest.Eventually(t, func() bool { return s.admin.Wait(t.Context(), 1, 50*time.Millisecond).Val() == 1 })
			s.addr.Store(&replica.Addr)
			s.server.Kill()
			s.server, s.admin = replica, other
			s.proxy.Cut()
		},
		mend: func(t *testing.T, s *site) { require.NoError(t, s.admin.ReplicaOf(t.Context(), "NO", "ONE").Err()) },
	},
	"busy": {
		args: []string{"--busy-reply-threshold", "10"},
		want: wakebell.ErrUnavailable,
		strike: func(t *testing.T, s *site) {
			s.meanwhile(t, "EVAL", "while true do end", "0")
			stacktest.Eventually(t, func() bool { return redis.HasErrorPrefix(s.admin.Get(t.Context(), "x").Err(), "BUSY") })
		},
		mend: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.ScriptKill(t.Context()).Err())
			<-s.ended
		},
	},
	"silent": {
		want:   wakebell.ErrUnavailable,
		strike: func(_ *testing.T, s *site) { s.server.Pause() },
		mend:   func(_ *testing.T, s *site) { s.server.Resume() },
	},
	"cut off": {
		want:   wakebell.ErrUnavailable,
		strike: func(_ *testing.T, s *site) { s.proxy.Cut() },
		mend:   func(_ *testing.T, s *site) { s.proxy.Mend() },
	},
	"connections reset now and then": {
		settles: true,
		strike:  func(t *testing.T, s *site) { s.proxy.Cut(); s.proxy.Mend() },
		mend:    func(t *testing.T, s *site) { s.proxy.Cut(); s.proxy.Mend() },
	},
	"slow network": {
		settles: true,
		strike: func(_ *testing.T, s *site) {
			s.proxy.SetRule(func([]string) faultproxy.Fate {
				passes := make(chan struct{})
				time.AfterFunc(100*time.Millisecond, func() { close(passes) })
				return faultproxy.Hold(passes)
			})
		},
		mend: func(_ *testing.T, s *site) { s.proxy.SetRule(nil) },
	},
	"scripts flushed": {
		settles: true,
		strike:  func(t *testing.T, s *site) { require.NoError(t, s.admin.ScriptFlush(t.Context()).Err()) },
		mend:    func(t *testing.T, s *site) { require.NoError(t, s.admin.ScriptFlush(t.Context()).Err()) },
	},
	"memory full": {
		want:    wakebell.ErrMemoryFull,
		settles: true,
		strike: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
		},
		mend: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
		},
	},
	"a key of another type": {
		want: wakebell.ErrWrongType, alone: true,
		strike: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.Rename(t.Context(), "timers_leases:hit", "aside").Err())
			require.NoError(t, s.admin.Set(t.Context(), "timers_leases:hit", "x", 0).Err())
		},
		mend: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.Rename(t.Context(), "aside", "timers_leases:hit").Err())
		},
	},
	"no right to a key": {
		want: wakebell.ErrDenied, alone: true,
		strike: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.Do(t.Context(), "ACL", "SETUSER", "node", "resetkeys", "~*other*").Err())
		},
		mend: func(t *testing.T, s *site) {
			require.NoError(t, s.admin.Do(t.Context(), "ACL", "SETUSER", "node", "~*").Err())
		},
	},
}

// meanwhile runs a command that takes long.
func (s *site) meanwhile(t *testing.T, command ...any) {
	t.Helper()
	slow := s.server.Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = slow.Do(context.WithoutCancel(t.Context()), command...).Err() // SCRIPT KILL ends a command with an error
	}()
}

// A System recovers from every state of Redis without intervention and settles the
// timers that ran meanwhile. A call returns an error of the documented class.
func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	for name, x := range redisFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runFault(t, x)
		})
	}
}

func runFault(t *testing.T, x fault) {
	t.Helper()
	s := &site{server: redistest.Start(t, x.args...)}
	s.admin = s.server.Client(t)
	s.proxy = faultproxy.Start(t, s.server.Addr)
	s.addr.Store(&s.proxy.Addr)
	require.NoError(t, s.admin.Do(t.Context(), "ACL", "SETUSER", "node", "on", ">secret", "+@all", "~*", "&*").Err())
	node := func(answered time.Duration) *redis.Client {
		return s.server.Client(t, func(o *redis.Options) {
			o.ReadTimeout, o.MaxRetries = answered, -1
			o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, *s.addr.Load())
			}
			if x.alone { // the test of this fault is only about its rights
				o.Username, o.Password = "node", "secret"
			}
		})
	}
	hit, other := wakebell.NewTopic[string]("hit"), wakebell.NewTopic[string]("other")
	running, finish := make(chan struct{}), make(chan struct{})
	handled := make(chan string, 10)
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		if timer.Body == "long" && timer.Attempt == 1 {
			close(running)
			<-finish
		}
		handled <- timer.Body
		return nil
	}
	sys := stacktest.Serve(t, node(2*time.Second), wakebell.Handle(hit, handle), wakebell.Handle(other, handle))
	// The timeout is long enough that errors are caused by the fault and not by a
	// slow machine.
	hasty := stacktest.Client(t, node(4*time.Second), connection.Config{RetryFor: -1})
	_, err := hit.Schedule(t.Context(), hasty, "long")
	require.NoError(t, err)
	stacktest.Receive(t, running)

	x.strike(t, s)
	later := wakebell.In(time.Hour)
	if x.want != nil {
		_, err := hit.Schedule(t.Context(), hasty, "x", wakebell.ID("never"), later)
		require.ErrorIs(t, err, x.want)
	}
	waiting := make(chan error, 1)
	go func() { // a call with enough time waits until the fault is over
		ctx, cancel := context.WithTimeout(t.Context(), patient)
		defer cancel()
		_, err := hit.Schedule(ctx, sys.Client(), "x", wakebell.ID("waits"), later)
		waiting <- err
	}()
	close(finish)
	require.Equal(t, "long", stacktest.Receive(t, handled))
	if x.settles {
		stacktest.Eventually(t, func() bool { return sys.Counters()["hit"].Acked == 1 }, "it is settled meanwhile")
	}
	if x.alone {
		stacktest.Eventually(t, func() bool {
			h := sys.Health(t.Context())
			return h.Ready && h.Topics[0].Topic == "hit" && h.Topics[0].Failures > 0 && errors.Is(h.Topics[0].Err, x.want)
		})
		_, err = other.Schedule(t.Context(), hasty, "goes on")
		require.NoError(t, err)
		require.Equal(t, "goes on", stacktest.Receive(t, handled))
	}
	passes := x.want == nil || wakebell.Retryable(x.want) && x.want != wakebell.ErrMemoryFull //nolint:errorlint // it is the sentinel itself
	if !passes {
		require.ErrorIs(t, stacktest.Receive(t, waiting), x.want, "a call must not wait for a fault that needs a repair")
	}
	x.mend(t, s)
	if passes {
		err := stacktest.Receive(t, waiting)
		require.True(t, err == nil || x.want == nil, err)
	}
	stacktest.Eventually(t, func() bool { return sys.Counters()["hit"].Acked == 1 }, "it is settled")
	for _, topic := range []wakebell.Topic[string]{hit, other} {
		stacktest.Eventually(t, func() bool {
			_, err := topic.Schedule(t.Context(), sys.Client(), topic.Name(), wakebell.ID("after"))
			return err == nil
		})
		for stacktest.Receive(t, handled) != topic.Name() {
			continue // a repeated call, after a late answer to the first
		}
	}
}

// An eviction policy that deletes timers is logged as a warning.
func TestEvictionPolicyCausesWarning(t *testing.T) {
	t.Parallel()
	for policy, warnings := range map[string]int{"noeviction": 0, "allkeys-lru": 1, "volatile-ttl": 1} {
		log := &stacktest.Logged{}
		rdb := redistest.Start(t, "--maxmemory-policy", policy).Client(t)
		stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: log.Logger()}), wakebell.Config{}))
		require.Equal(t, warnings, log.Count("maxmemory_policy="+policy), policy)
	}
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	require.NoError(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "plain", "on", ">secret", "+@all", "-info", "~*", "&*").Err())
	rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" })
	log := &stacktest.Logged{}
	stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: log.Logger()}), wakebell.Config{}))
	require.Zero(t, log.Count("maxmemory_policy"), "without the right to INFO there is no warning")
}
