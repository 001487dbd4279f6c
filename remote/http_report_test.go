package remote_test

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

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

// A wait over HTTP ends with the right to it, as it does over gRPC.
func TestWaitForReportEndsWithTheRight(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	n := serveHTTP(t, withRights(t, "tests * *\nmallory * topic:"+name))
	_, err := wakebell.NewTopic[string](name).Schedule(t.Context(), n.Client(), "x", wakebell.ID("a"), wakebell.In(time.Hour))
	require.NoError(t, err)
	written, answers := make(chan struct{}), make(chan answer, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(written) }})
	request := n.request(t, "GET", "/v1/topics/"+name+"/timers/a/report?wait=1m", malloryToken, "").WithContext(ctx)
	go func() {
		defer close(answers)
		got, err := http.DefaultTransport.RoundTrip(request)
		if err == nil {
			_ = got.Body.Close()
			answers <- answer{status: got.StatusCode}
		}
	}()
	receive(t, written)
	for range 10 { // so that it waits by now
		n.http(t, "GET", "/v1/topics/"+name+"/timers/a/report", "").ok(t)
	}
	require.NoError(t, n.server.SetRights(rightsOf(t, "tests * *")))
	require.Equal(t, http.StatusForbidden, receive(t, answers).status)
}
