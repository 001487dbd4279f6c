package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

var offers = wakebell.NewTopic[int]("offers")

// late schedules a timer that is due at once, while the topic is paused for a time.
func late(t *testing.T, w *wakebelltest.World, by time.Duration, opts ...wakebell.ScheduleOption) {
	t.Helper()
	pause(t, w)
	_, err := offers.Schedule(t.Context(), w.Client(), 1, opts...)
	require.NoError(t, err)
	w.Advance(by)
	resume(t, w)
	w.Advance(30 * time.Second)
}

func pause(t *testing.T, w *wakebelltest.World) {
	t.Helper()
	_, err := w.Client().Pause(t.Context(), "offers", "tests", "")
	require.NoError(t, err)
}

func resume(t *testing.T, w *wakebelltest.World) {
	t.Helper()
	_, err := w.Client().Resume(t.Context(), "offers")
	require.NoError(t, err)
}

func TestTimerThatCouldNotBeginInTimeExpires(t *testing.T) {
	t.Parallel()
	expire := wakebell.Expiry(wakebelltype.Expiry{After: 2 * time.Minute})
	for name, test := range map[string]struct {
		handler  []wakebell.HandlerOption
		timer    []wakebell.ScheduleOption
		late     time.Duration
		handled  int
		expected wakebelltest.Outcome
	}{
		"in time":                     {handler: []wakebell.HandlerOption{expire}, late: time.Minute, handled: 1, expected: wakebelltest.Acked},
		"topic's limit":               {handler: []wakebell.HandlerOption{expire}, late: 3 * time.Minute, expected: wakebelltest.Expired},
		"shards":                      {handler: []wakebell.HandlerOption{expire, wakebell.Shards(4)}, late: 3 * time.Minute, expected: wakebelltest.Expired},
		"keys":                        {handler: []wakebell.HandlerOption{expire, wakebell.PerKey(1)}, timer: []wakebell.ScheduleOption{wakebell.Key("k")}, late: 3 * time.Minute, expected: wakebelltest.Expired},
		"timer's limit":               {timer: []wakebell.ScheduleOption{wakebell.ExpireAfter(30 * time.Second)}, late: time.Minute, expected: wakebelltest.Expired},
		"timer's longer limit wins":   {handler: []wakebell.HandlerOption{expire}, timer: []wakebell.ScheduleOption{wakebell.ExpireAfter(time.Hour)}, late: 3 * time.Minute, handled: 1, expected: wakebelltest.Acked},
		"header that is no limit":     {timer: []wakebell.ScheduleOption{wakebell.Header(wakebelltype.ExpiryHeader, "soon")}, late: 3 * time.Minute, handled: 1, expected: wakebelltest.Acked},
		"limit in a header of a peer": {timer: []wakebell.ScheduleOption{wakebell.Header(wakebelltype.ExpiryHeader, "1m")}, late: 3 * time.Minute, expected: wakebelltest.Expired},
		"no limit":                    {late: 1000 * time.Hour, handled: 1, expected: wakebelltest.Acked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls int
			cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(offers, func(context.Context, wakebell.Timer[int]) error {
				calls++
				return nil
			}, append(test.handler, wakebell.History(wakebelltype.HistoryFailures))...)}}
			wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
				late(t, w, test.late, append(test.timer, wakebell.ID("a"))...)
				require.Equal(t, test.handled, calls)
				require.Equal(t, test.expected, w.RequireDelivered("offers", "a").Outcome)
				_, _, err := w.Client().Get(t.Context(), "offers", "a")
				require.ErrorIs(t, err, wakebell.ErrNotFound)
				var expired, acked int64
				for _, c := range w.Nodes()[0].System().Counters() {
					expired, acked = expired+c.Expired, acked+c.Acked
				}
				require.Equal(t, []int64{int64(1 - test.handled), int64(test.handled)}, []int64{expired, acked})
				var history []wakebelltype.Attempt
				for a, err := range w.Client().History(t.Context(), "offers", wakebelltype.HistoryFilter{ID: "a"}, wakebelltype.Page{}) {
					require.NoError(t, err)
					history = append(history, a)
				}
				require.Len(t, history, 1-test.handled)
				for _, a := range history {
					require.Equal(t, wakebelltype.EventExpired, a.Outcome)
					require.True(t, a.Final())
					require.Regexp(t, `^expired: it could begin .* after its instant, limit .*`, a.Error)
				}
			})
		})
	}
}

func TestExpiredTimerBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.HandleBatch(offers, func(_ context.Context, timers []wakebell.Timer[int]) error {
		require.Equal(t, "in time", timers[0].ID)
		require.Len(t, timers, 1)
		return nil
	}, wakebell.Expiry(wakebelltype.Expiry{After: time.Minute, DeadLetter: true}))}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		pause(t, w)
		_, err := offers.Schedule(t.Context(), w.Client(), 2, wakebell.ID("in time"), wakebell.ExpireAfter(time.Hour))
		require.NoError(t, err)
		late(t, w, 3*time.Minute, wakebell.ID("a"))
		dead := w.Dead("offers")
		require.Len(t, dead, 1)
		require.Equal(t, "a", dead[0].ID)
		require.Regexp(t, `^expired: it could begin 3m0.*s after its instant, limit 1m0s$`, dead[0].Reason)
		require.Zero(t, dead[0].Failures)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("offers", "in time").Outcome)
		counters := w.Nodes()[0].System().Counters()["offers"]
		require.Equal(t, []int64{1, 1, 1}, []int64{counters.Expired, counters.ExpiredDead, counters.DeadLettered})
	})
}

