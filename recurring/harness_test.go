package recurring_test

import (
	"context"
	"log"
	"log/slog"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func actorSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
}

// open opens the schedules on rdb.
func open(t testing.TB, rdb redis.UniversalClient, cfg connection.Config) *recurring.Schedules {
	t.Helper()
	s, err := recurring.New(conntest.New(t, rdb, cfg))
	require.NoError(t, err)
	return s
}

// connect calls use with the schedules on a new Redis.
func connect(use func(context.Context, *recurring.Schedules)) {
	server := embedded.Start()
	defer server.Close()
	rdb := server.Client()
	defer func() { check(rdb.Close()) }()
	conn, err := connection.New(rdb, connection.Config{})
	check(err)
	s, err := recurring.New(conn)
	check(err)
	use(context.Background(), s)
}

// run runs a System on a new Redis while use runs.
func run(cfg wakebell.Config, use func()) {
	server := embedded.Start()
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{Logger: quiet})
	check(err)
	sys, err := wakebell.New(actorSystem(), conn, cfg)
	check(err)
	check(sys.Start(context.Background()))
	use()
	check(sys.Stop())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
