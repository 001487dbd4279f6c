package stacktest

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
)

// Message converts a draft to the message that represents it on a network.
func Message(t testing.TB, d wakebell.Draft) *messages.ScheduleRequest {
	t.Helper()
	m, err := wakebell.ScheduleMessage(d)
	require.NoError(t, err)
	wire, err := proto.Marshal(m)
	require.NoError(t, err)
	var read messages.ScheduleRequest
	require.NoError(t, proto.Unmarshal(wire, &read))
	return &read
}

// Post is a System and the ActorSystem from which the tests send it messages.
type Post struct {
	*wakebell.System
	Actors *actor.ActorSystem
	Topic  wakebell.Topic[string]
}

// Posted starts a System without handlers, unless cfg has some.
func Posted(t testing.TB, rdb redis.UniversalClient, cfg wakebell.Config) Post {
	t.Helper()
	return PostedOn(t, conntest.New(t, rdb, connection.Config{}), cfg)
}

// PostedOn is Posted with a Connection.
func PostedOn(t testing.TB, conn *connection.Connection, cfg wakebell.Config) Post {
	t.Helper()
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = -1
	}
	system := ActorSystem()
	sys, err := wakebell.New(system, conn, cfg)
	require.NoError(t, err)
	return Post{Launch(t, sys), system, wakebell.NewTopic[string](redistest.Name(t))}
}

// Request sends a message to the gateway.
func (p Post) Request(request any) *actor.Future {
	return p.Actors.Root.RequestFuture(p.Gateway(), request, Patience)
}
