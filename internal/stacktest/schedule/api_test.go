package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTimerInPastFiresAtOnce(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	got := make(chan wakebell.Timer[string], 3)
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
		got <- timer
		return nil
	}))
	for name, when := range map[string]wakebell.ScheduleOption{
		"In":  wakebell.In(-time.Hour),
		"At":  wakebell.At(time.Unix(1, 0)),
		"ago": wakebell.At(time.Now().Add(-time.Second)),
	} {
		_, err := topic.Schedule(t.Context(), sys.Client(), name, when)
		require.NoError(t, err)
		require.Equal(t, name, stacktest.Receive(t, got).Body)
	}
}

func TestHandlerReceivesScheduledTimer(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[stacktest.Invoice](redistest.Name(t))
	got := make(chan wakebell.Timer[stacktest.Invoice], 1)
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[stacktest.Invoice]) error {
		got <- timer
		return nil
	}))
	scheduled, err := sys.Client().Schedule(t.Context(), topic.Draft(stacktest.Invoice{Number: "7", Cents: 100}, wakebell.ID("a"), wakebell.In(20*time.Millisecond),
		wakebell.Header("x-a", "1"), wakebell.Header("x-b", ""), wakebell.Header("x-a", "2"), wakebell.CorrelationID("c")))
	require.NoError(t, err)
	timer := stacktest.Receive(t, got)
	require.Equal(t, stacktest.Invoice{Number: "7", Cents: 100}, timer.Body)
	require.JSONEq(t, `{"Number":"7","Cents":100}`, string(timer.Raw))
	require.Equal(t, "a", timer.ID)
	require.Equal(t, topic.Name(), timer.Topic)
	require.Equal(t, "c", timer.CorrelationID)
	require.Equal(t, "application/json", timer.ContentType)
	require.Equal(t, map[string]string{"x-a": "2", "x-b": ""}, timer.Headers.Map())
	_, found := timer.Headers.Get("x-c")
	require.False(t, found)
	require.Equal(t, scheduled[0].Due, timer.Activation)
	require.False(t, timer.Delivered.Before(timer.Activation))
	require.Equal(t, timer.Delivered.Sub(timer.Activation), timer.Lateness())
	require.Equal(t, 1, timer.Attempt)
}

func TestClientWorksWithoutActors(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	c := stacktest.Client(t, rdb, connection.Config{Prefix: "shop:"})
	topic := wakebell.NewTopic[string]("t")
	id, err := topic.Schedule(t.Context(), c, "b", wakebell.In(2*time.Hour))
	require.NoError(t, err)
	require.Len(t, id, 22, "a new one")
	_, err = c.Schedule(t.Context(),
		topic.Draft("c", wakebell.ID("c"), wakebell.In(3*time.Hour)),
		topic.Draft("a", wakebell.ID("a"), wakebell.In(time.Hour)),
		wakebell.NewTopic[int]("u").Draft(1, wakebell.ID("c")))
	require.NoError(t, err)

	info, content, err := c.Get(t.Context(), "t", "a")
	require.NoError(t, err)
	require.Equal(t, "shop:t", info.Topic)
	require.Equal(t, wakebell.StatePending, info.State)
	require.Equal(t, info.Due, info.Activation)
	require.Zero(t, info.Attempts)
	require.Equal(t, "a", string(content.Body))
	require.Equal(t, "a", content.CorrelationID)
	require.Equal(t, "text/plain", content.ContentType)
	_, _, err = c.Get(t.Context(), "t", "none")
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	require.Equal(t, []string{"a", id, "c"}, list(t, c, "t", wakebell.Filter{}))
	require.Equal(t, []string{"a", id}, list(t, c, "t", wakebell.Filter{DueBefore: time.Now().Add(150 * time.Minute)}))
	require.Empty(t, list(t, c, "t", wakebell.Filter{Running: true}))
	require.Empty(t, list(t, c, "none", wakebell.Filter{}))
	stats, err := c.Stats(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.Stats{Total: 3, Pending: 3}, stats)

	stacktest.Peer{Rdb: rdb, Topic: "python's"}.Publish(t, "x", "y", 1)
	require.Equal(t, []string{"shop:t", "shop:u"}, topics(t, c, false))
	require.Equal(t, []string{"python's", "shop:t", "shop:u"}, topics(t, c, true))

	n, err := c.CancelAll(t.Context(), "t")
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	n, err = c.CancelAll(t.Context(), "t")
	require.NoError(t, err)
	require.Zero(t, n)
}

func list(t *testing.T, c *wakebell.Client, topic string, f wakebell.Filter) (ids []string) {
	t.Helper()
	for info, err := range c.List(t.Context(), topic, f, wakebelltype.Page{}) {
		require.NoError(t, err)
		ids = append(ids, info.ID)
	}
	return ids
}

