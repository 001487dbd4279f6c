package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/internal/redistest"
)

// TestNodeExportsSpans runs a node with a collector, and one with a collector that
// hangs: both handle their timers and end.
func TestNodeExportsSpans(t *testing.T) { // not parallel: it sets variables
	spans, release := make(chan string, 10), make(chan struct{})
	var hangs atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			<-release
		}
		body, _ := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if proto.Unmarshal(body, request) != nil {
			return
		}
		for _, of := range request.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
			spans <- of.GetName()
		}
	}))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", server.URL+"/v1/traces")
	b := &bundle{t: t, topic: redistest.Name(t), redis: "redis://" + redistest.Start(t).Addr}

	handle := func() {
		b.fine("schedule", "-t", "TOPIC", "--id", "a")
		node := b.start("node", "-t", "TOPIC")
		node.lines(1)
		require.Zero(t, node.stop(), node.err)
	}
	handle()
	require.Equal(t, "process "+b.topic, <-spans)
	hangs.Store(true)
	handle()
}
