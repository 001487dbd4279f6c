package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/internal/httpapi"
	"github.com/wakebell/wakebell/remote/internal/subscriptions"
	"github.com/wakebell/wakebell/wakebelltest"
)

// The leases that a claim returns last until they expire, also if the hub did not answer in time.
func TestClaimKeepsLeasesOfBusyHub(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		var ends []actor.TerminatedReason
		c := &httpCall{Server: served(t, w, func(c actor.Context) {
			switch m := c.Message().(type) {
			case subscriptions.Pull:
				c.Watch(c.Sender())
				c.Respond(&messages.Leases{Leases: []*messages.Lease{{Id: "id", Delivery: 7, Ttl: durationpb.New(time.Minute)}}})
			case *actor.Terminated:
				ends = append(ends, m.GetWhy())
			}
		})}
		got, err := c.claim(t.Context(), &httpapi.ClaimRequest{Topic: "topic"})
		require.NoError(t, err)
		require.Len(t, got.(*httpapi.ClaimResponse).GetLeases(), 1)
		synctest.Wait()
		require.Equal(t, []actor.TerminatedReason{actor.TerminatedReason_AddressTerminated}, ends)
	})
}

// A claim that hears of a drain before it has answered gives its leases back, and is refused.
func TestClaimGivesLeasesBackToDrainingNode(t *testing.T) {
	t.Parallel()
	leases := &messages.Leases{Leases: []*messages.Lease{{Id: "a", Delivery: 7, Ttl: durationpb.New(time.Minute)}, {Id: "b", Delivery: 8}}}
	drains := &messages.LeasesEnded{Ended: []*messages.LeaseEnded{{Id: "a", Delivery: 7, Reason: messages.LeaseEnd_LEASE_END_DRAINING}}}
	for name, answers := range map[string]struct{ pull, detach []any }{
		"while it waits":   {[]any{leases, drains}, []any{subscriptions.Detached{}}},
		"while it answers": {[]any{leases}, []any{drains, subscriptions.Detached{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
				var subscriber, unsubscribed string
				c := &httpCall{Server: served(t, w, func(c actor.Context) {
					var all []any
					switch m := c.Message().(type) {
					case subscriptions.Pull:
						subscriber, all = m.GetSubscriber(), answers.pull
					case subscriptions.Detach:
						all = answers.detach
					case *messages.UnsubscribeRequest:
						unsubscribed = m.GetTopic() + " " + m.GetSubscriber()
					}
					for _, answer := range all {
						c.Respond(answer)
					}
				})}
				_, err := c.claim(t.Context(), &httpapi.ClaimRequest{Topic: "topic"})
				require.Equal(t, codes.Unavailable, status.Code(err))
				synctest.Wait()
				require.Equal(t, "topic "+subscriber, unsubscribed)
			})
		})
	}
}
