package webhook

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
)

func TestVerdictOfEachStatus(t *testing.T) {
	t.Parallel()
	code := 0
	w := endpoint(t, Config{}, func(w http.ResponseWriter, _ received) {
		w.WriteHeader(code)
		if code != http.StatusNoContent && code != http.StatusNotModified {
			_, _ = io.WriteString(w, "why")
		}
	})
	retries := map[int]bool{408: true, 425: true, 429: true}
	for code = 200; code < 1000; code++ {
		err := w.Handle(t.Context(), bill(t, "x"))
		switch {
		case code < 300:
			require.NoError(t, err, code)
			continue
		case retries[code] || code >= 500 && code < 600:
			require.False(t, wakebell.IsRejected(err), code)
		default:
			require.True(t, wakebell.IsRejected(err), code)
		}
		require.ErrorContains(t, err, fmt.Sprintf("POST to 127.0.0.1: %d", code))
		_, delayed := wakebell.RetryDelay(err)
		require.False(t, delayed, "the backoff of the topic applies")
	}
}

func TestReasonHasBeginningOfAnswer(t *testing.T) {
	t.Parallel()
	answer := ""
	w := endpoint(t, Config{URL: "/hooks/T0/abcd?token=s3cr3t%21&x=1"}, func(w http.ResponseWriter, _ received) {
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, answer)
	})
	for _, c := range []struct{ answer, want string }{
		{"", "410 Gone"},
		{"unknown customer\n", "410 Gone: unknown customer"},
		{"a\x1b[31mb\r\nc\x00d\u202ee\xff", "410 Gone: a [31mb  c d e\uFFFD"},
		{strings.Repeat("é", 200), "410 Gone: " + strings.Repeat("é", 128)},
		{"Cannot POST /hooks/T0/abcd?token=s3cr3t%21&x=1", "410 Gone: Cannot POST …?…"},
		{"no token s3cr3t! here", "410 Gone: no token … here"},
		{strings.Repeat("x", 1<<20), "410 Gone: " + strings.Repeat("x", 256)},
	} {
		answer = c.answer
		err := w.Handle(t.Context(), bill(t, "x"))
		require.True(t, wakebell.IsRejected(err))
		require.EqualError(t, err, "POST to 127.0.0.1: "+c.want)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(elsewhere.Close)
	code := 0
	w := endpoint(t, Config{}, func(w http.ResponseWriter, r received) { http.Redirect(w, r.Request, elsewhere.URL, code) })
	for _, code = range []int{301, 302, 303, 307, 308} {
		err := w.Handle(t.Context(), bill(t, "x"))
		require.True(t, wakebell.IsRejected(err), "%v", err)
	}
	require.False(t, followed.Load())
}

func TestAnswerAsksForDelay(t *testing.T) {
	t.Parallel()
	var header http.Header
	code := 0
	w := endpoint(t, Config{}, func(w http.ResponseWriter, _ received) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(code)
	})
	header = http.Header{"Retry-After": {"90"}}
	for _, code = range []int{408, 425, 429, 500, 503} {
		delay, is := wakebell.RetryDelay(w.Handle(t.Context(), bill(t, "x")))
		require.True(t, is)
		require.Equal(t, 90*time.Second, delay)
	}
	for _, code = range []int{301, 404, 410} {
		require.True(t, wakebell.IsRejected(w.Handle(t.Context(), bill(t, "x"))))
	}
	code, header = 503, http.Header{"Retry-After": {"Fri, 02 Jan 2026 00:01:00 GMT"}, "Date": {"Fri, 02 Jan 2026 00:00:00 GMT"}}
	delay, _ := wakebell.RetryDelay(w.Handle(t.Context(), bill(t, "x")))
	require.Equal(t, time.Minute, delay, "by the clock of the server")
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, " 20 ": 20 * time.Second, "3600": time.Hour, "3601": time.Hour,
		"999999999999999999999999": time.Hour, "-1": 0, "+5": 0, "1.5": 0, "1e3": 0, "5 s": 0, "soon": 0, "٣": 0,
		"Fri, 02 Jan 2026 00:00:30 GMT":    30 * time.Second,
		"Friday, 02-Jan-26 00:00:30 GMT":   30 * time.Second,
		"Fri Jan  2 00:00:30 2026":         30 * time.Second,
		"Thu, 01 Jan 2026 23:59:59 GMT":    0,
		"Fri, 02 Jan 2099 00:00:00 GMT":    time.Hour,
		"Fri, 02 Jan 0001 00:00:00 GMT":    0,
		"Fri, 02 Jan 2026 00:00:30 +0100x": 0,
	} {
		require.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}, now, time.Hour), "%q", value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "0", "120", "99999999999999999999", "-3", "Fri, 02 Jan 2026 00:00:30 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(s, "")
		f.Add("Fri, 02 Jan 2026 00:00:30 GMT", s)
	}
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		d := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now, time.Hour)
		require.True(t, d >= 0 && d <= time.Hour, "%s", d)
	})
}

func FuzzAnswerIsCleaned(f *testing.F) {
	f.Add("a\x1b]0;x\x07\u202e\xff", "token=abcdef")
	f.Add(strings.Repeat("\u2028", 300), "")
	f.Fuzz(func(t *testing.T, answer, query string) {
		w := &Webhook{host: "h"}
		if len(query) >= shortestHidden {
			w.hidden = []string{query}
		}
		shown := w.excerpt([]byte(answer))
		require.LessOrEqual(t, len(shown), shownBytes)
		require.Equal(t, shown, strings.TrimLeft(clean(shown), " ")+shown[len(strings.TrimRight(shown, " ")):])
	})
}

func TestEndlessAnswerEnds(t *testing.T) {
	t.Parallel()
	code := 200
	w := endpoint(t, Config{}, func(w http.ResponseWriter, r received) {
		w.WriteHeader(code)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, strings.Repeat("x", 32<<10))
		}
	})
	require.NoError(t, w.Handle(t.Context(), bill(t, "x")))
	code = 404
	require.True(t, wakebell.IsRejected(w.Handle(t.Context(), bill(t, "x"))))
}

func TestEndlessHeaderEnds(t *testing.T) {
	t.Parallel()
	w := endpoint(t, Config{}, func(w http.ResponseWriter, _ received) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for err == nil {
			_, err = io.WriteString(conn, "X-More: "+strings.Repeat("x", 4096)+"\r\n")
		}
	})
	err := w.Handle(t.Context(), bill(t, "x"))
	require.ErrorContains(t, err, "POST to 127.0.0.1: ")
	require.False(t, wakebell.IsRejected(err))
}

func TestErrorOfNetworkIsRetried(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(nil)
	w := hookTo(t, server.URL, Config{URL: "/path?token=s3cr3t"})
	server.Close()
	err := w.Handle(t.Context(), bill(t, "x"))
	require.ErrorContains(t, err, "connection refused")
	require.False(t, wakebell.IsRejected(err))
	require.NotContains(t, err.Error(), "s3cr3t")

	broken := endpoint(t, Config{}, func(w http.ResponseWriter, _ received) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 \x1b[31m\r\n\r\n")
			_ = errors.Join(err, conn.Close())
		}
	})
	err = broken.Handle(t.Context(), bill(t, "x"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\x1b")
}
