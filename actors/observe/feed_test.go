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

// kept keeps the kinds of what is published.
type kept struct {
	mu    sync.Mutex
	kinds []wakebelltype.EventKind
}

func (k *kept) PublishEvents(_ context.Context, _ string, events []wakebelltype.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range events {
		k.kinds = append(k.kinds, e.Kind)
	}
	return nil
}

// TestTopicThatIsLeftIsForgotten checks what watchers learn of a topic that a node gives up, and
// that nothing of it stays in memory.
func TestTopicThatIsLeftIsForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watch time.Duration // 0: nothing watches
		wait  time.Duration // after it was watched
		says  bool
		want  []wakebelltype.EventKind
	}{
		"watched":            {time.Minute, 0, true, []wakebelltype.EventKind{wakebelltype.EventNode, wakebelltype.EventAcked, wakebelltype.EventLeft}},
		"asked a while ago":  {time.Millisecond, 30 * time.Second, true, []wakebelltype.EventKind{wakebelltype.EventNode, wakebelltype.EventAcked, wakebelltype.EventLeft}},
		"asked long ago":     {time.Millisecond, MaxWatch, true, []wakebelltype.EventKind{wakebelltype.EventNode, wakebelltype.EventAcked}},
		"a shard of several": {time.Minute, 0, false, []wakebelltype.EventKind{wakebelltype.EventNode, wakebelltype.EventAcked}},
		"never watched":      {0, 0, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				publisher, events := newPublisher(t), &kept{}
				publisher.Events = events
				var f Feed
				if c.watch > 0 {
					publisher.Watch(&f, c.watch, 0)
					f.Add(wakebelltype.Event{Kind: wakebelltype.EventAcked})
				}
				<-time.After(c.wait)
				publisher.Leave(&f, c.says)
				<-time.After(2 * MaxWatch)
				events.mu.Lock()
				defer events.mu.Unlock()
				publisher.mu.Lock()
				defer publisher.mu.Unlock()
				require.Equal(t, c.want, events.kinds)
				require.Empty(t, publisher.asked)
				require.Empty(t, publisher.watched)
			})
		})
	}
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
