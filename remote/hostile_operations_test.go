package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/remote"
)

func dialAs(t testing.TB, n *node, token string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(t.Context(), n.address, conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{
		Config:   remote.Config{Token: token},
		DeadLink: time.Minute, // so that no stall makes it dead
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// 64 Tails of one principal must not lock other operators out.
func TestPrincipalHasItsShareOfOperations(t *testing.T) {
	t.Parallel()
	n := serve(t, withMallory())
	mallory, operator, topic := dialAs(t, n, malloryToken), dialAs(t, n, secret), n.topic.Name()
	ctx, cancel := context.WithCancel(t.Context())
	for range 16 {
		events, _ := watch(ctx, mallory, topic)
		receive(t, events)
	}
	for _, err := range mallory.Tail(t.Context(), topic) {
		require.ErrorIs(t, err, wakebell.ErrOverloaded)
	}
	_, err := mallory.Control(t.Context(), topic)
	require.NoError(t, err, "short calls have bounds of their own")
	events, _ := watch(t.Context(), operator, topic)
	receive(t, events)
	cancel()
	eventually(t, func() bool {
		for _, err := range mallory.Tail(t.Context(), topic) {
			return err == nil
		}
		return false
	})
}
