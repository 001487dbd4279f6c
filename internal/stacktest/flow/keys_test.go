package flow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestTimersOfKeyRunInOrderOnTwoNodes runs timers of 5 keys in virtual time on two
// nodes: some handlers fail once, and one node crashes. A node takes one timer of a key, or a key run.
func TestTimersOfKeyRunInOrderOnTwoNodes(t *testing.T) {
	t.Parallel()
	for _, run := range []int{1, 3, 100} {
		t.Run(fmt.Sprint(run, " of a key"), func(t *testing.T) {
			t.Parallel()
			runInOrder(t, run)
		})
	}
}

func runInOrder(t *testing.T, run int) {
	t.Helper()
	topic := wakebell.NewTopic[int]("bookings")
	handle := func(ctx context.Context, timer wakebell.Timer[int]) error {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if timer.Body%4 == 1 && timer.Failures == 0 {
			return errors.New("again")
		}
		return nil
	}
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.PerKey(1), wakebell.KeyRun(run), wakebell.MaxConcurrent(4))}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		second := w.Start(cfg)
		const keys, each = 5, 8
		var drafts []wakebell.Draft
		for i := range each {
			for k := range keys { // two of each instant, whose ids are in the reverse order
				drafts = append(drafts, topic.Draft(i, wakebell.Key(fmt.Sprint(k)), wakebell.In(time.Duration(1+i/2)*time.Second),
					wakebell.ID(fmt.Sprintf("%d-%d", k, each-i))))
			}
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		w.Advance(1050 * time.Millisecond)
		info, _, err := w.Client().Get(t.Context(), "bookings", "0-7")
		require.NoError(t, err)
		waits := wakebell.StateParked
		if run > 1 { // behind the other timer of its key run
			waits = wakebell.StateRunning
		}
		require.Equal(t, waits, info.State)
		require.Equal(t, "0", info.Key)
		second.Crash()
		w.Advance(5 * time.Minute)

		last, ended := map[string]int{}, map[string]time.Time{}
		for _, d := range w.Delivered("bookings") {
			key := d.ID[:1]
			require.GreaterOrEqual(t, wakebelltest.Body[int](t, d.Content), last[key], "%v", d)
			require.False(t, d.At.Before(ended[key]), "%v while another of its key ran", d)
			last[key] = wakebelltest.Body[int](t, d.Content)
			if ended[key] = d.Ended; d.Ended.IsZero() {
				ended[key] = d.At
			}
		}
		for k := range keys {
			require.Equal(t, each-1, last[fmt.Sprint(k)])
		}
		stats, err := w.Client().Stats(t.Context(), "bookings")
		require.NoError(t, err)
		require.Zero(t, stats.Total)
	})
}

// TestPerKeyAtRunTime removes the bound while timers wait for their key, and sets it
// again.
func TestPerKeyAtRunTime(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("bookings")
	handle := func(ctx context.Context, _ wakebell.Timer[string]) error {
		select {
		case <-time.After(time.Hour):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.PerKey(1), wakebell.MaxConcurrent(20))}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		for i := range 10 {
			_, err := topic.Schedule(t.Context(), w.Client(), "", wakebell.Key("k"), wakebell.ID(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		running := func(n int64) {
			t.Helper()
			w.Advance(10 * time.Second)
			stats, err := w.Client().Stats(t.Context(), "bookings")
			require.NoError(t, err)
			require.Equal(t, n, stats.Leased)
			require.Equal(t, 10-n, stats.Parked)
		}
		running(1)
		_, err := w.Client().Retune(t.Context(), "bookings", wakebelltype.Settings{PerKey: 3})
		require.NoError(t, err)
		running(3)
		_, err = w.Client().Retune(t.Context(), "bookings", wakebelltype.Settings{})
		require.NoError(t, err)
		running(3)
		_, err = w.Client().Retune(t.Context(), "bookings", wakebelltype.Settings{PerKey: -1})
		require.NoError(t, err)
		running(10)
		w.Advance(2 * time.Hour)
	})
}

// TestRateLimitByKeyOnTwoNodes handles timers of 3 keys, of which some fail once, under a
// limit that is raised, lowered and removed while timers wait.
func TestRateLimitByKeyOnTwoNodes(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[int]("calls")
	handle := func(_ context.Context, timer wakebell.Timer[int]) error {
		if timer.Body%10 == 5 && timer.Failures == 0 {
			return errors.New("again")
		}
		return nil
	}
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(topic, handle, wakebell.RateLimitByKey(1, time.Second, 2))}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		second := w.Start(cfg)
		const keys, each = 3, 100
		var drafts []wakebell.Draft
		for i := range each {
			for k := range keys {
				drafts = append(drafts, topic.Draft(i, wakebell.Key(fmt.Sprint(k)), wakebell.ID(fmt.Sprintf("%d-%d", k, each-i))))
			}
		}
		drafts = append(drafts, topic.Draft(1, wakebell.ID("free")))
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		began := time.Now()
		started := func(from time.Time) (n [keys]int) {
			for _, d := range w.Delivered("calls") {
				if key := d.ID[0]; key != 'f' && !d.At.Before(from) {
					n[key-'0']++
				}
			}
			return n
		}
		w.Advance(10 * time.Second)
		exchanges := second.System().Counters()["calls"].Exchanges
		for _, n := range started(began) {
			require.GreaterOrEqual(t, n, 11)
			require.LessOrEqual(t, n, 2+10)
		}
		w.Advance(10 * time.Second)
		second.Crash()
		require.Less(t, second.System().Counters()["calls"].Exchanges-exchanges, int64(120), "waiting timers cost no exchange")

		retune := func(s wakebelltype.Settings, d time.Duration) [keys]int {
			_, err := w.Client().Retune(t.Context(), "calls", s)
			require.NoError(t, err)
			from := time.Now()
			w.Advance(d)
			return started(from)
		}
		for _, n := range retune(wakebelltype.Settings{KeyRateLimit: 1, KeyRatePer: time.Hour, KeyRateBurst: 1}, 2*time.Hour) {
			require.InDelta(t, 2, n, 1)
		}
		for _, n := range retune(wakebelltype.Settings{KeyRateLimit: 10, KeyRateBurst: 1, KeyRatePer: time.Second}, 4*time.Second) {
			require.LessOrEqual(t, n, 1+40)
			require.GreaterOrEqual(t, n, 30, "a raised limit wakes those that wait")
		}
		retune(wakebelltype.Settings{KeyRateLimit: -1}, time.Minute)
		stats, err := w.Client().Stats(t.Context(), "calls")
		require.NoError(t, err)
		require.Zero(t, stats.Total, "without a limit")
	})
}