func TestExpiredTimerIsSentToAnotherTopic(t *testing.T) {
	t.Parallel()
	var sent []wakebell.Timer[int]
	cfg := wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(offers, func(context.Context, wakebell.Timer[int]) error { panic("expired") },
			wakebell.Expiry(wakebelltype.Expiry{After: time.Minute, Topic: "late-offers"})),
		wakebell.Handle(wakebell.NewTopic[int]("late-offers"), func(_ context.Context, timer wakebell.Timer[int]) error {
			sent = append(sent, timer)
			return nil
		}),
	}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		late(t, w, 3*time.Minute, wakebell.ID("a"), wakebell.Header("color", "red"), wakebell.CorrelationID("c"), wakebell.ExpireAfter(2*time.Minute))
		require.Len(t, sent, 1)
		require.Equal(t, 1, sent[0].Body)
		require.Equal(t, []string{"a", "c", "application/json"}, []string{sent[0].ID, sent[0].CorrelationID, sent[0].ContentType})
		headers := sent[0].Headers.Map()
		require.Regexp(t, `^expired: it could begin 3m0.*s after its instant, limit 2m0s$`, headers[wakebelltype.ExpiredReasonHeader])
		delete(headers, wakebelltype.ExpiredReasonHeader)
		require.Equal(t, map[string]string{"color": "red", wakebelltype.ExpiredFromHeader: "offers"}, headers)
		require.Equal(t, wakebelltest.Expired, w.RequireDelivered("offers", "a").Outcome)
	})
}

// An expired timer keeps its key on the other topic: it waits there for its turn.
func TestExpiredTimerKeepsItsKey(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 3} {
		var sent []string
		var release chan struct{}
		cfg := wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(offers, func(context.Context, wakebell.Timer[int]) error { panic("expired") }, wakebell.Shards(shards),
				wakebell.Expiry(wakebelltype.Expiry{After: time.Minute, Topic: "late-offers"})),
			wakebell.Handle(wakebell.NewTopic[int]("late-offers"), func(ctx context.Context, timer wakebell.Timer[int]) error {
				sent = append(sent, timer.ID)
				<-release
				return nil
			}, wakebell.PerKey(1)),
		}}
		wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
			release = make(chan struct{}) // in virtual time
			late(t, w, 3*time.Minute, wakebell.ID("a"), wakebell.Key("customer"))
			late(t, w, 3*time.Minute, wakebell.ID("b"), wakebell.Key("customer"))
			require.Equal(t, []string{"a"}, sent, "b waits for its key")
			close(release)
			w.Advance(time.Second)
			require.Equal(t, []string{"a", "b"}, sent)
		})
	}
}

// Retries and snoozes do not expire: their timers have begun.
func TestTimerThatHasBegunDoesNotExpire(t *testing.T) {
	t.Parallel()
	for name, verdict := range map[string]error{
		"snoozed": wakebell.Snooze(time.Hour), "failed": wakebell.RetryIn(time.Hour), "released": wakebell.Release(errors.New("not here")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls int
			cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(offers, func(context.Context, wakebell.Timer[int]) error {
				if calls++; calls <= 2 {
					return verdict
				}
				return nil
			}, wakebell.Expiry(wakebelltype.Expiry{After: 2 * time.Minute}))}}
			wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
				_, err := offers.Schedule(t.Context(), w.Client(), 1, wakebell.ID("a"))
				require.NoError(t, err)
				w.Advance(3 * time.Hour)
				require.Equal(t, 3, calls)
				require.Equal(t, wakebelltest.Acked, w.RequireDelivered("offers", "a").Outcome)
			})
		})
	}
}

func TestWaitSaysThatTimerHasExpired(t *testing.T) {
	t.Parallel()
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(offers, func(context.Context, wakebell.Timer[int]) error { return nil })}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		pause(t, w)
		_, err := offers.Schedule(t.Context(), w.Client(), 1, wakebell.ID("a"), wakebell.ExpireAfter(time.Second))
		require.NoError(t, err)
		ended := make(chan wakebell.Ending, 1)
		go func() {
			e, err := w.Client().Wait(t.Context(), "offers", "a")
			if err == nil {
				ended <- e
			}
		}()
		w.Advance(time.Minute)
		resume(t, w)
		w.Advance(time.Minute)
		e := <-ended
		require.Equal(t, wakebelltype.EndExpired, e.End)
		require.Contains(t, e.Reason, "limit 1s")
	})
}

func TestExpiryIsBounded(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{-1, 0, wakebelltype.MinExpiry - 1, wakebelltype.MaxExpiry + 1} {
		wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
			_, err := offers.Schedule(t.Context(), w.Client(), 1, wakebell.ExpireAfter(d))
			require.ErrorIs(t, err, wakebell.ErrInvalid)
			require.ErrorContains(t, err, "ExpireAfter")
		})
	}
}
