package observe

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestWatchWithoutPublisherIsIgnored(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var none Publisher
		var f Feed
		none.Watch(&f, time.Minute, 0)
		require.False(t, f.Watched.Load())
	})
}

func TestFirstEventsAreCollectedUntilTheirRoomIsFull(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		publisher := newPublisher(t)
		var f Feed
		f.KeepEarly()
		for range MaxEarly {
			require.True(t, f.Collects())
			f.Add(wakebelltype.Event{Kind: wakebelltype.EventDelivered})
		}
		require.False(t, f.Collects())
		f.Miss(7)
		f.Add(wakebelltype.Event{Kind: wakebelltype.EventDead})
		publisher.Watch(&f, time.Minute, time.Second)
		require.True(t, f.Collects())
		events, _ := f.take(time.Now())
		require.Len(t, events, 1+MaxEarly+1, "a greeting, the first events, and the number of missed ones")
		require.Equal(t, wakebelltype.Event{Kind: wakebelltype.EventMissed, Missed: 8}, events[1+MaxEarly])
	})
}

func TestFirstEventsSurviveLateAnnouncement(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		publisher := newPublisher(t)
		var f Feed
		f.KeepEarly()
		<-time.After(announceDelay) // a watcher subscribes now
		f.Add(wakebelltype.Event{Kind: wakebelltype.EventDelivered})
		<-time.After(exchange.AnnounceEvery + announceDelay - time.Millisecond)
		publisher.Watch(&f, time.Minute, exchange.AnnounceEvery)
		events, _ := f.take(time.Now())
		require.Len(t, events, 2, "a greeting and the event")
	})
}

func TestEventsFromLongBeforeWatchAreNotRecalled(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		publisher := newPublisher(t)
		var f Feed
		f.KeepEarly()
		f.Add(wakebelltype.Event{Kind: wakebelltype.EventDelivered})
		<-time.After(announceDelay + time.Millisecond) // a watcher subscribes now
		publisher.Watch(&f, time.Minute, 0)
		events, _ := f.take(time.Now())
		require.Len(t, events, 1, "a greeting")
	})
}

func TestNothingIsCollectedOrMissedWithoutWatchers(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		var f Feed
		f.KeepEarly()
		f.Add(wakebelltype.Event{Kind: wakebelltype.EventDelivered})
		<-time.After(EarlyFor + time.Millisecond)
		require.False(t, f.Collects())
		f.Miss(5)
		events, _ := f.take(time.Now())
		require.Empty(t, events)
	})
}

// newPublisher returns a Publisher that is stopped at the end of the test.
func newPublisher(t *testing.T) *Publisher {
	t.Helper()
	p := &Publisher{Events: discarded{}, Log: slog.New(slog.DiscardHandler), Io: new(sync.WaitGroup)}
	t.Cleanup(func() {
		p.Stop()
		p.Io.Wait()
	})
	return p
}

// discarded publishes nothing.
type discarded struct{}

func (discarded) PublishEvents(context.Context, string, []wakebelltype.Event) error { return nil }
