package actors

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// recordedEvents is a publisher that records events.
type recordedEvents struct {
	mu     sync.Mutex
	err    error
	hold   chan struct{} // if not nil, publishing waits for it
	events []wakebelltype.Event
	most   int // largest number of events in one message
}

func (g *recordedEvents) PublishEvents(ctx context.Context, topic string, events []wakebelltype.Event) error {
	g.mu.Lock()
	err, hold := g.err, g.hold
	g.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.events = append(g.events, events...)
		g.most = max(g.most, len(events))
	}
	return err
}

// take returns the kinds and ids of the events since the last call.
func (g *recordedEvents) take() (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		all = append(all, strings.TrimSpace(string(e.Kind)+" "+e.ID))
	}
	g.events = nil
	return all
}

func (g *recordedEvents) fails(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// fakeHints delivers the hints that a test sends.
type fakeHints chan exchange.Hint

func (h fakeHints) Listen(ctx context.Context, _ []string, deliver func(exchange.Hint)) error {
	for {
		select {
		case hint := <-h:
			deliver(hint)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch announces a watcher of the topic "shelf", which has subscribed just now.
func (h fakeHints) watch(d time.Duration) { h.watchSince(d, 0) }

// watchSince announces a watcher that subscribed some time ago.
func (h fakeHints) watchSince(d, subscribed time.Duration) {
	h <- exchange.Hint{Source: "shelf", Kind: exchange.HintTail, In: d, Watched: subscribed}
	synctest.Wait()
}

// watched starts a runtime on a source whose events are published to g.
func watched(t *testing.T, g *recordedEvents, s *actortest.MemorySource, handle poller.Handle) (*Runtime, fakeHints, *bytes.Buffer) {
	t.Helper()
	hints, log := make(fakeHints), &bytes.Buffer{}
	rt, err := Start(actortest.QuietSystem(), Config{
		Name: "a", Node: "here", Logger: slog.New(slog.NewTextHandler(log, nil)),
		Topics: []poller.Topic{topicOn(s, 2, handle)}, Events: g, Hints: hints,
	})
	require.NoError(t, err)
	<-time.After(2 * time.Second) // longer than the announcement of a watcher may take
	return rt, hints, log
}

func TestEventsArePublishedWhileWatched(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{}, actortest.NewMemorySource(3)
		rt, hints, _ := watched(t, g, s, func(ctx context.Context, d *poller.Delivery) poller.Outcome {
			switch d.ID {
			case "fails":
				return poller.Failed(errors.New("no"))
			case "dies":
				return poller.Rejected(errors.New("never"))
			case "panics":
				panic("oh")
			}
			return poller.Succeeded()
		})
		require.Empty(t, g.take(), "the topic is not watched")

		hints.watch(10 * time.Second)
		s.Put("a")
		<-time.After(time.Second)
		require.Equal(t, []string{"node", "delivered a", "acked a"}, g.take())
		s.Put("fails")
		<-time.After(time.Second)
		s.Put("dies")
		<-time.After(time.Second)
		s.Put("panics")
		<-time.After(time.Second)
		for _, e := range g.events {
			require.Equal(t, "shelf", e.Topic)
			require.Equal(t, "here", e.Node)
			require.Equal(t, 1, e.Attempt)
			require.False(t, e.At.IsZero())
		}
		require.Equal(t, "no", g.events[1].Text)
		require.Positive(t, g.events[1].RetryIn)
		require.Equal(t, "1-dies", g.events[3].Entry)
		require.Equal(t, "never", g.events[3].Text)
		require.Contains(t, g.events[5].Text, "oh")
		require.Equal(t, []string{
			"delivered fails", "retried fails", "delivered dies", "dead dies", "delivered panics", "crashed panics",
		}, g.take())

		<-time.After(10 * time.Second)
		s.Put("b")
		<-time.After(time.Second)
		require.Empty(t, g.take(), "the watcher has gone")
		hints.watch(time.Hour) // longer than a node publishes without another hint
		<-time.After(2 * observe.MaxWatch)
		s.Put("c")
		<-time.After(time.Second)
		require.Equal(t, []string{"node"}, g.take())
		require.NoError(t, rt.Stop())
	})
}

// TestSlowPublishingDelaysNoDelivery checks that timers are delivered while
// publishing hangs, and that events beyond the bound are counted as missed.
func TestSlowPublishingDelaysNoDelivery(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{hold: make(chan struct{})}, actortest.NewMemorySource(0)
		rt, hints, _ := watched(t, g, s, acks)
		hints.watch(time.Minute)
		<-time.After(time.Second) // publishing hangs
		s.Put(actortest.Numbers(observe.MaxPendingEvents)...)
		<-time.After(30 * time.Second)
		_, _, settled, _ := s.Count()
		require.Equal(t, observe.MaxPendingEvents, settled)
		close(g.hold)
		<-time.After(time.Second)
		g.mu.Lock()
		last := g.events[len(g.events)-1]
		g.mu.Unlock()
		require.Equal(t, wakebelltype.Event{Kind: wakebelltype.EventMissed, Topic: "shelf", Node: "here", Missed: observe.MaxPendingEvents}, last)
		require.Len(t, g.take(), 1+observe.MaxPendingEvents+1)
		require.Equal(t, observe.PublishAtOnce, g.most)
		require.NoError(t, rt.Stop())
	})
}

