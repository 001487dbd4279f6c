package life_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// A program may stop its System from elsewhere, such as an administrative endpoint, while
// its main function waits in Run.
func TestRunReturnsWhenAnotherGoroutineStopsSystem(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		started, free, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
		sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
				defer close(returned)
				close(started)
				<-free
				return nil
			}, wakebell.LeaseTTL(time.Hour)),
		}})
		_, err := topic.Schedule(t.Context(), sys.Client(), "x", wakebell.ID("inv-42"))
		require.NoError(t, err)
		ran := make(chan error, 1)
		go func() { ran <- sys.Run(t.Context()) }()
		stacktest.Receive(t, started)
		err = sys.Stop()
		require.ErrorIs(t, err, wakebell.ErrUnfinished)
		require.Equal(t, err, stacktest.Receive(t, ran), "Run returns the error of that Stop")
		close(free)
		stacktest.Receive(t, returned)
	})
}

func TestStopEndsStartThatWaitsForRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	for name, begin := range map[string]struct {
		call func(*wakebell.System) error
		want error
	}{
		"Start": {func(s *wakebell.System) error { return s.Start(t.Context()) }, wakebell.ErrNotRunning},
		"Run":   {func(s *wakebell.System) error { return s.Run(t.Context()) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dialed := make(chan struct{}, 1)
			rdb := server.Client(t, func(o *redis.Options) {
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					select {
					case dialed <- struct{}{}:
					default:
					}
					return new(net.Dialer).DialContext(ctx, network, addr)
				}
			})
			sys := stacktest.Build(t, rdb, wakebell.Config{WaitForRedis: time.Hour})
			ended := make(chan error, 1)
			go func() { ended <- begin.call(sys) }()
			stacktest.Receive(t, dialed)
			require.NoError(t, sys.Stop())
			require.ErrorIs(t, stacktest.Receive(t, ended), begin.want)
		})
	}
}
