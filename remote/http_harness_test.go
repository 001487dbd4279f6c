package remote_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
)

// answer is the answer to a request of HTTP.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// serveHTTP serves a node with HTTP until the end of the test.
func serveHTTP(t testing.TB, cfg remote.Config, handlers ...wakebell.Handler) *node {
	t.Helper()
	cfg.HTTPAddress = "127.0.0.1:0"
	return serve(t, cfg, handlers...)
}

func (n *node) request(t testing.TB, method, path, token, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.server.HTTPAddress()+path, strings.NewReader(body))
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// http sends a request as the honest principal.
func (n *node) http(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	return do(t, n.request(t, method, path, secret, body, headers...))
}

func do(t testing.TB, r *http.Request) answer {
	t.Helper()
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	a := answer{status: got.StatusCode, header: got.Header, text: string(text)}
	if strings.Contains(got.Header.Get("Content-Type"), "json") {
		require.NoError(t, json.Unmarshal(text, &a.body), a.text)
	}
	return a
}

// ok asserts that a request succeeded, and returns its answer.
func (a answer) ok(t testing.TB) map[string]any {
	t.Helper()
	require.Less(t, a.status, 300, a.text)
	return a.body
}

// problem asserts that a request failed with a status and a code.
func (a answer) problem(t testing.TB, status int, code string) map[string]any {
	t.Helper()
	require.Equal(t, status, a.status, a.text)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	require.Equal(t, code, a.body["code"], a.text)
	require.InDelta(t, status, a.body["status"], 0)
	require.NotEmpty(t, a.body["title"])
	require.Equal(t, "/docs#"+code, a.body["type"])
	return a.body
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
