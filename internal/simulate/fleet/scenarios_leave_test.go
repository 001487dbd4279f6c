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

// If a handler goes on after its subscription has ended, no other handler gets its timer before the
// lease expires. A handler that returns when its context ends gives the timer back at once.
func TestHandlerThatGoesOnKeepsItsLease(t *testing.T) {
	t.Parallel()
	for name, way := range leavings {
		for _, stops := range []bool{false, true} { // when the context of the handler ends
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
							case stops:
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
					if stops && way.returns {
						require.Less(t, next.Sub(ended), leaseTTL/2, "it is given back at once")
					} else if !stops {
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

// When a subscription ends, its node releases the leases of handlers that have returned, and stores
// their outcomes. The leases of handlers that go on or have panicked expire.
func TestLeasesOfLeavingSubscriberAreReleasedAtOnce(t *testing.T) {
	t.Parallel()
	for name, closes := range map[string]bool{"its context ends": false, "its client is closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
				ctx, cancel := context.WithCancel(t.Context())
				last, leave := context.WithCancel(t.Context())
				over, began, release, nextOver := make(chan error, 1), make(chan string, 4), make(chan struct{}), make(chan error, 1)
				of := remote.Subscription{Topic: orders, Name: "s", Credits: 5}
				go func() {
					over <- clients[0].Subscribe(ctx, of, func(ctx context.Context, l *messages.Lease) error {
						began <- l.GetId()
						switch l.GetId() {
						case "panics":
							panic("as the test wants it")
						case "goes on":
							<-release // it ignores its context
						case "is interrupted":
							<-ctx.Done()
							return ctx.Err()
						default:
							<-ctx.Done()
						}
						return nil
					})
				}()
				defer func() {
					close(release)
					cancel()
					leave()
				}()
				for _, id := range []string{"is interrupted", "succeeds", "goes on", "panics"} {
					_, err := wakebell.NewTopic[string](orders).Schedule(t.Context(), clients[1], "x", wakebell.ID(id))
					require.NoError(t, err)
				}
				for range 4 {
					<-began
				}
				if closes {
					clients[0].Close()
					require.Error(t, <-over, "the client is closed")
				} else {
					cancel()
					require.NoError(t, <-over)
				}
				<-time.After(leaseTTL / 8) // the outcomes are stored
				info, _, err := clients[1].Get(t.Context(), orders, "is interrupted")
				require.NoError(t, err)
				require.NotEqual(t, wakebell.StateRunning, info.State)
				require.Zero(t, info.Attempts)
				_, _, err = clients[1].Get(t.Context(), orders, "succeeds")
				require.ErrorIs(t, err, wakebell.ErrNotFound)

				handled := make(chan string, 5)
				go func() {
					nextOver <- clients[1].Subscribe(last, remote.Subscription{Topic: orders, Name: "next"}, func(_ context.Context, l *messages.Lease) error {
						handled <- l.GetId()
						return nil
					})
				}()
				defer func() {
					leave()
					require.NoError(t, <-nextOver)
				}()
				require.Equal(t, "is interrupted", <-handled)
				<-time.After(3 * leaseTTL / 8) // the end of the session, with which leases may be released, counts after a second
				for _, id := range []string{"goes on", "panics"} {
					info, _, err := clients[1].Get(t.Context(), orders, id)
					require.NoError(t, err)
					require.Equal(t, wakebell.StateRunning, info.State, id)
					require.Equal(t, 1, info.Attempts, id)
				}
				require.Empty(t, handled)
				if closes {
					err = clients[0].Subscribe(t.Context(), of, func(context.Context, *messages.Lease) error { return nil })
					require.Error(t, err, "the client is closed")
				}
			})
		})
	}
}

// The messages of a queue follow the same rule.
func TestMessagesOfLeavingSubscriberGoToNext(t *testing.T) {
	t.Parallel()
	scenario(t, func(t *testing.T, f *fleet, clients []*remote.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		last, leave := context.WithCancel(t.Context())
		over, began, release, nextOver := make(chan error, 1), make(chan struct{}, 2), make(chan struct{}), make(chan error, 1)
		go func() {
			over <- clients[0].Subscribe(ctx, remote.Subscription{Queue: letters.Keys(), Name: "first"}, func(ctx context.Context, l *messages.Lease) error {
				body, err := letters.Read(l)
				began <- struct{}{}
				if body == "goes on" {
					<-release
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		defer func() {
			close(release)
			cancel()
			leave()
		}()
		for _, body := range []string{"goes on", "x"} {
			_, err := letters.Publish(t.Context(), clients[1].Queues(), body)
			require.NoError(t, err)
			<-began
		}
		second := make(chan string, 2)
		go func() {
			nextOver <- clients[1].Subscribe(last, remote.Subscription{Queue: letters.Keys(), Name: "second"}, func(_ context.Context, l *messages.Lease) error {
				body, err := letters.Read(l)
				second <- body
				return err
			})
		}()
		defer func() {
			leave()
			require.NoError(t, <-nextOver)
		}()
		cancel()
		require.NoError(t, <-over)
		require.Equal(t, "x", <-second)
		_, err := letters.Publish(t.Context(), clients[1].Queues(), "y")
		require.NoError(t, err)
		require.Equal(t, "y", <-second)
		<-time.After(leaseTTL / 8) // the ack of the second is stored
		st, err := clients[1].Queues().Stats(t.Context(), letters.Keys())
		require.NoError(t, err)
		require.Zero(t, st.Pending)
		require.EqualValues(t, 1, st.Processing)
	})
}
