//go:build unix

package main

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/webhook"
)

// hooks is an endpoint that hands over what it receives, and answers with a status.
type hooks struct {
	secret   webhook.Secret
	file     string // with secret
	requests chan *http.Request
	bodies   chan string
	status   chan int // of the next answers; empty: 204
}

func newHooks(t *testing.T) *hooks {
	t.Helper()
	h := &hooks{secret: webhook.NewSecret(), requests: make(chan *http.Request, 10), bodies: make(chan string, 10), status: make(chan int, 10)}
	h.file = filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(h.file, []byte(h.secret.Reveal()), 0o600))
	return h
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a body that is cut off fails the verification
	h.requests <- r
	h.bodies <- string(body)
	select {
	case status := <-h.status:
		http.Error(w, r.RequestURI+" is gone", status)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// next returns the next request after it has verified it.
func (h *hooks) next(t *testing.T) (r *http.Request, body string) {
	t.Helper()
	r, body = <-h.requests, <-h.bodies
	require.NoError(t, webhook.Verify(r.Header, []byte(body), h.secret))
	return r, body
}

func TestPostSendsSignedRequests(t *testing.T) {
	b := setup(t)
	h := newHooks(t)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.status <- http.StatusServiceUnavailable
	node := b.start("node", "-t", "TOPIC", "--post", server.URL+"/hooks?token=s3cr3t", "--post-secret-file", h.file, "--post-allow", "loopback",
		"--retry-initial", "10ms", "--per-key", "1")
	b.fine("schedule", "-t", "TOPIC", "--id", "inv-42", "--key", "customer-7", "--json", `{"cents":995}`)
	first, body := h.next(t)
	require.JSONEq(t, `{"cents":995}`, body)
	require.Equal(t, "application/json", first.Header.Get("Content-Type"))
	require.Equal(t, "inv-42", first.Header.Get("Wakebell-Id"))
	require.Equal(t, b.topic, first.Header.Get("Wakebell-Topic"))
	require.Equal(t, "customer-7", first.Header.Get("Wakebell-Key"))
	second, _ := h.next(t)
	require.Equal(t, "2", second.Header.Get("Wakebell-Attempt"))
	require.Equal(t, first.Header.Get("Webhook-Id"), second.Header.Get("Webhook-Id"))
	require.Len(t, node.lines(2), 2, "each delivery is a line as well")

	h.status <- http.StatusGone
	b.fine("schedule", "-t", "TOPIC", "--id", "inv-43")
	h.next(t)
	node.eventually(func() bool { return len(objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))) == 1 })
	require.Equal(t, "POST to 127.0.0.1: 410 Gone: …?… is gone", objects(t, b.fine("dead", "ls", "-t", "TOPIC", "-o", "json"))[0]["reason"])
	b.fine("dead", "rm", "-t", "TOPIC", "--all", "--yes")
	require.Equal(t, cli.ExitOK, node.stop())
	require.NotContains(t, node.err.String(), "s3cr3t")
	require.NotContains(t, node.err.String(), h.secret.Reveal())
}

func TestPostOfQueueVerifiesCertificate(t *testing.T) {
	b := setup(t)
	h := newHooks(t)
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	node := b.start("node", "--queue", b.topic+"-q", "--post", server.URL, "--post-secret-file", h.file, "--post-allow", "127.0.0.1", "--post-ca-file", ca)
	b.fine("queue", "publish", "--queue", b.topic+"-q", "--json", `{"a":1}`)
	r, body := h.next(t)
	require.JSONEq(t, `{"a":1}`, body)
	require.Equal(t, "application/json", r.Header.Get("Content-Type"))
	require.Equal(t, b.topic+"-q", r.Header.Get("Wakebell-Topic"))
	require.Equal(t, cli.ExitOK, node.stop())
}

