package fleet

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// scenario runs a test with two nodes, and a client of each.
func scenario(t *testing.T, run func(t *testing.T, f *fleet, clients []*remote.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, end := newFleet(t.Context(), &Plan{Nodes: 2, Clients: 2})
		var clients []*remote.Client
		for i := range f.plan.Nodes {
			f.nodes, f.clients = append(f.nodes, newNode(f, i)), append(f.clients, newClient(f, i))
			require.NoError(t, f.nodes[i].start())
			cfg := remote.DialConfig{Config: remote.Config{Token: secret}, TurnTTL: leaseTTL}
			testhook.Connect(&cfg.Config, f.net.of(f.clients[i].host))
			c, err := remote.Dial(t.Context(), f.nodes[i].address(), nil, cfg)
			require.NoError(t, err)
			clients = append(clients, c)
		}
		stop := sync.OnceFunc(func() {
			for _, c := range clients {
				c.Close()
			}
			f.stop(end)
		})
		defer stop() // a test that fails would go on for ever
		run(t, f, clients)
		stop()
		require.Empty(t, f.record.trouble)
	})
}

// silence lets nothing through between the first client and its node until the end of the test.
func (f *fleet) silence() {
	there, back := f.net.path(f.clients[0].host, f.nodes[0].host), f.net.path(f.nodes[0].host, f.clients[0].host)
	there.silence(true)
	back.silence(true)
}

// A node that stops does not pass on the turn of a client that may not hear of it.
func TestTurnBehindSilentLinkEndsBeforeNextWhenNodeStops(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
			turn, err := clients[0].Gates().Acquire(t.Context(), "gate")
			require.NoError(t, err)
			ended := make(chan time.Time, 1)
			context.AfterFunc(turn.Context(), func() { ended <- time.Now() })
			if silent {
				f.silence()
			}
			go f.nodes[0].drain()
			next, err := clients[1].Gates().Acquire(t.Context(), "gate")
			require.NoError(t, err)
			require.False(t, time.Now().Before(<-ended), "silent %v: the turn ends before the next begins", silent)
			require.Greater(t, next.Fence(), turn.Fence())
			require.NoError(t, next.Release(t.Context()))
		})
	}
}

// A node that stops does not release the lease of a subscriber that may not hear of it.
func TestHandlerBehindSilentLinkEndsBeforeNextWhenNodeStops(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan error, 2)
			began, ended := make(chan struct{}), make(chan time.Time, 1)
			subscribe := func(c *remote.Client, name string, handle func(context.Context) error) {
				of := remote.Subscription{Topic: orders, Name: name}
				go func() {
					over <- c.Subscribe(ctx, of, func(ctx context.Context, _ *messages.Lease) error { return handle(ctx) })
				}()
			}
			subscribe(clients[0], "first", func(ctx context.Context) error {
				close(began)
				<-ctx.Done()
				ended <- time.Now()
				return ctx.Err()
			})
			_, err := wakebell.NewTopic[string](orders).Schedule(t.Context(), clients[0], "x")
			require.NoError(t, err)
			<-began
			if silent {
				f.silence()
			}
			second := make(chan time.Time, 1)
			subscribe(clients[1], "second", func(context.Context) error { second <- time.Now(); return nil })
			begin := time.Now()
			f.nodes[0].drain()
			next := <-second
			require.False(t, next.Before(<-ended), "silent %v: the first handler ends before the second begins", silent)
			if !silent {
				require.Less(t, next.Sub(begin), leaseTTL+time.Second, "a subscriber that hears of the drain gives the timer back")
			}
			cancel()
			for range 2 {
				require.NoError(t, <-over)
			}
		})
	}
}

// A subscriber comes while the node gives up a queue, which the node cannot take up again for a
// while, because Redis is away.
func TestSubscriptionOutlivesRedisThatIsAway(t *testing.T) {
	t.Parallel()
	scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
		of, handled := remote.Subscription{Queue: letters.Keys(), Name: "s"}, make(chan string, 10)
		publish := func(body string) {
			_, err := letters.Publish(t.Context(), clients[1].Queues(), body)
			require.NoError(t, err)
		}
		var over sync.WaitGroup
		defer over.Wait()
		subscribe := func(takes time.Duration) (cancel func()) {
			ctx, cancel := context.WithCancel(t.Context())
			over.Go(func() {
				err := clients[0].Subscribe(ctx, of, func(_ context.Context, l *messages.Lease) error {
					body, err := letters.Read(l)
					handled <- body
					<-time.After(takes)
					return err
				})
				require.NoError(t, err)
			})
			return cancel
		}
		leave := subscribe(time.Second)
		publish("first")
		require.Equal(t, "first", <-handled)
		f.store.goAway() // the verdict cannot be stored, and the node waits with the end of the queue
		<-time.After(time.Second)
		leave()
		<-time.After(500 * time.Millisecond)
		defer subscribe(0)()
		<-time.After(10 * time.Second)
		f.store.comeBack()
		<-time.After(leaseTTL)
		publish("second")
		for body := ""; body != "second"; {
			select {
			case body = <-handled:
			case <-time.After(time.Minute):
				require.FailNow(t, "the message was not handled")
			}
		}
	})
}

