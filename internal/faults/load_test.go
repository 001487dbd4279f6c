package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
)

// load configures the schedulers of a round.
type load struct {
	clients int
	pace

	// connect returns the connection of a client. Faults are recorded by its name.
	connect func(name string) redis.UniversalClient
	timers  func(name string) wakebell.TimerClient // in place of connect, for clients without Redis
}

// usual is the load of most scenarios: short work, and sometimes a failure, a panic
// or a settlement by the handler itself.
func (w *world) usual() load {
	return load{
		clients: 3, pace: usualPace(),
		connect: func(string) redis.UniversalClient { return w.rdb },
	}
}

// begin starts the schedulers. end stops them.
func (w *world) begin(l load) (end func()) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	var running sync.WaitGroup
	for i := range l.clients {
		s := &scheduler{
			pace: l.pace, calls: w.deliveries,
			name: fmt.Sprintf("client-%d", i+1),
			rng:  rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64())),
		}
		if l.timers != nil {
			s.client = l.timers(s.name)
		} else {
			s.client = newClient(w.T, l.connect(s.name))
		}
		running.Go(func() { s.run(ctx) })
	}
	var once sync.Once
	end = func() { once.Do(func() { stop(); running.Wait() }) }
	w.Cleanup(end)
	return end
}

func newClient(t testing.TB, rdb redis.UniversalClient) *wakebell.Client {
	t.Helper()
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{Logger: quiet}))
	require.NoError(t, err)
	return c
}
