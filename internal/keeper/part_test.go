package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTimersWithoutJoinsAllocateNothing checks that a delivery which has nothing to do with
// joins costs no allocation for them.
func TestTimersWithoutJoinsAllocateNothing(t *testing.T) {
	d := &poller.Delivery{}
	for _, headers := range [][]wakebelltype.Header{nil, {{Key: "tenant", Value: "a"}, {Key: "traceparent", Value: "00"}}} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			part := PartOf(d, headers)
			Began(d, headers)
			if part != nil || part.Ended(poller.Succeeded(), false) != nil {
				t.Error("the timer is no part")
			}
		}))
	}
}
