package stacktest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Losing is a Source that refuses to extend the lease of one timer.
type Losing struct {
	poller.Source
	ID atomic.Value
}

// Exchange refuses to extend the lease of the timer, and passes all else on.
func (s *Losing) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	reply, err := s.Source.Exchange(ctx, r)
	for i, held := range r.Extend {
		if err == nil && held.ID == s.ID.Load() {
			reply.Refused = append(reply.Refused, exchange.Refusal{Index: len(r.Settle) + i, Reason: exchange.Lost})
		}
	}
	return reply, err
}

// AwaitCounters waits until the counters of a topic satisfy done, and returns them.
func AwaitCounters(t testing.TB, sys *wakebell.System, topic string, done func(wakebelltype.Counters) bool) wakebelltype.Counters {
	t.Helper()
	Eventually(t, func() bool { return done(sys.Counters()[topic]) })
	return sys.Counters()[topic]
}

// Forwarding starts a System that forwards a topic to target.
func Forwarding(t *testing.T, rdb redis.UniversalClient, target func(*actor.ActorSystem) wakebell.Target, opts ...wakebell.HandlerOption) (*wakebell.System, wakebell.Topic[Invoice]) {
	t.Helper()
	topic := wakebell.NewTopic[Invoice](redistest.Name(t))
	system := ActorSystem()
	sys, err := wakebell.New(system, conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Forward(topic, target(system), opts...),
	}})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, sys.Stop()) })
	return sys, topic
}

// To returns a target with one actor that calls receive.
func To(receive actor.ReceiveFunc) func(*actor.ActorSystem) wakebell.Target {
	return func(s *actor.ActorSystem) wakebell.Target {
		return wakebell.ToActor(s.Root.Spawn(actor.PropsFromFunc(receive)))
	}
}

// Blocking returns a handler that sends the ids that it receives to a channel, and
// then waits for release.
func Blocking(topic wakebell.Topic[string], opts ...wakebell.HandlerOption) (_ wakebell.Handler, running <-chan string, release func()) {
	ids, released := make(chan string, 100), make(chan struct{})
	return wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error {
		ids <- t.ID
		<-released
		return nil
	}, opts...), ids, func() { close(released) }
}

// Start starts a System on the shared Redis until the end of the test.
func Start(t *testing.T, cfg wakebell.Config) *wakebell.System {
	t.Helper()
	sys, err := wakebell.New(ActorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), cfg)
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, sys.Stop()) })
	return sys
}

// AwaitDead waits for the first dead letter of a topic.
func AwaitDead(t *testing.T, sys *wakebell.System, topic string) wakebell.DeadLetter {
	t.Helper()
	var letters []wakebell.DeadLetter
	require.Eventually(t, func() bool {
		letters = nil
		for d, err := range sys.Client().DeadLetters(t.Context(), topic, wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
			require.NoError(t, err)
			letters = append(letters, d)
		}
		return len(letters) > 0
	}, 30*time.Second, 5*time.Millisecond)
	require.Len(t, slices.Clip(letters), 1)
	return letters[0]
}

// WithOnDead starts a System whose OnDead sends the dead letters to a channel.
func WithOnDead(t *testing.T, rdb redis.UniversalClient, handlers ...wakebell.Handler) (*wakebell.System, *wakebell.Client, <-chan wakebell.DeadLetter) {
	t.Helper()
	received := make(chan wakebell.DeadLetter, 100)
	sys := Launch(t, Build(t, rdb, wakebell.Config{
		Handlers: handlers,
		OnDead:   func(_ context.Context, d wakebell.DeadLetter) { received <- d },

		DrainTimeout: Patience,
	}))
	return sys, sys.Client(), received
}

// Tail watches a topic until the end of the test. It waits until this number of nodes
// have announced themselves.
func Tail(t *testing.T, c *wakebell.Client, topic string, nodes int) <-chan wakebelltype.Event {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	events := make(chan wakebelltype.Event, 10_000)
	ended := make(chan error, 1)
	go func() {
		var last error
		for e, err := range c.Tail(ctx, topic) {
			if last = err; err == nil && e.Kind != wakebelltype.EventState {
				events <- e
			}
		}
		ended <- last
	}()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, Receive(t, ended), context.Canceled)
	})
	require.Equal(t, wakebelltype.EventAttached, Receive(t, events).Kind)
	seen := map[string]bool{}
	for len(seen) < nodes {
		e := Receive(t, events)
		require.Equal(t, wakebelltype.Event{Kind: wakebelltype.EventNode, Topic: topic, Node: e.Node}, e)
		seen[e.Node] = true
	}
	return events
}
