package remote_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestReportOverHTTP(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string](redistest.Name(t))
	reported, finish := make(chan struct{}), make(chan struct{})
	n := serveHTTP(t, withToken(), wakebell.HandleResult(topic, func(ctx context.Context, timer wakebell.Timer[string]) (int, error) {
		if err := timer.Progress(ctx, 0.5, "page 1 of 2"); err != nil {
			return 0, err
		}
		close(reported)
		<-finish
		return 42, nil
	}))
	path := "/v1/topics/" + topic.Name() + "/timers/a/report"
	require.Empty(t, n.http(t, "GET", path, "").ok(t), "nothing is reported")
	require.Equal(t, "missing", n.http(t, "GET", path+"?wait=1m", "").ok(t)["end"])

	_, err := topic.Schedule(t.Context(), n.Client(), "rows", wakebell.ID("a"))
	require.NoError(t, err)
	<-reported
	for _, query := range []string{"", "?wait=1s"} { // the second outlasts its wait
		got := n.http(t, "GET", path+query, "").ok(t)
		require.NotContains(t, got, "end")
		progress := got["progress"].(map[string]any)
		require.Equal(t, []any{0.5, "page 1 of 2", 1.0}, []any{progress["fraction"], progress["note"], progress["attempt"]})
	}

	go close(finish)
	got := n.http(t, "GET", path+"?wait=1m", "").ok(t)
	require.Equal(t, "done", got["end"])
	require.InDelta(t, 42, got["result"].(map[string]any)["content"].(map[string]any)["body"], 0)
	require.Contains(t, n.http(t, "GET", path, "").ok(t), "result", "it is kept")

	for _, wait := range []string{"500ms", "2m"} {
		n.http(t, "GET", path+"?wait="+wait, "").problem(t, http.StatusBadRequest, "invalid")
	}
}

// Reports over HTTP are an operation, as they are over gRPC.
func TestReportIsForOperators(t *testing.T) {
	t.Parallel()
	cfg := withMallory()
	cfg.Operators = []string{"tests"}
	n := serveHTTP(t, cfg)
	for _, query := range []string{"", "?wait=1s"} {
		path := "/v1/topics/" + n.topic.Name() + "/timers/a/report" + query
		do(t, n.request(t, "GET", path, malloryToken, "")).problem(t, http.StatusForbidden, "forbidden")
		n.http(t, "GET", path, "").ok(t)
	}
}
