package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

func TestWebservice(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		base := strings.TrimPrefix(p.Line(), "listening on ")
		status, tea := call(t, http.MethodPost, base+"/reminders", `{"text":"tea","in":"100ms"}`)
		require.Equal(t, http.StatusCreated, status)
		require.NotEmpty(t, tea.ID)
		require.Equal(t, "remember: tea", p.Line())

		status, trip := call(t, http.MethodPost, base+"/reminders", `{"text":"trip","in":"72h"}`)
		require.Equal(t, http.StatusCreated, status)
		require.WithinDuration(t, time.Now().Add(72*time.Hour), trip.Due, time.Minute)
		at := base + "/reminders/" + trip.ID
		status, found := call(t, http.MethodGet, at, "")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, trip, found)
		status, _ = call(t, http.MethodDelete, at, "")
		require.Equal(t, http.StatusNoContent, status)
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			status, _ = call(t, method, at, "")
			require.Equal(t, http.StatusNotFound, status)
		}
		for _, body := range []string{`{`, `{"text":"no time"}`} {
			status, _ = call(t, http.MethodPost, base+"/reminders", body)
			require.Equal(t, http.StatusBadRequest, status)
		}

		p.Terminate()
		require.Equal(t, "ended\n", p.Rest())
	}, "LISTEN=127.0.0.1:0")
}

func TestRequestThatIsSentAgainChangesNothing(t *testing.T) {
	t.Parallel()
	p := program.Start(t, "LISTEN=127.0.0.1:0")
	base := strings.TrimPrefix(p.Line(), "listening on ")
	_, first := call(t, http.MethodPost, base+"/reminders", `{"text":"a","in":"1h"}`, "Idempotency-Key", "k")
	_, second := call(t, http.MethodPost, base+"/reminders", `{"text":"a","in":"1h"}`, "Idempotency-Key", "k")
	require.Equal(t, first, second)
	p.Terminate()
	require.Equal(t, "ended\n", p.Rest())
}

func call(t *testing.T, method, url, body string, headers ...string) (status int, r reminder) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Close = true // so that no idle connection outlives the test
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if resp.Header.Get("Content-Type") == "application/json" {
		require.NoError(t, json.Unmarshal(text, &r))
	}
	return resp.StatusCode, r
}
