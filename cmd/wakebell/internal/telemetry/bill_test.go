package telemetry_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	billTopics     = 200
	seriesPerTopic = 25
	scrapeBytes    = 300_000
)

// A node that handles 200 busy topics, in which timers fail, wait and are dead, costs
// Prometheus at most 25 series for each topic and 300 KB for a scrape.
func TestSeriesOfTopicsAreFew(t *testing.T) {
	t.Parallel()
	exported, err := telemetry.Start(t.Context(), telemetry.Flags{Address: "127.0.0.1:0"}, quiet)
	require.NoError(t, err)
	t.Cleanup(exported.Stop)
	m := metrics.New(metrics.Options{Provider: exported.MeterProvider})
	counters, backlog := map[string]wakebelltype.Counters{}, make([]metrics.Backlog, billTopics)
	for i := range billTopics {
		name := fmt.Sprintf("topic-%03d", i)
		began := time.Now()
		h := m.Handler(name, false)
		h.Late(1234567*time.Nanosecond, began)
		h.Ended(h.Began(began), metrics.Handled)
		h.Began(began) // runs
		m.Sent(t.Context(), metrics.Schedule, name, 123, began, nil)
		counters[name] = wakebelltype.Counters{
			Delivered: 123_456, Repeated: 4567, Acked: 98_765, Retried: 1234, DeadLettered: 567, Held: 9, Role: "fallback",
		}
		backlog[i] = metrics.Backlog{
			Topic: name, Due: 1234, Pending: 5678, Dead: 567, Running: 9, Retrying: 12, OldestDue: 12345678 * time.Microsecond, Nodes: 2, Ahead: []int64{1, 2, 3},
		}
	}
	t.Cleanup(m.Observe(metrics.Node{
		Counters: func() map[string]wakebelltype.Counters { return counters },
		Outages:  func() []metrics.Outage { return nil },
		Backlog:  func(context.Context) ([]metrics.Backlog, error) { return backlog, nil },
	}))

	body := scrape(t, exported.Metrics)
	require.Less(t, len(body), scrapeBytes)
	series, named := map[string]int{}, 0
	for line := range bytes.Lines(body) {
		if _, rest, found := strings.Cut(string(line), `messaging_destination_name="`); found {
			name, _, _ := strings.Cut(rest, `"`)
			series[name]++
			named++
		}
	}
	t.Logf("%d bytes, %d series of topics", len(body), named)
	require.Len(t, series, billTopics)
	for name, n := range series {
		require.LessOrEqual(t, n, seriesPerTopic, name)
	}
}

func scrape(t *testing.T, address string) []byte {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return body
}
