package fleet

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// leaving is a way in which a subscription of the first client ends, or its leases.
type leaving struct {
	end     func(f *fleet, c *remote.Client, cancel func())
	returns bool // handlers that return with their contexts give their timers back at once
	extends bool // the node extends the lease, and the client does not hear of it
}

var leavings = map[string]leaving{
	"its context ends":     {end: func(_ *fleet, _ *remote.Client, cancel func()) { cancel() }, returns: true},
	"its client is closed": {end: func(_ *fleet, c *remote.Client, _ func()) { c.Close() }, returns: true},
	"its client dies": {end: func(f *fleet, _ *remote.Client, cancel func()) {
		f.net.kill(f.clients[0].host)
		cancel()
	}},
	"its node stops": {end: func(f *fleet, _ *remote.Client, _ func()) { f.nodes[0].drain() }, returns: true},
	"its context ends while the link is silent": {end: func(f *fleet, _ *remote.Client, cancel func()) {
		f.silence()
		cancel()
	}},
	"its lease is lost, and then the link is cut": {end: func(f *fleet, _ *remote.Client, _ func()) {
		back := f.net.path(f.nodes[0].host, f.clients[0].host)
		back.silence(true)
		<-time.After(leaseTTL)
		back.silence(false)
		f.net.separate(f.clients[0].host, f.nodes[0].host)()
	}, extends: true},
	"its lease is lost, and then its context ends": {end: func(f *fleet, _ *remote.Client, cancel func()) {
		back := f.net.path(f.nodes[0].host, f.clients[0].host)
		back.silence(true)
		<-time.After(leaseTTL)
		back.silence(false)
		cancel()
	}, extends: true},
}

// However the subscription of a handler ends that goes on, no other handler gets its timer before
// the lease expires. One that returns when its context ends gives the timer back at once.
func TestHandlerThatGoesOnKeepsItsLease(t *testing.T) {
	t.Parallel()
	for name, way := range leavings {
		for _, obeys := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
					ctx, cancel := context.WithCancel(t.Context())
					last, leave := context.WithCancel(t.Context())
					over, began, second, release := make(chan error, 2), make(chan time.Time, 1), make(chan time.Time, 1), make(chan struct{})
					subscribe := func(ctx context.Context, c *remote.Client, name string) {
						over <- c.Subscribe(ctx, remote.Subscription{Topic: orders, Name: name}, func(ctx context.Context, l *messages.Lease) error {
							switch {
							case len(began) > 0 || name == "second":
								second <- time.Now()
							case obeys:
								began <- time.Now()
								<-ctx.Done()
								return ctx.Err()
							default:
								began <- time.Now()
								<-release
							}
							return nil
						})
					}
					defer func() {
						close(release)
						cancel()
						leave()
						_, _ = <-over, <-over // one fails if its client is closed
					}()
					go subscribe(ctx, clients[0], "first")
					_, err := wakebell.NewTopic[string](orders).Schedule(t.Context(), clients[1], "x")
					require.NoError(t, err)
					first := <-began
					began <- first // later ones are the next
					go subscribe(last, clients[1], "second")
					<-time.After(leaseTTL / 8)
					way.end(f, clients[0], cancel)
					ended, lasts := time.Now(), leaseTTL
					if way.extends {
						lasts += leaseTTL / 2
					}
					var next time.Time
					select {
					case next = <-second:
					case <-time.After(time.Minute):
						require.FailNow(t, "the timer is not delivered again")
					}
					if obeys && way.returns {
						require.Less(t, next.Sub(ended), leaseTTL/2, "it is given back at once")
					} else if !obeys {
						require.GreaterOrEqual(t, next.Sub(first), lasts-usual, "the lease expires")
					}
				})
			})
		}
	}
}

// A subscription that ends while its link is down is not renewed when the link is back: nothing
// would handle its leases.
func TestSubscriptionThatEndsWithoutLinkStaysEnded(t *testing.T) {
	t.Parallel()
	scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
		last, leave := context.WithCancel(t.Context())
		defer leave()
		over, handled := make(chan error, 1), make(chan time.Time, 100)
		handle := func(context.Context, *messages.Lease) error {
			handled <- time.Now()
			return nil
		}
		go func() { over <- clients[0].Subscribe(last, remote.Subscription{Topic: orders, Name: "stays"}, handle) }()
		for range 20 {
			ctx, cancel := context.WithCancel(last)
			ended := make(chan error, 1)
			go func() {
				ended <- clients[0].Subscribe(ctx, remote.Subscription{Topic: orders, Name: "leaves", Credits: 9}, handle)
			}()
			<-time.After(time.Second)
			f.net.separate(f.clients[0].host, f.nodes[0].host)()
			<-time.After(time.Millisecond) // the client has noticed, and has not dialled again
			cancel()
			require.NoError(t, <-ended)
			<-time.After(3 * time.Second)
			for range 4 {
				began := time.Now()
				_, err := wakebell.NewTopic[string](orders).Schedule(t.Context(), clients[1], "x")
				require.NoError(t, err)
				require.Less(t, (<-handled).Sub(began), leaseTTL/2)
			}
		}
		leave()
		require.NoError(t, <-over)
	})
}
