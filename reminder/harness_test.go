package reminder_test

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// patience bounds the waits for other goroutines and for Redis.
const patience = 30 * time.Second

var quiet = slog.New(slog.DiscardHandler)

func actorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}

// launch starts a System in a new ActorSystem until the end of the test.
func launch(t testing.TB, rdb redis.UniversalClient, cfg wakebell.Config) *wakebell.System {
	t.Helper()
	return launchOn(t, conntest.New(t, rdb, connection.Config{}), cfg)
}

// launchOn is launch with a Connection.
func launchOn(t testing.TB, conn *connection.Connection, cfg wakebell.Config) *wakebell.System {
	t.Helper()
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = -1
	}
	sys, err := wakebell.New(actorSystem(), conn, cfg)
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop() })
	return sys
}

// run runs a System on a new Redis while use runs.
func run(cfg wakebell.Config, use func(*wakebell.System)) {
	server := embedded.Start()
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	sys, err := wakebell.New(actorSystem(), conn, cfg)
	if err == nil {
		err = sys.Start(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	use(sys)
	if err := sys.Stop(); err != nil {
		log.Fatal(err)
	}
}

// receive waits for a value.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		require.FailNow(t, "no value was sent")
		panic("unreachable")
	}
}

// eventually waits for the state of Redis or of a System.
func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond)
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

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}
