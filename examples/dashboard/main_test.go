package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestDashboardIsBehindSignInOfServer(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		base := strings.TrimPrefix(p.Line(), "listening on ")
		status, _ := read(t, &http.Client{}, base+"/admin/wakebell/")
		require.Equal(t, http.StatusUnauthorized, status)
		for user, operates := range map[string]bool{"otto": true, "vera": false} {
			jar, err := cookiejar.New(nil)
			require.NoError(t, err)
			browser := &http.Client{Jar: jar}
			answer, err := browser.PostForm(base+"/login", url.Values{"user": {user}})
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			status, page := read(t, browser, base+"/admin/wakebell/topics")
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, page, user)
			require.Equal(t, operates, strings.Contains(page, "Schedule a timer"))
		}
		http.DefaultClient.CloseIdleConnections()
		p.Terminate()
		require.Equal(t, "ended\n", p.Rest())
	}, "LISTEN=127.0.0.1:0")
}

func read(t *testing.T, browser *http.Client, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	resp, err := browser.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}
