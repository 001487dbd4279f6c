package remote_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Errors that a peer receives while Redis is down contain no address; the log does.
func TestErrorsContainNoAddressOfRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	log := &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	sys, err := wakebell.New(actorSystem(), conntest.New(t, s.Client(t), connection.Config{Logger: logger}), wakebell.Config{DrainTimeout: -1})
	require.NoError(t, err)
	server, err := remote.Serve(sys, remote.Config{})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop(); server.Stop() })
	c, err := remote.Dial(t.Context(), server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	n := &node{System: sys, server: server, address: server.Address(), gateway: sys.Gateway().GetId()}
	conn := n.dial(t)
	s.Kill()
	_, session := c.Stats(t.Context(), "topic")
	_, operation := c.Control(t.Context(), "topic")
	unary := conn.Invoke(t.Context(), rpc.Timers_GetTopicStats_FullMethodName, &messages.GetTopicStatsRequest{Topic: "topic"}, &messages.GetTopicStatsResponse{})
	for _, err := range []error{session, operation, unary} {
		require.Error(t, err)
		require.NotContains(t, err.Error(), s.Addr, "%T", err)
		require.NotContains(t, err.Error(), "dial tcp")
	}
	// A read is repeated until its time is over, which the gateway or the store notices first.
	require.True(t, errors.Is(session, wakebell.ErrUnavailable) || errors.Is(session, context.DeadlineExceeded), "%v", session)
	eventually(t, func() bool { return len(log.with("a peer's request failed")) > 0 })

	found, err := c.Diagnose(t.Context(), "topic")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.GradeBad, found[0].Grade)
	require.Contains(t, found[0].Found, "(address withheld)")
	require.NotContains(t, fmt.Sprint(found), s.Addr)
	require.Contains(t, log.with("a peer's diagnosis found a fault")[0], s.Addr)
}
