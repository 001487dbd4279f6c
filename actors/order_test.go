package actors

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// ordering is a topic of three timers whose order is read from what read says,
// one after the other; the last stays.
func ordering(s *shelf, read ...error) Topic {
	topic := topicOn(s, 1, acks)
	topic.Order = func(context.Context) (Order, error) {
		err := read[0]
		if len(read) > 1 {
			read = read[1:]
		}
		return Order{}, err
	}
	return topic
}

func TestNothingIsClaimedBeforeItsOrderIsKnown(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		s := newShelf(3)
		down := fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
		rt := start(t, quietSystem(), "a", ordering(s, down, down, nil))
		<-time.After(500 * time.Millisecond)
		due, _, _, _ := s.count()
		require.Equal(t, 3, due, "the topic may be paused")
		<-time.After(time.Minute)
		_, _, settled, _ := s.count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}

func TestAnOrderThatCannotBeReadStopsNobody(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T) {
		s := newShelf(3)
		rt := start(t, quietSystem(), "a", ordering(s, errors.New("mangled by hand")))
		<-time.After(10 * time.Second)
		_, _, settled, _ := s.count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}
