package remote

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages"
)

// A publication that is sent again after the node has forgotten it would be stored twice.
func TestPublicationIsSentAgainWhileNodeRemembersIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := DialConfig{Config: Config{MaxMessage: DefaultMaxMessage}, DeadLink: time.Hour}
		link := &clientLink{
			cfg: cfg, ctx: t.Context(), up: true, room: make(chan struct{}, 1), change: make(chan struct{}), wake: make(chan struct{}, 1),
			waiting: map[uint64]chan messages.Answer{},
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := call[*messages.PublishResponse](ctx, &Client{cfg: cfg, link: link}, &messages.PublishRequest{Name: "mail"})
			done <- err
		}()
		for i, limit := range []time.Duration{10 * time.Minute, 35 * time.Second, 25 * time.Second} {
			synctest.Wait()
			frame := link.Take()
			require.Len(t, frame.GetCommands(), 1)
			require.Equal(t, limit, frame.GetCommands()[0].GetPublish().GetTimeout().AsDuration(), i)
			<-time.After(10 * time.Second)
			link.broke(nil)
			link.opened()
		}
		require.ErrorIs(t, <-done, context.DeadlineExceeded)
	})
}