func TestPostFlagsAreChecked(t *testing.T) {
	b := setup(t)
	h := newHooks(t)
	for says, args := range map[string][]string{
		"needs --post-secret-file":           {"--post", "https://example.com/s3cr3t"},
		"the other --post flags go with it":  {"--post-secret-file", h.file},
		"does not go with --exec":            {"--post", "https://example.com/s3cr3t", "--post-secret-file", h.file, "--exec", "true"},
		"URL: http beyond loopback":          {"--post", "http://example.com/s3cr3t", "--post-secret-file", h.file},
		"want less than a lease (10s)":       {"--post", "https://example.com/s3cr3t", "--post-secret-file", h.file, "--post-timeout", "10s", "--lease-ttl", "10s"},
		"--post-allow of":                    {"--post", "https://example.com/s3cr3t", "--post-secret-file", h.file, "--post-allow", "loopback,all"},
		"--post-per-host: 10001":             {"--post-per-host", "10001"},
		"go with --dash":                     {"--dash-writable"},
		"serves other machines: give --dash": {"--dash", ":0"},
	} {
		code, _, stderr := b.call(append([]string{"node", "-t", "TOPIC"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, stderr)
		require.Contains(t, stderr, says)
		require.NotContains(t, stderr, "s3cr3t")
	}
	code, _, stderr := b.call("node", "-t", "TOPIC", "--post", "https://example.com/s3cr3t", "--post-secret-file", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, cli.ExitError, code)
	require.Contains(t, stderr, "no such file")
	require.NotContains(t, stderr, "s3cr3t")

	file := filepath.Join(t.TempDir(), "wakebell.yaml")
	b.write(file, "topics:\n  a:\n    lease-ttl: 30s\n    post-secret-file: x\n    post: ftp://example.com/s3cr3t\n  b: {post-allow: loopback}\n")
	code, _, stderr = b.call("config", "check", file)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, `:5: topics.a.post: URL: scheme "ftp", want https`)
	require.Contains(t, stderr, ":6: topics.b.post: missing")
	require.NotContains(t, stderr, "s3cr3t")
}

// A changed URL takes effect on SIGHUP; neither the log nor config print shows it.
func TestPostInConfigurationFile(t *testing.T) {
	b := setup(t)
	path := redistest.Program(t)
	h := newHooks(t)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "wakebell.yaml")
	text := "post-secret-file: " + h.file + "\npost-allow: [loopback]\ntopics:\n  TOPIC: {post: \"" + server.URL + "/"
	b.write(file, text+"s3cr3t-a\"}\n")
	require.Contains(t, b.fine("config", "print", file), server.URL+"/xxxxx")
	require.NotContains(t, b.fine("config", "print", file), "s3cr3t")
	cmd, node := b.process(path, nil, "node", "--config", file)
	node.says("node runs")
	b.fine("schedule", "-t", "TOPIC", "--id", "one")
	r, _ := h.next(t)
	require.Equal(t, "/s3cr3t-a", r.RequestURI)
	b.write(file, text+"s3cr3t-b\", max-concurrent: 3}\n")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	node.says("field=post from=" + server.URL + "/xxxxx to=" + server.URL + "/xxxxx")
	node.says("field=max-concurrent")
	b.fine("schedule", "-t", "TOPIC", "--id", "two")
	r, _ = h.next(t)
	require.Equal(t, "/s3cr3t-b", r.RequestURI)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, node.wait())
	require.NotContains(t, node.err.String(), "s3cr3t")
}

// The dashboard and the node are one process, as a store in a directory needs it.
func TestNodeServesDashboardOfEmbeddedStore(t *testing.T) {
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "store")
	users := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(users, []byte("otto:operator:otto-secret-0123456789\n"), 0o600))
	b.fine(append(in(dir), "schedule", "-t", "TOPIC", "--id", "inv-1", "--in", "1h")...)
	node := b.start(append(in(dir), "node", "-t", "TOPIC", "--queue", b.topic+"-mails", "--dash", "127.0.0.1:0", "--dash-users", users, "--dash-writable", "--dash-hide-payloads")...)
	status, _ := node.fetch("topics", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, page := node.fetch("timer?topic="+b.topic+"&id=inv-1", "otto-secret-0123456789")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "Payloads are hidden")
	require.Contains(t, page, "/do/cancel")
	status, page = node.fetch("queues", "otto-secret-0123456789")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, b.topic+"-mails")
	http.DefaultClient.CloseIdleConnections()
	require.Equal(t, cli.ExitOK, node.stop())
	require.Contains(t, node.err.String(), "dashboard ended")
}
