package life_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// collecting returns a handler that sends the ids that it receives to a channel.
func collecting(topic wakebell.Topic[string], opts ...wakebell.HandlerOption) (wakebell.Handler, <-chan string) {
	ids := make(chan string, 100)
	return wakebell.Handle(topic, func(_ context.Context, t wakebell.Timer[string]) error {
		ids <- t.ID
		return nil
	}, opts...), ids
}

func schedule(t *testing.T, sys *wakebell.System, topic wakebell.Topic[string], id string, opts ...wakebell.ScheduleOption) {
	t.Helper()
	_, err := topic.Schedule(t.Context(), sys.Client(), "x", append(opts, wakebell.ID(id))...)
	require.NoError(t, err)
}

func TestTopicIsAddedAndRemovedWhileItRuns(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	sys := stacktest.Start(t, wakebell.Config{})
	for round := range 2 { // a topic that was removed may be added again
		handler, ids := collecting(topic)
		require.NoError(t, sys.Add(t.Context(), handler))
		require.ErrorIs(t, sys.Add(t.Context(), handler), wakebell.ErrTopicTaken)
		schedule(t, sys, topic, "a")
		require.Equal(t, "a", <-ids)

		require.NoError(t, sys.Remove(topic.Name()))
		require.ErrorIs(t, sys.Remove(topic.Name()), wakebell.ErrNoTopic)
		schedule(t, sys, topic, "b")
		stats, err := sys.Client().Stats(t.Context(), topic.Name())
		require.NoError(t, err)
		require.Equal(t, int64(1), stats.Total, "round %d: a removed topic must not be claimed from", round)
		_, err = topic.Cancel(t.Context(), sys.Client(), "b")
		require.NoError(t, err)
	}
}

func TestRemoveNamesHandlerThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		began, release := make(chan struct{}), make(chan struct{})
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error {
				close(began)
				<-release
				return nil
			}),
		}}))
		schedule(t, sys, topic, "stuck")
		stacktest.Receive(t, began)
		err := sys.Remove(topic.Name())
		close(release)
		require.ErrorIs(t, err, wakebell.ErrUnfinished)
		require.ErrorContains(t, err, `"stuck"`)
		info, _, err := sys.Client().Get(t.Context(), topic.Name(), "stuck")
		require.NoError(t, err)
		require.Equal(t, wakebell.StatePending, info.State, "released for another node")
	})
}

// A removal once held the lock of all changes until its drain ended.
func TestOtherTopicsAreChangedWhileOneIsRemoved(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		slow, next := wakebell.NewTopic[string]("slow"), wakebell.NewTopic[string]("next")
		handler, running, release := stacktest.Blocking(slow)
		sys := stacktest.Launch(t, stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{handler}, DrainTimeout: time.Hour}))
		schedule(t, sys, slow, "stuck")
		require.Equal(t, "stuck", stacktest.Receive(t, running))
		removed := make(chan error, 2)
		for range cap(removed) {
			go func() { removed <- sys.Remove(slow.Name()) }()
		}
		<-time.After(time.Second)

		began := time.Now()
		added, ids := collecting(next)
		require.NoError(t, sys.Add(t.Context(), added))
		schedule(t, sys, next, "a")
		require.Equal(t, "a", stacktest.Receive(t, ids))
		require.ErrorIs(t, sys.ResumeLocal(slow.Name()), wakebell.ErrNoTopic)
		require.ErrorIs(t, sys.RetuneLocal(slow.Name(), wakebell.MaxConcurrent(1)), wakebell.ErrNoTopic)
		require.Less(t, time.Since(began), time.Minute)
		release()
		require.ErrorIs(t, errors.Join(stacktest.Receive(t, removed), stacktest.Receive(t, removed)), wakebell.ErrNoTopic, "only one of the calls removes it")
		again, _ := collecting(slow)
		require.NoError(t, sys.Add(t.Context(), again))
	})
}

func TestPausedTopicClaimsNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handler, ids := collecting(topic, wakebell.PollingInterval(time.Millisecond), wakebell.MaxPollingInterval(time.Millisecond))
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	schedule(t, sys, topic, "before")
	require.Equal(t, "before", <-ids)

	require.NoError(t, sys.PauseLocal(topic.Name()))
	schedule(t, sys, topic, "meanwhile")
	require.Never(t, func() bool { return len(ids) > 0 }, 100*time.Millisecond, 10*time.Millisecond)

	require.NoError(t, sys.ResumeLocal(topic.Name()))
	require.Equal(t, "meanwhile", <-ids)
	require.ErrorIs(t, sys.PauseLocal("unknown"), wakebell.ErrNoTopic)
}

func TestMaxConcurrentIsRetunedWhileItRuns(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handler, running, release := stacktest.Blocking(topic, wakebell.MaxConcurrent(1))
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	for i := range 80 {
		schedule(t, sys, topic, string(rune('A'+i)))
	}
	<-running
	require.NoError(t, sys.RetuneLocal(topic.Name(), wakebell.MaxConcurrent(80)))
	for range 79 { // enough for two streams
		<-running
	}
	release()
	require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 80 }, 30*time.Second, time.Millisecond)
}

func TestRetuneRefusesInvalidSettings(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handler, _ := collecting(topic)
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	for _, opt := range []wakebell.TuningOption{
		nil, wakebell.MaxConcurrent(0),
		wakebell.PollingInterval(time.Minute), // above MaxPollingInterval
	} {
		require.ErrorIs(t, sys.RetuneLocal(topic.Name(), opt), wakebell.ErrInvalid)
	}
	require.ErrorIs(t, sys.RetuneLocal("unknown", wakebell.MaxConcurrent(2)), wakebell.ErrNoTopic)
}

func TestChangeNeedsRunningSystem(t *testing.T) {
	t.Parallel()
	handler, _ := collecting(wakebell.NewTopic[string](redistest.Name(t)))
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{}), wakebell.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, sys.Add(t.Context(), handler), wakebell.ErrNotRunning)
	require.NoError(t, sys.Start(t.Context()))
	require.NoError(t, sys.Stop())
	require.ErrorIs(t, sys.Add(t.Context(), handler), wakebell.ErrNotRunning)
	require.ErrorIs(t, sys.Add(t.Context(), wakebell.Handler{}), wakebell.ErrInvalid)
}

func TestOverrideReachesEveryNode(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handler, ids := collecting(topic)
	first := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	second := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	c := first.Client()
	schedule(t, first, topic, "before")
	require.Equal(t, "before", <-ids)
	heardOf := func(paused bool) {
		for _, node := range []*wakebell.System{first, second} {
			stacktest.Eventually(t, func() bool {
				topics := node.Health(t.Context()).Topics
				return len(topics) == 1 && topics[0].Silent == 0 && topics[0].Paused == paused
			})
		}
	}
	heardOf(false) // nodes are paused until they have read the overrides

	_, err := c.Pause(t.Context(), topic.Name(), "me", "maintenance")
	require.NoError(t, err)
	heardOf(true)
	schedule(t, first, topic, "probe")
	late := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}}) // its first poll would claim the probe
	require.Never(t, func() bool { return len(ids) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
	require.Zero(t, late.Counters()[topic.Name()].Delivered)

	_, err = c.Resume(t.Context(), topic.Name())
	require.NoError(t, err)
	require.Equal(t, "probe", <-ids)
}

func TestOverrideRetunesNode(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	handler, running, release := stacktest.Blocking(topic, wakebell.MaxConcurrent(1))
	sys := stacktest.Start(t, wakebell.Config{Handlers: []wakebell.Handler{handler}})
	defer release()
	for _, id := range []string{"a", "b", "c"} {
		schedule(t, sys, topic, id)
	}
	<-running
	_, err := sys.Client().Retune(t.Context(), topic.Name(), wakebelltype.Settings{MaxConcurrent: 3})
	require.NoError(t, err)
	<-running
	<-running
}