// atNode makes requests of HTTP to a node, from the host of a client.
func (f *fleet) atNode(client, node int) web {
	return web{f.webClient(f.clients[client].host), f.nodes[node]}
}

// A claim for several leases waits for further ones after the first, and says for how long that one
// lasts from the answer on.
func TestClaimOverHTTPSaysHowLongLeasesLast(t *testing.T) {
	t.Parallel()
	scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
		_, err := wakebell.NewTopic[string](parcels).Schedule(t.Context(), clients[1], "x")
		require.NoError(t, err)
		var got struct {
			Leases []pulled `json:"leases"`
		}
		at := f.atNode(0, 0)
		defer at.client.CloseIdleConnections()
		require.NoError(t, at.call(t.Context(), http.MethodPost, "/v1/topics/"+parcels+"/leases:claim", map[string]any{"max": 2}, &got))
		received := time.Now().Add(-usual)
		require.Len(t, got.Leases, 1)
		ttl, err := time.ParseDuration(got.Leases[0].TTL)
		require.NoError(t, err)
		require.Positive(t, ttl)
		require.False(t, received.Add(ttl).After(got.Leases[0].Delivered.Add(leaseTTL)), "it lasts for %v from the answer on", ttl)
	})
}

// The answer to a request for a turn does not say that it lasts for longer than the node has it in
// Redis: the node may die.
func TestTurnOverHTTPEndsBeforeNextWhenNodeDies(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{time.Second, time.Minute} {
		scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
			at := f.atNode(0, 0)
			defer at.client.CloseIdleConnections()
			var got struct {
				TTL    string `json:"ttl"`
				Waited string `json:"waited"`
				Fence  uint64 `json:"fence"`
			}
			sent := time.Now()
			require.NoError(t, at.call(t.Context(), http.MethodPost, "/v1/gates/gate/turns", map[string]any{"ttl": ttl.String()}, &got))
			waited, err := time.ParseDuration(got.Waited)
			require.NoError(t, err)
			lasts, err := time.ParseDuration(got.TTL)
			require.NoError(t, err)
			f.nodes[0].crash()
			next, err := clients[1].Gates().Acquire(t.Context(), "gate")
			require.NoError(t, err)
			require.False(t, time.Now().Before(sent.Add(waited+lasts)), "a ttl of %v: the turn ends before the next begins", ttl)
			require.Greater(t, next.Fence(), got.Fence)
			require.NoError(t, next.Release(t.Context()))
		})
	}
}

// A claim over HTTP comes and ends while the node gives up the topic. The topic does not stay open
// then, and the node does not ask again and again for what it is to be: that would take all of a
// core, and the time of this test would stand still.
func TestClaimThatEndsWhileTopicIsClosedLeavesItClosed(t *testing.T) {
	t.Parallel()
	scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
		at := f.atNode(0, 0)
		defer at.client.CloseIdleConnections()
		claim := func() (leases []pulled) {
			var got struct {
				Leases []pulled `json:"leases"`
			}
			require.NoError(t, at.call(t.Context(), http.MethodPost, "/v1/topics/"+parcels+"/leases:claim", map[string]any{"wait": "1s"}, &got))
			return got.Leases
		}
		schedule := func() {
			_, err := wakebell.NewTopic[string](parcels).Schedule(t.Context(), clients[1], "x")
			require.NoError(t, err)
		}
		schedule()
		leases := claim()
		require.Len(t, leases, 1)
		f.store.goAway() // the verdict cannot be stored, and the node waits with the end of the topic
		path := "/v1/topics/" + parcels + "/leases/" + leases[0].Token + ":ack"
		require.NoError(t, at.call(t.Context(), http.MethodPost, path, nil, &struct{}{}))
		<-time.After(5*time.Second + 500*time.Millisecond) // the topic stays open for a while
		require.Empty(t, claim())
		f.store.comeBack()
		<-time.After(leaseTTL)
		schedule()
		require.NotEmpty(t, claim())
	})
}
