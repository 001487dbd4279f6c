package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var servesHTTPAt = regexp.MustCompile(`node serves HTTP" address=(\S+)`)

// A node serves HTTP with the tokens of its file, alone or beside gRPC.
func TestNodeServesHTTP(t *testing.T) {
	b := setup(t)
	node := b.start("node", "--http", "127.0.0.1:0", "--token-file", tokenFile(t, "billing:"+secret))
	node.eventually(func() bool { return servesHTTPAt.MatchString(node.err.String()) })
	at := "http://" + servesHTTPAt.FindStringSubmatch(node.err.String())[1] + "/v1/topics/" + b.topic + "/timers"
	call := func(method, path, token, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	node.listener() // it runs
	status, text := call("POST", "", secret, `{"id":"inv-42","in":"72h","body":{"cents":995}}`)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, b.fine("get", "-t", "TOPIC", "inv-42", "-o", "json"), `"body":{"cents":995}`)
	status, _ = call("POST", "", "another-token-of-some-length", `{}`)
	require.Equal(t, http.StatusUnauthorized, status)
	status, text = call("DELETE", "/inv-42", secret, "")
	require.Equal(t, http.StatusOK, status, text)

	code, _, stderr := b.plainly("node", "--http", "0.0.0.0:0")
	require.NotZero(t, code)
	require.Contains(t, stderr, "--insecure-listen")
	code, _, stderr = b.plainly("node", "--http", "nowhere")
	require.NotZero(t, code)
	require.Contains(t, stderr, "HTTPAddress")
}