func topics(t *testing.T, c *wakebell.Client, discover bool) (names []string) {
	t.Helper()
	for name, err := range c.Topics(t.Context(), discover, wakebelltype.Page{}) {
		require.NoError(t, err)
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// List reads long lists in pages, in order, and a caller may end the loop early.
func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	const timers = 1234
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{})
	topic := wakebell.NewTopic[int](redistest.Name(t))
	due, want := time.Now().Add(time.Hour), make([]string, timers)
	drafts := make([]wakebell.Draft, timers)
	for i := range drafts {
		want[i] = fmt.Sprintf("%04d", i)
		drafts[timers-1-i] = topic.Draft(i, wakebell.ID(want[i]), wakebell.At(due.Add(time.Duration(i/10)*time.Second)))
	}
	_, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	require.Equal(t, want, list(t, c, topic.Name(), wakebell.Filter{}))
	for info, err := range c.List(t.Context(), topic.Name(), wakebell.Filter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		require.Equal(t, "0000", info.ID)
		break
	}
}

func TestKeysAndHashTags(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	conn := conntest.Switched(t, rdb, connection.Config{
		Keys: wakebelltype.Keys{Timeline: "tl", Payloads: "pl", HashTag: true}, Prefix: "p:",
	}, opened.Switches{Names: timers.Names{Leases: "le", Dead: "de", Exchange: "ex", Hint: "hi", Topics: "to", Counts: "co", History: "at"}})
	topic := wakebell.NewTopic[string]("t")
	tried := make(chan struct{}, 1)
	sys := stacktest.Launch(t, stacktest.BuildOn(t, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
			if timer.Body == "dead" {
				return wakebell.Reject(nil)
			}
			tried <- struct{}{}
			return errors.New("later")
		}, wakebell.RetryBackoff(time.Hour, time.Hour)),
	}}))
	for _, body := range []string{"dead", "retried"} {
		_, err := topic.Schedule(t.Context(), sys.Client(), body)
		require.NoError(t, err)
	}
	stacktest.Receive(t, tried)
	stacktest.Eventually(t, func() bool { return sys.Counters()["p:t"].Retried+sys.Counters()["p:t"].DeadLettered == 2 })
	found := rdb.Keys(t.Context(), "*").Val()
	for _, key := range []string{"tl:{p:t}", "pl:{p:t}", "le:{p:t}", "de:{p:t}", "to"} {
		require.Contains(t, found, key)
	}
	for _, key := range found {
		require.NotContains(t, key, "timers_")
	}
	require.Equal(t, []string{"p:t"}, topics(t, sys.Client(), true))
}

// Schedule applies its policy to a timer that exists, and Cancel reports what it
// removed.
func TestPoliciesAndCancel(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	started, causes := make(chan string, 10), make(chan error, 10)
	sys := stacktest.Serve(t, redistest.Shared(t), wakebell.Handle(topic, func(ctx context.Context, timer wakebell.Timer[string]) error {
		started <- timer.ID
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}, wakebell.LeaseTTL(12*time.Second))) // a handler that misses the hint notices the cancel within a third of the lease
	c := sys.Client()
	outcome := func(id string, opts ...wakebell.ScheduleOption) wakebelltype.Outcome {
		scheduled, err := c.Schedule(t.Context(), topic.Draft("x", append(opts, wakebell.ID(id))...))
		require.NoError(t, err)
		require.Equal(t, id, scheduled[0].ID)
		return scheduled[0].Outcome
	}
	later, keep := wakebell.In(time.Hour), wakebell.IfExists(wakebelltype.PolicyKeep)
	require.Equal(t, wakebelltype.OutcomeCreated, outcome("a", later, keep))
	require.Equal(t, wakebelltype.OutcomeKeptPending, outcome("a", wakebell.In(0), keep))
	require.Equal(t, wakebelltype.OutcomeReplaced, outcome("a", later))
	require.Equal(t, wakebelltype.OutcomeCreated, outcome("run"))
	require.Equal(t, "run", stacktest.Receive(t, started))
	require.Equal(t, wakebelltype.OutcomeKeptRunning, outcome("run", keep))
	require.Equal(t, []string{"run"}, list(t, c, topic.Name(), wakebell.Filter{Running: true}))
	info, _, err := c.Get(t.Context(), topic.Name(), "run")
	require.NoError(t, err)
	require.Equal(t, wakebell.StateRunning, info.State)
	require.Equal(t, 1, info.Attempts)
	require.True(t, info.Due.After(info.Activation), "the lease expires later")

	presences, err := c.Cancel(t.Context(), topic.Name(), "none", "a", "run", "a")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceAbsent, wakebelltype.PresencePending, wakebelltype.PresenceRunning, wakebelltype.PresenceAbsent}, presences)
	require.ErrorIs(t, stacktest.Receive(t, causes), wakebell.ErrCancelled)
	presence, err := topic.Cancel(t.Context(), c, "run")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.PresenceAbsent, presence)

	for i := range 3 {
		outcome(strconv.Itoa(i))
		stacktest.Receive(t, started)
	}
	n, err := c.CancelAll(t.Context(), topic.Name())
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	for range 3 {
		require.ErrorIs(t, stacktest.Receive(t, causes), wakebell.ErrCancelled)
	}
	stacktest.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Cancelled == 4 })
}
