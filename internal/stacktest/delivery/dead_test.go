package delivery_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// A timer is dead-lettered, found by its reason, and redriven after the cause is
// repaired.
func TestDeadLetterIsFoundAndRedriven(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	mended := make(chan struct{})
	handled := make(chan wakebell.Timer[string], 8)
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			select {
			case <-mended:
				handled <- timer
				return nil
			default:
				return wakebell.Reject(errors.New(timer.Body + ": not today"))
			}
		}),
	}})
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	c := sys.Client()
	for _, id := range []string{"card-1", "card-2", "bank-1", "bank-2"} {
		_, err = topic.Schedule(t.Context(), c, id[:4], wakebell.ID(id))
		require.NoError(t, err)
		dead(t, c, topic.Name(), id)
	}

	one := letters(t, c, topic.Name(), wakebelltype.DeadFilter{ReasonPrefix: "card"})[0]
	require.Equal(t, "card: not today", one.Reason)
	shown, err := c.DeadLetter(t.Context(), topic.Name(), one.Entry)
	require.NoError(t, err)
	require.Equal(t, one, shown)
	require.Equal(t, "card", string(shown.Content.Body))

	close(mended)
	done, err := c.Redrive(t.Context(), topic.Name(), wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Entry: one.Entry}})
	require.NoError(t, err)
	require.Equal(t, wakebelltype.RedriveResult{Redriven: 1}, done)
	timer := <-handled
	require.Equal(t, "card-1", timer.ID)
	require.Equal(t, 1, timer.Attempt)

	done, err = c.Redrive(t.Context(), topic.Name(), wakebelltype.RedriveOptions{Filter: wakebelltype.DeadFilter{Reason: "bank"}})
	require.NoError(t, err)
	require.EqualValues(t, 2, done.Redriven)
	<-handled
	<-handled
	n, err := c.DeleteDead(t.Context(), topic.Name(), wakebelltype.DeadFilter{})
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.Empty(t, letters(t, c, topic.Name(), wakebelltype.DeadFilter{}))
	_, err = c.DeadLetter(t.Context(), topic.Name(), one.Entry)
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	require.NoError(t, sys.Stop())
}

func letters(t *testing.T, c *wakebell.Client, topic string, f wakebelltype.DeadFilter) (all []wakebell.DeadLetter) {
	t.Helper()
	for letter, err := range c.DeadLetters(t.Context(), topic, f, wakebelltype.Page{}) {
		require.NoError(t, err)
		all = append(all, letter)
	}
	return all
}

// dead waits until a timer is a dead letter.
func dead(t *testing.T, c *wakebell.Client, topic, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(letters(t, c, topic, wakebelltype.DeadFilter{}), func(letter wakebell.DeadLetter) bool {
			return letter.ID == id
		})
	}, 30*time.Second, 5*time.Millisecond)
}
