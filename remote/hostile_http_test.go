package remote_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/remote"
)

// The attacks of mallory on the HTTP listener. honest is a client of gRPC: the bounds of
// both listeners are the same.

func overHTTP(c *remote.Config) { c.HTTPAddress = "127.0.0.1:0" }

// knockHTTP connects to the HTTP listener. The node may close the connection at any time.
func (n *node) knockHTTP(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", n.server.HTTPAddress())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (n *node) post(path, token string, more ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n",
		path, n.server.HTTPAddress(), token, strings.Join(more, ""))
}

// statusOf reads an answer.
func statusOf(conn net.Conn) (int, error) {
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, got.Body)
	return got.StatusCode, got.Body.Close()
}

func (n *node) honestHTTP(t testing.TB) {
	t.Helper()
	n.http(t, "GET", "/v1/topics/"+n.topic.Name()+"/stats", "").ok(t)
}

//nolint:paralleltest // measures memory
func TestHostileBodiesOverHTTPAreBounded(t *testing.T) {
	b := besiege(t, overHTTP)
	timers := "/v1/topics/" + b.topic.Name() + "/timers"
	part := strings.Repeat("x", 32<<10)
	inParallel(20, func(i int) {
		conn := b.knockHTTP(t)
		switch i % 4 {
		case 0: // a body without end
			_, err := io.WriteString(conn, b.post(timers, mallory, "Transfer-Encoding: chunked\r\n"))
			for err == nil {
				_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(part), part)
			}
		case 1: // a length that never comes
			_, _ = io.WriteString(conn, b.post(timers, mallory, "Content-Length: 8000000\r\n"))
		case 2: // more than is allowed
			_, _ = io.WriteString(conn, b.post(timers, mallory, "Content-Length: 99999999999\r\n"))
			status, err := statusOf(conn)
			require.NoError(t, err)
			require.Equal(t, http.StatusRequestEntityTooLarge, status)
		default: // many values
			body := `{"ids":[` + strings.Repeat(`"",`, 1<<20) + `""]}`
			_, _ = io.WriteString(conn, b.post(timers+":cancel", mallory, fmt.Sprintf("Content-Length: %d\r\n", len(body))))
			_, _ = io.WriteString(conn, body)
			if status, err := statusOf(conn); err == nil { // or there was no room for it
				require.Contains(t, []int{http.StatusBadRequest, http.StatusTooManyRequests}, status)
			}
		}
	})
	b.bounded()
	b.honest()
	b.honestHTTP(t)
}

// Answers that are not read take no more room than those of a session.
//
//nolint:paralleltest // measures memory
func TestUnreadAnswersOfHTTPAreBounded(t *testing.T) {
	b := besiege(t, overHTTP)
	timers := "/v1/topics/" + b.topic.Name() + "/timers"
	large := strings.Repeat(`\u0000`, 1000<<10) // which an answer escapes again
	b.http(t, "POST", timers, `{"id":"large","in":"1h","content_type":"text/plain","body":"`+large+`"}`).ok(t)
	inParallel(60, func(int) {
		_, _ = io.WriteString(b.knockHTTP(t), strings.Replace(b.post(timers+"/large", mallory), "POST", "GET", 1))
	})
	for range 20 {
		b.honestHTTP(t)
		b.bounded()
	}
	b.honest()
	b.http(t, "DELETE", timers+"/large", "").ok(t)
}

// A request whose headers or body do not arrive is ended, and so is a connection without
// credentials.
func TestSlowCallersOfHTTPAreEnded(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	timers := "/v1/topics/" + n.topic.Name() + "/timers"
	silent, headers, body := n.knockHTTP(t), n.knockHTTP(t), n.knockHTTP(t)
	_, err := io.WriteString(headers, "GET / HTTP/1.1\r\nHost: x\r\n")
	require.NoError(t, err)
	_, err = io.WriteString(body, n.post(timers, secret, "Content-Length: 100\r\n")+"{")
	require.NoError(t, err)
	ended := make(chan string, 3)
	for name, conn := range map[string]net.Conn{"silent": silent, "headers": headers} {
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			ended <- name
		}()
	}
	go func() {
		status, err := statusOf(body)
		ended <- fmt.Sprint(status, err)
	}()
	require.ElementsMatch(t, []string{"silent", "headers", "408 <nil>"}, []string{receive(t, ended), receive(t, ended), receive(t, ended)})
}

//nolint:paralleltest // measures memory
func TestFloodsOfHTTPAreBounded(t *testing.T) {
	b := besiege(t, overHTTP, func(c *remote.Config) { c.MaxConnections = 40 })
	stats := "/v1/topics/" + b.topic.Name() + "/stats"
	inParallel(20, func(i int) {
		for range 20 {
			conn, err := net.Dial("tcp", b.server.HTTPAddress())
			if err != nil {
				return // the queue of the listener is full
			}
			switch i % 3 {
			case 0: // says nothing
			case 1: // tokens that are not known
				_, _ = io.WriteString(conn, b.post(stats, "wrong-token-of-some-length"))
			default: // pipelined requests, whose answers are not read
				_, _ = io.WriteString(conn, strings.Repeat(strings.Replace(b.post(stats, mallory), "POST", "GET", 1), 50))
			}
			if i%2 == 0 {
				_ = conn.Close()
			} else {
				t.Cleanup(func() { _ = conn.Close() })
			}
		}
	})
	b.bounded()
	b.honest()
	b.honestHTTP(t)
}

// Principals that are removed lose their connections, and what waits on them.
func TestRemovedTokenEndsRequestsOfHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withMallory())
	gate := "/v1/gates/" + gateOf("/v1/gates/"+n.topic.Name()) + "/turns"
	turn := n.http(t, "POST", gate, `{"ttl":"1h"}`).ok(t)["token"].(string)
	r := n.request(t, "POST", gate, malloryToken, `{"wait":"1m"}`)
	ended := make(chan error, 1)
	go func() {
		got, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = got.Body.Close()
		}
		ended <- err
	}()
	eventually(t, func() bool {
		info, err := n.System.Gates().Show(t.Context(), n.topic.Name())
		return err == nil && info.Waiting > 0
	})
	require.NoError(t, n.server.SetTokens(map[string]string{secret: "tests"}, nil))
	require.Error(t, receive(t, ended))
	do(t, n.request(t, "GET", "/v1/schedules", malloryToken, "")).problem(t, http.StatusUnauthorized, "unauthenticated")
	n.http(t, "POST", gate+"/"+turn+":release", "").ok(t)
}

// HTTP has the certificates of the other listener: callers without one are refused.
func TestHTTPAsksForCertificates(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cfg := encrypted(nil, ours.issue("node", time.Hour))
	cfg.ClientCAs = ours.pool
	n := serveHTTP(t, remote.Config{TLS: cfg})
	get := func(shown ...tls.Certificate) (*http.Response, error) {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: encrypted(ours.pool, shown...)}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+n.server.HTTPAddress()+"/v1/schedules", nil)
		require.NoError(t, err)
		return c.Do(r)
	}
	got, err := get(ours.issue("caller", time.Hour))
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, http.StatusOK, got.StatusCode)
	require.Equal(t, 1, got.ProtoMajor)
	_, err = get() //nolint:bodyclose // it fails
	require.ErrorContains(t, err, "certificate required")
}
