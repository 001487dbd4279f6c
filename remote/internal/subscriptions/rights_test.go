package subscriptions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote/rights"
)

// A right that is withdrawn while a claim gathers leases fails the claim, so they are due again at
// once. Those of a claim that was answered, and of a subscription, expire: a handler may run.
func TestLeasesOfUnansweredClaimAreReleasedWithTheRight(t *testing.T) {
	t.Parallel()
	request := &messages.SubscribeRequest{Topic: "topic", Subscriber: "s", Credits: 2, Clock: durationpb.New(0)}
	for name, test := range map[string]struct {
		subscribe any
		answered  bool
		released  bool
	}{
		"claim":          {subscribe: Pull{request}, released: true},
		"answered claim": {subscribe: Pull{request}, answered: true},
		"subscription":   {subscribe: request},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withRouter(t, func(t *testing.T, s *stand) {
				in, next := s.inbox(), s.inbox()
				in.say(test.subscribe)
				in.took()
				in.given("id")
				if test.answered {
					in.say(Detach{Topic: "topic", Subscriber: "s"})
					require.Equal(t, []any{Detached{}}, in.took())
				}
				none, err := rights.Parse("other handle *")
				require.NoError(t, err)
				s.hubs.guard.Rights.Store(none)
				in.say(RightsChanged{})
				got := in.took()
				require.Len(t, got, map[bool]int{true: 0, false: 1}[test.answered])
				s.hubs.guard.Rights.Store(nil)
				next.say(&messages.SubscribeRequest{Topic: "topic", Subscriber: "next", Credits: 1, Clock: durationpb.New(0)})
				s.world.Advance(time.Second)
				held := []string(nil)
				if test.released {
					held = []string{"id"}
				}
				require.Equal(t, held, idsOf(next.took()))
			})
		})
	}
}
