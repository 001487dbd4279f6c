package observe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestNodesReportForOperators follows what a node stores in Redis: its open breaker at once,
// its adaptive concurrency, its group, its limits and its expiry; nothing of a topic without these, and
// nothing when it has ended.
func TestNodesReportForOperators(t *testing.T) {
	t.Parallel()
	names := []string{"breaker", "adaptive", "group", "limits", "expiry", "plain"}
	topics := map[string]wakebell.Topic[int]{}
	healed := false
	handler := func(name string, options ...wakebell.HandlerOption) wakebell.Handler {
		topics[name] = wakebell.NewTopic[int](name)
		return wakebell.Handle(topics[name], func(context.Context, wakebell.Timer[int]) error {
			if name == "breaker" && !healed {
				return errors.New("no route")
			}
			return nil
		}, options...)
	}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		handler("breaker", wakebell.Breaker(wakebelltype.Breaker{FailureRatio: 0.5, Deliveries: 1, OpenFor: time.Minute}), wakebell.RetryBackoff(time.Hour, time.Hour)),
		handler("adaptive", wakebell.AdaptiveConcurrency(wakebelltype.Adaptive{Min: 3}), wakebell.MaxConcurrent(20)),
		handler("group", wakebell.Weight("mail", 9)),
		handler("limits", wakebell.PerKey(2), wakebell.RateLimitByKey(5, time.Second, 1)),
		handler("expiry", wakebell.Expiry(wakebelltype.Expiry{After: time.Hour})),
		handler("plain"),
	}}, func(t *testing.T, w *wakebelltest.World) {
		read := func() map[string][]wakebelltype.NodeReport {
			all, err := w.Client().Overview(t.Context(), names...)
			require.NoError(t, err)
			of := map[string][]wakebelltype.NodeReport{}
			for _, o := range all {
				of[o.Topic] = o.Reports
			}
			return of
		}
		w.Advance(2 * time.Second)
		of := read()
		require.Empty(t, of["plain"])
		require.Equal(t, "closed", of["breaker"][0].State.Breaker)
		require.Zero(t, of["breaker"][0].State.BreakerSince)
		require.Positive(t, of["adaptive"][0].State.Concurrency)
		require.Equal(t, "mail 9", of["group"][0].State.Group+" "+string('0'+rune(of["group"][0].State.Weight)))
		require.Equal(t, 2, of["limits"][0].State.Options.PerKey)
		require.Equal(t, 5, of["limits"][0].State.Options.KeyRateLimit)
		require.Len(t, of["expiry"], 1)
		require.Equal(t, time.Hour, of["expiry"][0].State.ExpireAfter)

		_, err := w.Client().Schedule(t.Context(), topics["limits"].Draft(1, wakebell.Key("k")), topics["limits"].Draft(2, wakebell.Key("k")))
		require.NoError(t, err)
		w.Advance(2 * time.Second)
		require.EqualValues(t, 1, w.Nodes()[0].System().Counters()["limits"].KeyThrottled)

		opened := time.Now()
		_, err = topics["breaker"].Schedule(t.Context(), w.Client(), 1)
		require.NoError(t, err)
		w.Advance(time.Second)
		s := read()["breaker"][0].State
		require.Equal(t, "open", s.Breaker)
		require.WithinDuration(t, opened, s.BreakerSince, time.Second)
		require.Equal(t, time.Minute, s.BreakerUntil.Sub(s.BreakerSince))
		require.Equal(t, "1 of 1 deliveries failed: no route", s.BreakerReason)
		health := w.Nodes()[0].System().Health(t.Context())
		require.ErrorContains(t, errors.New(health.Problems[0]), "no route")
		for _, topic := range health.Topics {
			if topic.Topic == "breaker" {
				require.Equal(t, s.BreakerReason, topic.BreakerReason)
				require.WithinDuration(t, s.BreakerUntil, topic.BreakerUntil, 0)
			}
		}

		w.Advance(2 * time.Minute)
		s = read()["breaker"][0].State
		require.Equal(t, "half-open", s.Breaker)
		require.WithinDuration(t, opened, s.BreakerSince, time.Second, "it is not closed since")
		healed = true
		_, err = topics["breaker"].Schedule(t.Context(), w.Client(), 1)
		require.NoError(t, err)
		w.Advance(10 * time.Second)
		s = read()["breaker"][0].State
		require.Equal(t, "closed", s.Breaker)
		require.Empty(t, s.BreakerReason)
		require.Zero(t, s.BreakerSince)

		w.Advance(10 * time.Minute)
		require.Len(t, read()["group"], 1, "a report is repeated before it expires")
		require.NoError(t, w.Nodes()[0].Stop())
		for _, name := range names {
			require.Empty(t, read()[name])
		}
	})
}
