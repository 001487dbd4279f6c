package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestHistoryOfTimers delivers timers that succeed, fail, panic and are rejected, under
// each policy, and checks their attempts and the counts of the topic.
func TestHistoryOfTimers(t *testing.T) {
	t.Parallel()
	failures := []string{"flaky 1 retried the bank is down", "bad 1 dead no such account", "crash 1 crashed handler crashed: oops", "flaky 2 acked ", "crash 2 acked "}
	for policy, want := range map[wakebelltype.HistoryPolicy][]string{
		wakebelltype.HistoryOff:      nil,
		wakebelltype.HistoryFailures: failures,
		wakebelltype.HistoryAll:      append([]string{"good 1 acked "}, failures...),
	} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			topic := wakebell.NewTopic[string]("t")
			handle := func(_ context.Context, d wakebell.Timer[string]) error {
				switch {
				case d.ID == "flaky" && d.Attempt == 1:
					return errors.New("the bank is down")
				case d.ID == "bad":
					return wakebell.Reject(errors.New("no such account"))
				case d.ID == "crash" && d.Attempt == 1:
					panic("oops")
				}
				return nil
			}
			cfg := wakebell.Config{Logger: quiet, Handlers: []wakebell.Handler{
				wakebell.Handle(topic, handle, wakebell.History(policy), wakebell.RetryBackoff(time.Second, time.Second), wakebell.LeaseTTL(10*time.Second)),
			}}
			wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
				for _, id := range []string{"good", "flaky", "bad", "crash"} {
					_, err := topic.Schedule(t.Context(), w.Client(), "", wakebell.ID(id), wakebell.In(time.Second))
					require.NoError(t, err)
				}
				w.Advance(time.Minute)
				var got []string
				for a, err := range w.Client().History(t.Context(), "t", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
					require.NoError(t, err)
					require.NotEmpty(t, a.Node)
					require.WithinDuration(t, time.Now(), a.Started, time.Minute)
					require.Equal(t, a.Outcome == wakebelltype.EventAcked || a.Outcome == wakebelltype.EventDead, a.Final())
					got = append(got, fmt.Sprintf("%s %d %s %s", a.ID, a.Attempt, a.Outcome, a.Error))
				}
				require.ElementsMatch(t, want, got)
				sum := wakebelltype.ThroughputCounts{}
				found, err := w.Client().Throughput(t.Context(), "t", time.Hour)
				require.NoError(t, err)
				require.Equal(t, time.Minute, found.Step)
				require.Len(t, found.Points, 60)
				for _, p := range found.Points {
					sum.Scheduled, sum.Handled, sum.Failed, sum.Dead = sum.Scheduled+p.Scheduled, sum.Handled+p.Handled, sum.Failed+p.Failed, sum.Dead+p.Dead
				}
				require.Equal(t, wakebelltype.ThroughputCounts{Scheduled: 4, Handled: 3, Failed: 2, Dead: 1}, sum)
			})
		})
	}
}

// A history and counts that cannot be written do not delay a delivery.
func TestDeliveriesDoNotDependOnRecords(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	for _, key := range []string{"timers_history:", "timers_counts:"} {
		require.NoError(t, rdb.Set(t.Context(), key+topic.Name(), "x", 0).Err())
	}
	sys := build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.History(wakebelltype.HistoryAll)),
	}})
	require.NoError(t, sys.Start(t.Context()))
	for range 3 {
		_, err := topic.Schedule(t.Context(), sys.Client(), "x")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 3 }, patience, time.Millisecond)
	require.NoError(t, sys.Stop())

	c := sys.Client()
	for _, f := range []wakebelltype.HistoryFilter{{}, {Last: 1}} {
		for _, err := range c.History(t.Context(), topic.Name(), f, wakebelltype.Page{}) {
			require.ErrorIs(t, err, wakebell.ErrWrongType)
		}
	}
	for _, err := range c.History(t.Context(), "", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
	_, err := wakebell.New(actorSystem(), rdb, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.History(9)),
	}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}
