package main

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

var metricsAt = regexp.MustCompile(`serving metrics.*address=(\S+)`)

// scrape reads the metrics of a node or a beat.
func (r *running) scrape() string {
	r.t.Helper()
	r.says("serving metrics")
	addr := metricsAt.FindStringSubmatch(r.err.String())[1]
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
	require.NoError(r.t, err)
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(r.t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, answer.Body.Close())
	require.Equal(r.t, http.StatusOK, answer.StatusCode)
	return string(text)
}

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	b := &bundle{t: t, topic: redistest.Name(t), redis: "redis://" + redistest.Start(t).Addr}
	b.fine("schedule", "-t", "TOPIC", "--id", "a")
	node := b.start("node", "-t", "TOPIC", "--metrics", "127.0.0.1:0")
	node.lines(1)
	acked := regexp.MustCompile(`(?m)^wakebell_deliveries_total\{[^}]*destination_name="` + b.topic + `"[^}]*outcome="ack"[^}]*\} 1$`)
	node.eventually(func() bool { return acked.MatchString(node.scrape()) })
	require.Zero(t, node.stop(), node.err)

	beat := b.start("beat", "--metrics", "127.0.0.1:0")
	require.Contains(t, beat.scrape(), `service_name="wakebell"`)
	require.Zero(t, beat.stop(), beat.err)
}
