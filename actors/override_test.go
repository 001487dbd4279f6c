package actors

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
)

// ordering is a topic of three timers whose order is read from what read says,
// one after the other; the last stays.
func ordering(s *actortest.MemorySource, read ...error) poller.Topic {
	topic := topicOn(s, 1, acks)
	topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
		err := read[0]
		if len(read) > 1 {
			read = read[1:]
		}
		return poller.ClusterOverride{}, err
	}
	return topic
}

func TestNothingIsClaimedBeforeItsOrderIsKnown(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(3)
		down := fmt.Errorf("as the test wants it: %w", exchange.ErrUnavailable)
		rt := start(t, actortest.QuietSystem(), "a", ordering(s, down, down, nil))
		<-time.After(500 * time.Millisecond)
		due, _, _, _ := s.Count()
		require.Equal(t, 3, due, "the topic may be paused")
		<-time.After(time.Minute)
		_, _, settled, _ := s.Count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}

func TestAnOrderThatCannotBeReadStopsNobody(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s := actortest.NewMemorySource(3)
		rt := start(t, actortest.QuietSystem(), "a", ordering(s, errors.New("mangled by hand")))
		<-time.After(10 * time.Second)
		_, _, settled, _ := s.Count()
		require.Equal(t, 3, settled)
		require.NoError(t, rt.Stop())
	})
}

// What is scheduled after a pause is told after it, and may be told of in the same
// moment: it is not taken before the pause is read.
func TestNothingIsClaimedWhileAnotherOrderIsRead(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		s, orders := actortest.NewMemorySource(0), []poller.ClusterOverride{{}, {Paused: true}, {}}
		topic := topicOn(s, 1, acks)
		// No poll of its own may be under way when the pause comes.
		topic.PollingInterval, topic.MaxPollingInterval = time.Hour, time.Hour
		topic.OverrideInterval = 24 * time.Hour
		topic.ReadOverride = func(context.Context) (poller.ClusterOverride, error) {
			<-time.After(time.Minute)
			next := orders[0]
			orders = orders[1:]
			return next, nil
		}
		rt := start(t, actortest.QuietSystem(), "a", topic)
		hint := func(kind exchange.HintKind) {
			rt.system.Root.Send(rt.PID(), exchange.Hint{Source: "shelf", Kind: kind})
		}
		taken := func() int {
			_, _, settled, _ := s.Count()
			return settled
		}
		<-time.After(2 * time.Minute)
		s.Put("before")
		hint(exchange.HintDue)
		<-time.After(time.Second)
		require.Equal(t, 1, taken())

		hint(exchange.HintControl)
		s.Put("after")
		hint(exchange.HintDue)
		<-time.After(3 * time.Minute)
		require.Equal(t, 1, taken())
		hint(exchange.HintControl)
		<-time.After(61 * time.Second)
		require.Equal(t, 2, taken(), "it is resumed")
		require.NoError(t, rt.Stop())
	})
}
