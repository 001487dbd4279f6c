package life_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

func TestHealthFromStartToStop(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	rdb := server.Client(t, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 4*time.Second, -1 })
	good, idle, broken := wakebell.NewTopic[string]("good"), wakebell.NewTopic[string]("idle"), wakebell.NewTopic[string]("broken")
	running, finish := make(chan struct{}), make(chan struct{})
	sys := stacktest.Build(t, rdb, wakebell.Config{DrainTimeout: time.Minute, Handlers: []wakebell.Handler{
		wakebell.Handle(good, func(context.Context, wakebell.Timer[string]) error {
			close(running)
			<-finish
			return nil
		}, wakebell.LeaseTTL(time.Hour)),
		wakebell.Handle(idle, stacktest.Nothing),
		wakebell.Handle(broken, stacktest.Nothing, wakebell.MaxPollingInterval(50*time.Millisecond)),
	}})
	health := func() wakebell.Health {
		ctx, cancel := context.WithTimeout(t.Context(), stacktest.Patience)
		defer cancel()
		return sys.Health(ctx)
	}
	topic := func(h wakebell.Health, name string) wakebell.TopicHealth {
		for _, of := range h.Topics {
			if of.Topic == name {
				return of
			}
		}
		require.FailNow(t, "no such topic", name)
		return wakebell.TopicHealth{}
	}

	h := health()
	require.True(t, h.Live)
	require.False(t, h.Ready)
	require.Equal(t, []string{"not started"}, h.Problems)
	require.NoError(t, h.Redis)

	stacktest.Launch(t, sys)
	require.NoError(t, sys.PauseLocal("idle"))
	_, err := idle.Schedule(t.Context(), sys.Client(), "x", wakebell.At(time.Now().Add(-time.Hour)))
	require.NoError(t, err)
	_, err = good.Schedule(t.Context(), sys.Client(), "x")
	require.NoError(t, err)
	stacktest.Receive(t, running)
	h = health()
	require.True(t, h.Live)
	require.True(t, h.Ready)
	require.Empty(t, h.Problems)
	require.Len(t, h.Topics, 3)
	require.Equal(t, 1, topic(h, "good").Running)
	require.Zero(t, topic(h, "good").Behind, "its only timer is leased")
	require.WithinDuration(t, time.Now(), topic(h, "good").LastExchange, stacktest.Patience)
	require.True(t, topic(h, "idle").Paused)
	require.InDelta(t, time.Hour, topic(h, "idle").Behind, float64(time.Minute))

	// A topic that fails by itself is listed as a problem, and the node stays ready.
	require.NoError(t, admin.Set(t.Context(), "timers_leases:broken", "x", 0).Err())
	stacktest.Eventually(t, func() bool {
		h = health()
		return topic(h, "broken").Failures > 0
	})
	require.True(t, h.Ready)
	require.ErrorIs(t, topic(h, "broken").Err, wakebell.ErrWrongType)
	require.Contains(t, strings.Join(h.Problems, "\n"), `topic "broken" backs off`)
	require.NoError(t, admin.Del(t.Context(), "timers_leases:broken").Err())
	stacktest.Eventually(t, func() bool { return len(health().Problems) == 0 })

	// A node stays live while Redis is down: a restart would not help.
	server.Pause()
	answered := make(chan wakebell.Health, 1)
	go func() { answered <- sys.Health(t.Context()) }()
	h = stacktest.Receive(t, answered) // it does not wait for a Redis that hangs
	require.False(t, h.Ready)
	require.ErrorIs(t, h.Redis, wakebell.ErrUnavailable)
	stacktest.Eventually(t, func() bool { return !topic(sys.Health(t.Context()), "idle").DownSince.IsZero() })
	require.True(t, sys.Health(t.Context()).Live)
	server.Resume()
	stacktest.Eventually(t, func() bool { return health().Ready })
	require.Zero(t, topic(health(), "idle").DownSince)

	stopped := make(chan error, 1)
	go func() { stopped <- sys.Stop() }()
	stacktest.Eventually(t, func() bool { return health().Draining })
	require.False(t, health().Ready)
	require.True(t, health().Live, "a draining node is live")
	close(finish)
	require.NoError(t, stacktest.Receive(t, stopped))
	require.False(t, health().Ready)
}

