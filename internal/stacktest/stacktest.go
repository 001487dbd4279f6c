// Package stacktest has what the tests of the whole stack share: Systems and Clients on a
// real or an embedded Redis, values to wait for, and a peer that writes as Python does.
// The tests are in the folders below it, by what they are about.
package stacktest

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
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
)

// Root is the folder of the module, seen from the folder of a test.
const Root = "../../../"

// Patience bounds the waits for other goroutines and processes.
const Patience = 2 * time.Minute

// Quiet discards the log of systems that a test makes fail on purpose.
var Quiet = slog.New(slog.DiscardHandler)

// Build makes a System without a log in a new ActorSystem.
func Build(t testing.TB, rdb redis.UniversalClient, cfg wakebell.Config) *wakebell.System {
	t.Helper()
	return BuildOn(t, conntest.New(t, rdb, connection.Config{}), cfg)
}

// BuildOn is Build with a Connection.
func BuildOn(t testing.TB, conn *connection.Connection, cfg wakebell.Config) *wakebell.System {
	t.Helper()
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = -1
	}
	sys, err := wakebell.New(ActorSystem(), conn, cfg)
	require.NoError(t, err)
	return sys
}

// ActorSystem returns an ActorSystem that logs nothing.
func ActorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return Quiet }))
}

// Serve runs a System with these handlers until the end of the test.
func Serve(t testing.TB, rdb redis.UniversalClient, handlers ...wakebell.Handler) *wakebell.System {
	t.Helper()
	return Launch(t, Build(t, rdb, wakebell.Config{Handlers: handlers}))
}

// Launch starts a System and stops it at the end of the test. It ignores handlers
// that the test left running.
func Launch(t testing.TB, sys *wakebell.System) *wakebell.System {
	t.Helper()
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop() })
	return sys
}

// Client returns a Client that logs nothing unless cfg has a Logger.
func Client(t testing.TB, rdb redis.UniversalClient, cfg connection.Config) *wakebell.Client {
	t.Helper()
	c, err := wakebell.NewClient(conntest.New(t, rdb, cfg))
	require.NoError(t, err)
	return c
}

// Receive waits for a value, or until the channel is closed, for at most patience.
func Receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		require.FailNow(t, "nothing came")
		panic("unreachable")
	}
}

// Eventually waits for a state of Redis or of a System.
func Eventually(t testing.TB, condition func() bool, about ...any) {
	t.Helper()
	require.Eventually(t, condition, Patience, 2*time.Millisecond, about...)
}

// Peer runs the same commands as faststream-redis-timers.
type Peer struct {
	Rdb   redis.UniversalClient
	Topic string
}

// Timeline is the key of the timeline.
func (p Peer) Timeline() string { return "timers_timeline:" + p.Topic }

// Payloads is the key of the payloads.
func (p Peer) Payloads() string { return "timers_payloads:" + p.Topic }

// Publish stores a timer.
func (p Peer) Publish(t testing.TB, id, payload string, at float64) {
	t.Helper()
	_, err := p.Rdb.TxPipelined(t.Context(), func(tx redis.Pipeliner) error {
		tx.ZAdd(t.Context(), p.Timeline(), redis.Z{Score: at, Member: id})
		tx.HSet(t.Context(), p.Payloads(), id, payload)
		return nil
	})
	require.NoError(t, err)
}

// Claim writes the end of a lease, as the peer's claim does.
func (p Peer) Claim(t testing.TB, id string, until float64) {
	t.Helper()
	require.NoError(t, p.Rdb.ZAdd(t.Context(), p.Timeline(), redis.Z{Score: until, Member: id}).Err())
}

// Commit deletes a timer unconditionally, as the peer's ack and cancel do.
func (p Peer) Commit(t testing.TB, id string) {
	t.Helper()
	require.NoError(t, p.Rdb.ZRem(t.Context(), p.Timeline(), id).Err())
	require.NoError(t, p.Rdb.HDel(t.Context(), p.Payloads(), id).Err())
}

// Virtually runs f in a synctest bubble.
func Virtually(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A message that arrives after a stop starts a timer of protoactor's, which
		// must end before the bubble does.
		t.Cleanup(func() { <-time.After(5 * time.Second) })
		f(t)
	})
}

// Skewed connects to an embedded Redis whose clock is ahead of the nodes' by offset.
// It must be called in a synctest bubble.
func Skewed(t testing.TB, offset time.Duration) (*redis.Client, *miniredis.Miniredis) {
	t.Helper()
	return SkewedBy(t, func() time.Duration { return offset })
}

// SkewedBy is skewed with an offset that may change.
func SkewedBy(t testing.TB, offset func() time.Duration) (*redis.Client, *miniredis.Miniredis) {
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

// Logged records a log.
type Logged struct {
	Mu   sync.Mutex
	Text bytes.Buffer
}

// Logger returns a logger whose text is kept.
func (l *Logged) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *Logged) Write(p []byte) (int, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Text.Write(p)
}

// Count returns how often a text was logged.
func (l *Logged) Count(text string) int {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return strings.Count(l.Text.String(), text)
}

// clockConn sets the server's clock before every command.
type clockConn struct {
	net.Conn
	set func()
}

// Write sets the clock, except before what a subscriber sends: the server may be sending it
// a message meanwhile, and takes no other call before that has been read.
func (c clockConn) Write(p []byte) (int, error) {
	if sent := bytes.ToLower(p); !bytes.Contains(sent, []byte("subscribe\r\n")) && !bytes.Contains(sent, []byte("\r\nping\r\n")) {
		c.set()
	}
	return c.Conn.Write(p)
}
