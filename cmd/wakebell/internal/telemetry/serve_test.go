package telemetry

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener for connections in memory, which follow virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Clients that send nothing, send half a request, keep a connection that they do not use,
// or do not read the answer, lose their connections.
func TestServersCloseConnectionsThatAreNotUsed(t *testing.T) {
	t.Parallel()
	const request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		sends string
		reads bool
		limit time.Duration
	}{
		"nothing":         {"", true, headerLimit},
		"half a header":   {"GET / HT", true, headerLimit},
		"half a body":     {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx", true, readLimit},
		"one request":     {request, true, idleLimit},
		"an unread reply": {request, false, writeLimit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
				}), slog.New(slog.DiscardHandler))
				listener, began := make(pipes), time.Now()
				go func() { _ = server.Serve(listener) }()
				ours, theirs := net.Pipe()
				listener <- theirs
				_, err := io.WriteString(ours, c.sends)
				require.NoError(t, err)
				if !c.reads {
					<-time.After(c.limit + 2*time.Second)
				}
				_, err = io.Copy(io.Discard, ours)
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(began), c.limit+5*time.Second)
				require.NoError(t, server.Close())
			})
		})
	}
}
