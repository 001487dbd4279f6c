package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
)

var dashAt = regexp.MustCompile(`address=(http://\S+)`)

// fetch reads a page of a dashboard that runs, as a browser does: again while something of it is being read.
func (r *running) fetch(page, bearer string) (status int, body string) {
	r.t.Helper()
	r.says("dashboard runs")
	status, body, unread := r.read(page, bearer)
	for unread {
		<-time.After(waitTick)
		status, body, unread = r.read(page, bearer)
	}
	return status, body
}

func (r *running) read(page, bearer string) (status int, body string, unread bool) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, dashAt.FindStringSubmatch(r.err.String())[1]+page, nil)
	require.NoError(r.t, err)
	req.Close = true // so that no idle connection outlives the test
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	return resp.StatusCode, string(text), resp.Header.Get("Refresh") != ""
}

func TestDashServesDashboard(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "inv-1", "--in", "1h")
	users := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(users, []byte("otto:operator:otto-secret-0123456789\n"), 0o600))

	local := b.start("dash", "--listen", "127.0.0.1:0", "--path", "/wakebell", "--health", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	read := func(what, path string) string {
		local.says(what)
		at := regexp.MustCompile(what + `" address=(\S+)`).FindStringSubmatch(local.err.String())
		resp, err := http.Get("http://" + at[1] + path)
		require.NoError(t, err)
		defer func() { require.NoError(t, resp.Body.Close()) }()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(text)
	}
	status, page := local.fetch("timers?topic="+b.topic, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "inv-1")
	require.NotContains(t, page, "/do/")
	require.Contains(t, read("serving health checks", "/readyz"), `"ready":true`)
	require.Contains(t, read("serving metrics", "/metrics"), "go_goroutines")
	http.DefaultClient.CloseIdleConnections()
	require.Equal(t, cli.ExitOK, local.stop())

	team := b.start("dash", "--listen", "127.0.0.1:0", "--users", users, "--writable", "--hide-payloads")
	status, _ = team.fetch("topics", "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, page = team.fetch("timer?topic="+b.topic+"&id=inv-1", "otto-secret-0123456789")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "Payloads are hidden")
	require.Contains(t, page, "/do/cancel")
	require.Equal(t, cli.ExitOK, team.stop())
}

// A dashboard on a node has all pages, and its changes reach Redis.
func TestDashOnNode(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "invoices", "--id", "inv-1", "--in", "1h")
	node := b.start("node", "-t", "mails", "--listen", "127.0.0.1:0")
	dash := b.start("dash", "--remote", node.listener(), "--listen", "127.0.0.1:0", "--writable")
	for page, want := range map[string]string{
		"": "Overview", "topics?q=inv": "invoices", "topic?name=invoices": "inv-1", "timers?topic=invoices": "inv-1",
		"timer?topic=invoices&id=inv-1": "Attempts", "dead": "Dead letters", "queues": "Queues", "schedules": "schedules", "gates": "Gates",
		"nodes": "Nodes", "jobs": "Jobs", "audit": "Audit", "doctor": "Doctor", "search?q=inv": "invoices",
	} {
		status, body := dash.fetch(page, "")
		require.Equal(t, http.StatusOK, status, "%s: %s", page, body)
		require.Contains(t, body, want, page)
		if page != "doctor" && page != "" { // which show what is wrong with the Redis of the tests
			const hidden = `<p id="outage" class="error" role="alert" hidden>`
			require.NotContains(t, strings.ReplaceAll(body, hidden, ""), `class="error"`, page)
		}
	}

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	browser := &http.Client{Jar: jar, Transport: transport}
	address := dashAt.FindStringSubmatch(dash.err.String())[1] + "do/cancel?topic=invoices&id=inv-1"
	asked, err := browser.Get(address) //nolint:noctx // of a test
	require.NoError(t, err)
	body, err := io.ReadAll(asked.Body)
	require.NoError(t, err)
	require.NoError(t, asked.Body.Close())
	token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindSubmatch(body)
	require.NotNil(t, token, string(body))
	answer, err := browser.PostForm(address, url.Values{"csrf": {string(token[1])}}) //nolint:noctx // of a test
	require.NoError(t, err)
	done, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, string(done), "The timer is cancelled. It was pending.")
	require.NotContains(t, b.fine("ls", "-t", "invoices"), "inv-1")
	require.Equal(t, cli.ExitOK, dash.stop())
	require.Equal(t, cli.ExitOK, node.stop())
}

func TestDashRefusesToServeOtherMachinesUnsafely(t *testing.T) {
	b := setup(t)
	for _, args := range [][]string{
		{"--listen", "0.0.0.0:0"},
		{"--listen", ":0"},
		{"--listen", "127.0.0.1"},
		{"--http-cert", "c"},
		{"--path", "wakebell"},
		{"--dead-letter-key", "k"},
		{"--trace-url", "javascript:{trace}"},
	} {
		code, _, stderr := b.call(append([]string{"dash"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, "%q: %s", args, stderr)
	}
}
