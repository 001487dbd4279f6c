package stacktest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	protocol "github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/gates"
	"github.com/wakebell/wakebell/wakebelltype"
)

// GatesOn returns Gates as those of a process, until the end of the test.
func GatesOn(t testing.TB, rdb redis.UniversalClient, cfg gate.Config) *gate.Gates {
	t.Helper()
	return GatesWith(t, conntest.New(t, rdb, connection.Config{}), cfg)
}

// GatesWith is GatesOn with a Connection.
func GatesWith(t testing.TB, conn *connection.Connection, cfg gate.Config) *gate.Gates {
	t.Helper()
	g, err := gate.New(conn, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// CallCount counts commands.
type CallCount struct{ atomic.Int64 }

// DialHook counts nothing.
func (c *CallCount) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook counts nothing.
func (c *CallCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook counts a command.
func (c *CallCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.Add(1)
		return next(ctx, cmd)
	}
}

// Mortal joins a gate as a process without a presence.
func Mortal(t testing.TB, rdb redis.UniversalClient, name, process string, lease time.Duration) {
	t.Helper()
	store, err := gates.New(rdb, wakebelltype.GateKeys{}, nil)
	require.NoError(t, err)
	_, err = store.Exchange(t.Context(), &protocol.Request{
		Gate: name, Process: process, Sequence: 1, Ops: []protocol.Op{{Kind: protocol.Join, Number: 1}},
		Terms: protocol.Terms{Lease: lease, Signal: 500 * time.Millisecond, Presence: 2 * time.Second},
	})
	require.NoError(t, err)
}
