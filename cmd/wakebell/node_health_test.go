//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

var servedAt = regexp.MustCompile(`serving health checks.*address=(\S+)`)

// health requests the health of a node.
func (r *running) health(path string) (code int, body map[string]any) {
	r.t.Helper()
	r.says("serving health checks")
	addr := servedAt.FindStringSubmatch(r.err.String())[1]
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
	require.NoError(r.t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	require.NoError(r.t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, answer.Body.Close())
	require.NoError(r.t, json.Unmarshal(text, &body), string(text))
	return answer.StatusCode, body
}

func TestNodeServesItsHealth(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	b := &bundle{t: t, topic: redistest.Name(t), redis: "redis://" + server.Addr}
	gate := filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	node := b.start("node", "-t", "TOPIC", "--health", "127.0.0.1:0", "--wait-for-redis", "1m",
		"--exec", "echo waits >&2; read go <"+gate)
	code, body := node.health("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code, "the node waits for Redis")
	require.Equal(t, false, body["ready"])
	code, _ = node.health("/livez")
	require.Equal(t, http.StatusOK, code)
	served := servedAt.FindStringSubmatch(node.err.String())[1]
	code, _, reason := b.call("health", served)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, reason, "is not ready: 503")
	require.Equal(t, "live\n", b.fine("health", "--live", served))

	server.Restart(t)
	node.eventually(func() bool { code, _ := node.health("/readyz"); return code == http.StatusOK })
	require.Equal(t, "ready\n", b.fine("health", served))
	b.fine("schedule", "-t", "TOPIC")
	node.says("waits")
	node.cancel()
	node.says("node drains")
	node.eventually(func() bool {
		code, body := node.health("/readyz")
		return code == http.StatusServiceUnavailable && body["draining"] == true
	})
	code, _ = node.health("/livez")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0o600))
	require.Zero(t, node.stop(), node.err)

	taken := b.start("node", "-t", "TOPIC", "--health", "127.0.0.1:0")
	taken.says("serving health checks")
	addr := servedAt.FindStringSubmatch(taken.err.String())[1]
	code, _, stderr := b.call("node", "-t", "TOPIC", "--health", addr)
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "--health: listen tcp "+addr)
}
