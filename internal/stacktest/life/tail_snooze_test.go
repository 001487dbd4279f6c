package life_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The event of a delivery after a snooze has a text: the dashboard does not count its lateness.
func TestDeliveryAfterSnoozeHasText(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	var calls atomic.Int32
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
		if calls.Add(1) == 1 {
			return wakebell.Snooze(wakebell.MinSnooze)
		}
		return nil
	}))
	events := stacktest.Tail(t, sys.Client(), topic.Name(), 1)
	_, err := topic.Schedule(t.Context(), sys.Client(), "")
	require.NoError(t, err)
	for _, want := range []wakebelltype.Event{
		{Kind: wakebelltype.EventDelivered}, {Kind: wakebelltype.EventSnoozed, Text: "snoozed for 1ms"}, {Kind: wakebelltype.EventDelivered, Text: "snoozed before"}, {Kind: wakebelltype.EventAcked},
	} {
		e := stacktest.Receive(t, events)
		require.Equal(t, want, wakebelltype.Event{Kind: e.Kind, Text: e.Text})
	}
}
