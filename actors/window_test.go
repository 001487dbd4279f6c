package actors

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
)

// A delivery window delays the settlement of a handler that has returned, until one
// of these events ends it.
func TestWhatEndsDeliveryWindow(t *testing.T) {
	t.Parallel()
	const window = 5 * time.Second
	for name, c := range map[string]struct {
		event func(t *testing.T, rt *Runtime)
		ends  bool
	}{
		"nothing": {event: func(*testing.T, *Runtime) {}},
		"a pause": {ends: true, event: func(t *testing.T, rt *Runtime) {
			t.Helper()
			require.NoError(t, rt.Pause("shelf", true))
		}},
		"a drain": {ends: true, event: func(t *testing.T, rt *Runtime) {
			t.Helper()
			_, err := rt.Drain(time.Second)
			require.NoError(t, err)
		}},
		"the removal of the topic": {ends: true, event: func(t *testing.T, rt *Runtime) {
			t.Helper()
			_, err := rt.Remove("shelf", time.Second)
			require.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				s := actortest.NewMemorySource(1)
				handled := make(chan struct{})
				topic := topicOn(s, 5, func(context.Context, *poller.Delivery) poller.Outcome {
					close(handled)
					return poller.Succeeded()
				})
				topic.Window = window
				rt := start(t, actortest.QuietSystem(), "a", topic)
				<-handled
				<-time.After(window / 2)
				_, _, settled, _ := s.Count()
				require.Zero(t, settled, "it waits for the window")
				c.event(t, rt)
				<-time.After(100 * time.Millisecond)
				_, _, settled, _ = s.Count()
				require.Equal(t, c.ends, settled == 1)
				<-time.After(window)
				_, _, settled, _ = s.Count()
				require.Equal(t, 1, settled)
				require.NoError(t, rt.Stop())
			})
		})
	}
}
