package remote_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

// Load balancers send no requests to a node that would refuse them.
func TestHealthServiceFollowsSystem(t *testing.T) {
	t.Parallel()
	const serving, not = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING
	topic := wakebell.NewTopic[string](redistest.Name(t))
	working, finish := make(chan struct{}), make(chan struct{})
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{Logger: quiet}), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
			close(working)
			<-finish
			return nil
		})},
	})
	require.NoError(t, err)
	server, err := remote.Serve(sys, remote.Config{})
	require.NoError(t, err)
	n := &node{System: sys, server: server, address: server.Address(), topic: topic}
	t.Cleanup(server.Stop)

	c := grpc_health_v1.NewHealthClient(n.dial(t))
	services := []string{"", "wakebell.v1.Timers", "wakebell.v1.Operations"}
	becomes := func(want grpc_health_v1.HealthCheckResponse_ServingStatus, when string) {
		t.Helper()
		for _, service := range services {
			eventually(t, func() bool {
				answer, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
				return err == nil && answer.GetStatus() == want
			}, when)
		}
	}
	told := map[string]*changes{}
	for _, service := range services {
		answer, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		require.Equal(t, not, answer.GetStatus(), "before Start")
		watch, err := c.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		c := &changes{}
		told[service] = c
		go func() {
			for m, err := watch.Recv(); err == nil; m, err = watch.Recv() {
				c.add(m.GetStatus())
			}
		}()
		c.become(t, not)
	}

	require.NoError(t, sys.Start(t.Context()))
	becomes(serving, "after Start")
	_, err = topic.Schedule(t.Context(), sys.Client(), "x")
	require.NoError(t, err)
	receive(t, working)
	for _, c := range told {
		c.become(t, serving)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- sys.Stop() }()
	becomes(not, "while Stop drains")
	require.Empty(t, stopped)
	close(finish)
	require.NoError(t, receive(t, stopped))
	becomes(not, "after Stop")
	for _, c := range told {
		c.become(t, not)
	}
}

// changes are the statuses that a watch received. There may be more of them than the
// test causes: a machine that stalls is not healthy for that time.
type changes struct {
	mu   sync.Mutex
	last grpc_health_v1.HealthCheckResponse_ServingStatus
	same bool // whether a status was received that was no change
}

func (c *changes) add(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.same = c.same || status == c.last
	c.last = status
}

func (c *changes) become(t *testing.T, want grpc_health_v1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.last == want
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.False(t, c.same, "only changes are sent")
}

// A node without Redis is not healthy until Redis is back.
func TestHealthServiceFollowsRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redis.Client(t), connection.Config{Logger: quiet}), wakebell.Config{})
	require.NoError(t, err)
	server, err := remote.Serve(sys, remote.Config{})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() {
		_ = sys.Stop()
		server.Stop()
	})
	c := grpc_health_v1.NewHealthClient((&node{System: sys, server: server, address: server.Address()}).dial(t))
	becomes := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		eventually(t, func() bool {
			answer, err := c.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			return err == nil && answer.GetStatus() == want
		})
	}
	becomes(grpc_health_v1.HealthCheckResponse_SERVING)
	redis.Stop()
	becomes(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	redis.Restart(t)
	becomes(grpc_health_v1.HealthCheckResponse_SERVING)
}
