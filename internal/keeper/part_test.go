package keeper

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
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

// TestPartsWaitForRedisOfJoin checks which errors of a note keep a part from being settled: those
// that pass, or that an operator ends.
func TestPartsWaitForRedisOfJoin(t *testing.T) {
	for _, err := range []error{exchange.ErrUnavailable, context.DeadlineExceeded, wakebelltype.ErrMemoryFull, wakebelltype.ErrDenied} {
		require.True(t, passes(errors.Join(nil, fmt.Errorf("join: %w", err))), err)
	}
	for _, err := range []error{nil, wakebelltype.ErrWrongType, wakebelltype.ErrInvalid} {
		require.False(t, passes(err), err)
	}
}
