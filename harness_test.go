package wakebell_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
)

// patience bounds the waits for other goroutines and processes.
const patience = 30 * time.Second

// quiet discards the log of systems that a test makes fail on purpose.
var quiet = slog.New(slog.DiscardHandler)

// build makes a System without a log in a new ActorSystem.
func build(t testing.TB, rdb redis.UniversalClient, cfg wakebell.Config) *wakebell.System {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = -1
	}
	sys, err := wakebell.New(actorSystem(), rdb, cfg)
	require.NoError(t, err)
	return sys
}

func actorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}

// serve runs a System with these handlers until the end of the test.
func serve(t testing.TB, rdb redis.UniversalClient, handlers ...wakebell.Handler) *wakebell.System {
	t.Helper()
	return launch(t, build(t, rdb, wakebell.Config{Handlers: handlers}))
}

// launch starts a System and stops it at the end of the test. It ignores handlers
// that the test left running.
func launch(t testing.TB, sys *wakebell.System) *wakebell.System {
	t.Helper()
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop() })
	return sys
}

func client(t testing.TB, rdb redis.UniversalClient, cfg wakebell.ClientConfig) *wakebell.Client {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	c, err := wakebell.NewClient(rdb, cfg)
	require.NoError(t, err)
	return c
}

// receive waits for a value, or until the channel is closed, for at most patience.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// eventually waits for a state of Redis or of a System.
func eventually(t testing.TB, condition func() bool, about ...any) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, about...)
}

// peer runs the same commands as faststream-redis-timers.
type peer struct {
	rdb   redis.UniversalClient
	topic string
}

func (p peer) timeline() string { return "timers_timeline:" + p.topic }
func (p peer) payloads() string { return "timers_payloads:" + p.topic }

func (p peer) publish(t testing.TB, id, payload string, at float64) {
	t.Helper()
	_, err := p.rdb.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.ZAdd(t.Context(), p.timeline(), redis.Z{Score: at, Member: id})
		tx.HSet(t.Context(), p.payloads(), id, payload)
		return nil
	})
	require.NoError(t, err)
}

// claim writes the end of a lease, as the peer's claim does.
func (p peer) claim(t testing.TB, id string, until float64) {
	t.Helper()
	require.NoError(t, p.rdb.ZAdd(t.Context(), p.timeline(), redis.Z{Score: until, Member: id}).Err())
}

// commit deletes a timer unconditionally, as the peer's ack and cancel do.
func (p peer) commit(t testing.TB, id string) {
	t.Helper()
	require.NoError(t, p.rdb.ZRem(t.Context(), p.timeline(), id).Err())
	require.NoError(t, p.rdb.HDel(t.Context(), p.payloads(), id).Err())
}

// virtually runs f in a synctest bubble.
func virtually(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A message that arrives after a stop starts a timer of protoactor's, which
		// must end before the bubble does.
		t.Cleanup(func() { <-time.After(5 * time.Second) })
		f(t)
	})
}

// skewed connects to an embedded Redis whose clock is ahead of the nodes' by offset.
// It must be called in a synctest bubble.
func skewed(t testing.TB, offset time.Duration) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	return skewedBy(t, func() time.Duration { return offset })
}

// skewedBy is skewed with an offset that may change.
func skewedBy(t testing.TB, offset func() time.Duration) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	var server *miniredis.Miniredis
	rdb, server := redistest.Embedded(t, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return clockConn{c, func() { server.SetTime(time.Now().Add(offset())) }}, err
		}
	})
	return rdb, server
}

// logged records a log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns how often a text was logged.
func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// clockConn sets the server's clock before every command.
type clockConn struct {
	net.Conn
	set func()
}

func (c clockConn) Write(p []byte) (int, error) {
	c.set()
	return c.Conn.Write(p)
}
