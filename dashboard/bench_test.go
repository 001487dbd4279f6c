package dashboard_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/meter"
	"github.com/wakebell/wakebell/internal/redistest"
)

// The sizes at which pages are measured.
const (
	largeTimers  = 1_000_000
	largeTopics  = 10_000
	largeLetters = 100_000
)

// large returns a client of a Redis with that many timers on the topic "large", as many
// topics, and dead letters.
func large(b *testing.B) (*redis.Client, *wakebell.Client) {
	b.Helper()
	rdb := redistest.Start(b).Client(b)
	client, err := wakebell.NewClient(conntest.New(b, rdb, connection.Config{NoCounts: true}))
	require.NoError(b, err)
	ctx := b.Context()
	topic := wakebell.NewTopic[string]("large")
	for from := 0; from < largeTimers; from += 10_000 {
		drafts := make([]wakebell.Draft, 10_000)
		for i := range drafts {
			drafts[i] = topic.Draft("a body of about a hundred bytes, as most timers have: an id of what it is about, and little more",
				wakebell.ID(fmt.Sprintf("timer-%07d", from+i)), wakebell.In(time.Hour+time.Duration(from+i)*time.Second))
		}
		_, err := client.Schedule(ctx, drafts...)
		require.NoError(b, err)
	}
	for i := range largeTopics {
		_, err := wakebell.NewTopic[string](fmt.Sprintf("topic-%05d", i)).Schedule(ctx, client, "x", wakebell.In(time.Hour))
		require.NoError(b, err)
	}
	for from := 0; from < largeLetters; from += 1000 {
		pipe := rdb.Pipeline()
		for i := range 1000 {
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: "timers_dead:large", Values: map[string]any{
				"id": fmt.Sprintf("dead-%06d", from+i), "payload": `{"x":1}`, "claims": 5, "failures": 5,
				"reason": fmt.Sprintf("connect to 10.0.0.%d: connection refused", i%50), "activation": "1700000000", "at": "1700000000",
			}})
		}
		_, err := pipe.Exec(ctx)
		require.NoError(b, err)
	}
	return rdb, client
}

// serveLarge serves a dashboard with empty caches until end is called.
func serveLarge(b *testing.B, rdb *redis.Client, client *wakebell.Client) (server *httptest.Server, end func()) {
	b.Helper()
	gates, err := gate.New(conntest.New(b, rdb, connection.Config{}), gate.Config{})
	require.NoError(b, err)
	d, err := dashboard.New(conntest.WithoutRedis(b, connection.Config{Logger: slog.New(slog.DiscardHandler)}), dashboard.Operators{
		Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates,
	}, dashboard.Config{Writable: true})
	require.NoError(b, err)
	server = httptest.NewServer(d)
	return server, func() { server.Close(); d.Close(); _ = gates.Close() }
}

// BenchmarkPages reports the first byte of each page, the median and the slowest of
// five dashboards with empty caches, and the longest command that Redis ran for it.
func BenchmarkPages(b *testing.B) {
	rdb, client := large(b)
	ctx := b.Context()
	require.NoError(b, rdb.ConfigSet(ctx, "slowlog-log-slower-than", "0").Err())
	require.NoError(b, rdb.ConfigSet(ctx, "slowlog-max-len", "10000").Err())
	for _, page := range []string{
		"", "topics", "topics?q=99", "topic?name=large", "timers?topic=large", "timers?topic=large&prefix=timer-0900",
		"timer?topic=large&id=timer-0500000", "dead", "dead?topic=large", "dead?topic=large&reason=10.0.0.7", "queues", "schedules", "gates",
		"nodes", "audit", "doctor", "search?q=timer-0500000",
	} {
		b.Run(strings.ReplaceAll(page, "?", "/"), func(b *testing.B) {
			var took []time.Duration
			require.NoError(b, rdb.Do(ctx, "SLOWLOG", "RESET").Err())
			for b.Loop() {
				took = took[:0]
				for range 5 {
					server, end := serveLarge(b, rdb, client)
					began := time.Now()
					resp, err := http.Get(server.URL + "/" + page) //nolint:noctx // of a benchmark
					took = append(took, time.Since(began))
					require.NoError(b, err)
					require.NoError(b, resp.Body.Close())
					require.Equal(b, http.StatusOK, resp.StatusCode)
					end() // its reads would slow the next one down
				}
			}
			slices.Sort(took)
			longest := time.Duration(0)
			for _, entry := range rdb.SlowLogGet(ctx, -1).Val() {
				longest = max(longest, entry.Duration)
			}
			b.ReportMetric(float64(took[2].Milliseconds()), "first-byte-ms")
			b.ReportMetric(float64(took[4].Milliseconds()), "slowest-ms")
			b.ReportMetric(float64(longest.Microseconds())/1e3, "redis-blocked-ms")
		})
	}
}

// BenchmarkIdleBrowsers reports what 50 browsers cost while nothing happens, as shares
// of a core.
func BenchmarkIdleBrowsers(b *testing.B) {
	rdb, client := large(b)
	server, end := serveLarge(b, rdb, client)
	defer end()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	overview := "/live?of=overview&feed=large"
	for i := range 9 {
		overview += fmt.Sprintf("&feed=topic-%05d", i)
	}
	for i := range 50 {
		of := []string{overview, "/live?of=topic&name=large&feed=large", "/live?of=topics&name=topic-00001&name=large"}[i%3]
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+of, http.NoBody)
		require.NoError(b, err)
		resp, err := http.DefaultClient.Do(request)
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, resp.StatusCode)
		defer func() { _ = resp.Body.Close() }()
		_, err = bufio.NewReader(resp.Body).ReadString('\n')
		require.NoError(b, err)
	}
	used := func() (of, all float64) { return meter.ProcessCPU().Seconds(), redisSeconds(b, rdb) }
	for b.Loop() {
		began := time.Now()
		mine, its := used()
		<-time.After(10 * time.Second)
		mineAfter, itsAfter := used()
		took := time.Since(began).Seconds()
		b.ReportMetric(100*(mineAfter-mine)/took, "dashboard-%")
		b.ReportMetric(100*(itsAfter-its)/took, "redis-%")
	}
}

func redisSeconds(b *testing.B, rdb *redis.Client) (sum float64) {
	b.Helper()
	for line := range strings.Lines(rdb.Info(b.Context(), "cpu").Val()) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		var seconds float64
		if _, err := fmt.Sscan(text, &seconds); err == nil && (name == "used_cpu_user" || name == "used_cpu_sys") {
			sum += seconds
		}
	}
	return sum
}