func TestHealthOverHTTP(t *testing.T) {
	t.Parallel()
	sys := stacktest.Build(t, redistest.Shared(t), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(wakebell.NewTopic[string](redistest.Name(t)), stacktest.Nothing),
	}})
	handler := sys.HealthHandler()
	get := func(method, path string) (int, map[string]any) {
		w := httptest.NewRecorder()
		ctx, cancel := context.WithTimeout(t.Context(), stacktest.Patience) // the default would be 1 s
		defer cancel()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, http.NoBody))
		var body map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &body) // some responses have no body
		return w.Code, body
	}
	code, body := get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, []any{"not started"}, body["problems"])
	code, _ = get(http.MethodGet, "/livez")
	require.Equal(t, http.StatusOK, code)

	stacktest.Launch(t, sys)
	code, body = get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, true, body["ready"])
	require.Equal(t, []any{}, body["problems"])
	require.Nil(t, body["redis_error"])
	topics, ok := body["topics"].([]any)
	require.True(t, ok)
	require.Len(t, topics, 1)
	first, ok := topics[0].(map[string]any)
	require.True(t, ok)
	require.Nil(t, first["error"])
	require.InDelta(t, 0, first["behind_seconds"], 0)

	code, _ = get(http.MethodHead, "/readyz")
	require.Equal(t, http.StatusOK, code)
	code, _ = get(http.MethodPost, "/readyz")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	code, _ = get(http.MethodGet, "/")
	require.Equal(t, http.StatusNotFound, code)

	require.NoError(t, sys.Stop())
	code, _ = get(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	code, _ = get(http.MethodGet, "/livez")
	require.Equal(t, http.StatusOK, code)
}

// A step of Redis's clock is counted once for all topics, logged, and listed as a
// problem. Timers follow the new time.
func TestStepOfClockOfRedisIsReported(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		var ahead atomic.Int64
		rdb, _ := stacktest.SkewedBy(t, func() time.Duration { return time.Duration(ahead.Load()) })
		one, two := wakebell.NewTopic[string]("one"), wakebell.NewTopic[string]("two")
		fired := make(chan time.Time, 1)
		log := &stacktest.Logged{}
		sys := stacktest.Launch(t, stacktest.BuildOn(t, conntest.New(t, rdb, connection.Config{Logger: log.Logger()}), wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(one, func(context.Context, wakebell.Timer[string]) error {
				fired <- time.Now()
				return nil
			}),
			wakebell.Handle(two, stacktest.Nothing),
		}}))
		<-time.After(time.Minute)
		_, err := one.Schedule(t.Context(), sys.Client(), "x", wakebell.In(2*time.Hour))
		require.NoError(t, err)
		require.Zero(t, sys.Health(t.Context()).ClockSteps.Count)
		require.True(t, sys.Health(t.Context()).Ready)

		ahead.Store(int64(time.Hour))
		<-time.After(time.Minute)
		h := sys.Health(t.Context())
		require.EqualValues(t, 1, h.ClockSteps.Count)
		require.InDelta(t, time.Hour, h.ClockSteps.By, float64(time.Second))
		require.True(t, h.Ready)
		require.Contains(t, strings.Join(h.Problems, "\n"), "the clock of redis has stepped 1 times")
		counters := sys.Counters()
		require.EqualValues(t, 1, counters["one"].ClockSteps+counters["two"].ClockSteps)
		require.Equal(t, 1, log.Count("redis clock stepped"))
		before := time.Now()
		require.InDelta(t, time.Hour-time.Minute, (<-fired).Sub(before), float64(10*time.Second), "by Redis's clock")

		ahead.Store(0)
		<-time.After(time.Minute)
		h = sys.Health(t.Context())
		require.EqualValues(t, 2, h.ClockSteps.Count)
		require.InDelta(t, -time.Hour, h.ClockSteps.By, float64(time.Second))
	})
}