func TestEventsThatCannotBeSentAreMissed(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{}, actortest.NewMemorySource(0)
		rt, hints, log := watched(t, g, s, acks)
		hints.watch(time.Minute)
		<-time.After(time.Second)
		g.take()
		g.fails(errors.New("no right"))
		s.Put("a")
		<-time.After(time.Second)
		require.Empty(t, g.take())
		require.Equal(t, 1, strings.Count(log.String(), "events not sent"), "the error is logged once")
		g.fails(nil)
		<-time.After(time.Second)
		require.Equal(t, 1, strings.Count(log.String(), "events not sent"))
		require.Equal(t, 2, g.events[0].Missed)
		require.Equal(t, []string{"missed"}, g.take())
		require.NoError(t, rt.Stop())
	})
}

// TestStopSendsLastEvents checks that Stop publishes the events of a drain, and
// that hanging publishing delays Stop by no more than LastPublish.
func TestStopSendsLastEvents(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{}, actortest.NewMemorySource(0)
		rt, hints, _ := watched(t, g, s, func(ctx context.Context, _ *poller.Delivery) poller.Outcome {
			<-ctx.Done()
			return poller.Failed(context.Cause(ctx))
		})
		hints.watch(time.Minute)
		s.Put("a")
		<-time.After(time.Second)
		require.Equal(t, []string{"node", "delivered a"}, g.take())
		_, err := rt.Drain(0)
		require.NoError(t, err)
		require.NoError(t, rt.Stop())
		require.Equal(t, []string{"released a", "left"}, g.take())

		g.hold = make(chan struct{})
		rt, hints, _ = watched(t, g, s, acks)
		hints.watch(time.Minute)
		<-time.After(time.Second)
		began := time.Now()
		require.NoError(t, rt.Stop())
		require.LessOrEqual(t, time.Since(began), observe.LastPublish)
	})
}

// TestEarlierWatchersReceiveFirstEvents checks that a watcher that subscribed
// before the node started receives the node's first events, although the node
// learns of it only by its next announcement. A later watcher does not receive
// them.
func TestEarlierWatchersReceiveFirstEvents(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{}, actortest.NewMemorySource(2)
		rt, hints, _ := watched(t, g, s, acks)
		require.Empty(t, g.take())
		hints.watch(10 * time.Second) // subscribed just now
		<-time.After(time.Second)
		require.Equal(t, []string{"node"}, g.take())
		s.Put("late")
		<-time.After(time.Second)
		require.Equal(t, []string{"delivered late", "acked late"}, g.take())
		hints.watchSince(10*time.Second, time.Hour)
		<-time.After(time.Second)
		require.ElementsMatch(t, []string{"node", "delivered 0", "acked 0", "delivered 1", "acked 1"}, g.take())
		hints.watchSince(10*time.Second, time.Hour)
		<-time.After(time.Second)
		require.Equal(t, []string{"node"}, g.take(), "no event is published twice")
		require.NoError(t, rt.Stop())
	})
}

// TestFirstEventsAreBounded checks that the stored first events are bounded in
// number and in time.
func TestFirstEventsAreBounded(t *testing.T) {
	t.Parallel()
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{}, actortest.NewMemorySource(observe.MaxEarly)
		rt, hints, _ := watched(t, g, s, acks)
		<-time.After(observe.EarlyFor - 3*time.Second)
		hints.watchSince(10*time.Second, time.Hour)
		<-time.After(time.Second)
		published := g.take()
		require.Len(t, published, 1+observe.MaxEarly+1)
		require.Equal(t, "missed", published[len(published)-1])
		require.NoError(t, rt.Stop())
	})
	actortest.InVirtualTime(t, func(t *testing.T) {
		g, s := &recordedEvents{}, actortest.NewMemorySource(2)
		rt, hints, _ := watched(t, g, s, acks)
		<-time.After(observe.EarlyFor)
		topic, _ := rt.topic("shelf")
		require.False(t, topic.Feed.Watched.Load(), "no events are recorded from now on")
		hints.watchSince(10*time.Second, time.Hour)
		<-time.After(time.Second)
		require.Equal(t, []string{"node"}, g.take())
		require.NoError(t, rt.Stop())
	})
}
