package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// retryFor is how long a command retries while Redis is unavailable.
	retryFor = 5 * time.Second
	// waitUnsaid is how long it does so before it reports the wait.
	waitUnsaid = time.Second
	// answerUnsaid is the same for a server that accepted the command and has not
	// answered: it may be busy with it.
	answerUnsaid = 3 * time.Second
)

// waiting is a hook of a Redis client that reports once what a command waits for.
type waiting struct {
	say    func(what string)
	budget time.Duration // for retries of calls; 0: unknown
	tls    bool          // the connection is encrypted

	mu    sync.Mutex
	began time.Time // of the first command since the last answer
	timer *time.Timer
	addr  string // last dialed, or to be dialed
	err   error  // of the last failure since began
	said  bool
}

// Watch reports on stderr what a command waits for. budget is the time for retries
// of calls; 0 if unknown.
func (c *Connection) Watch(a *App, budget time.Duration) {
	w := &waiting{say: a.warn, budget: budget, tls: encrypted(c.Redis), addr: addressOf(c.Redis)}
	c.watching, a.waiting = w, w
	c.Redis.AddHook(w)
	if cluster, ok := c.Redis.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(dialWatch{w}) })
	}
}

// addressOf returns the address of a single server; empty: it is known after a dial.
func addressOf(rdb redis.UniversalClient) string {
	client, ok := rdb.(*redis.Client)
	if !ok || !strings.ContainsAny(client.Options().Addr, ":/") { // that of Sentinel has a name of go-redis
		return ""
	}
	return client.Options().Addr
}

// encrypted reports whether a client connects with TLS.
func encrypted(rdb redis.UniversalClient) bool {
	switch client := rdb.(type) {
	case *redis.Client:
		return client.Options().TLSConfig != nil
	case *redis.ClusterClient:
		return client.Options().TLSConfig != nil
	}
	return false
}

func (w *waiting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.failed(err)
		} else {
			w.addr, w.err = conn.RemoteAddr().String(), nil
		}
		return conn, err
	}
}

func (w *waiting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.begin()
		err := next(ctx, cmd)
		w.end(err)
		return err
	}
}

func (w *waiting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.begin()
		err := next(ctx, cmds)
		w.end(err)
		return err
	}
}

func (w *waiting) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said || !w.began.IsZero() {
		return
	}
	w.began, w.err = time.Now(), nil
	w.timer = time.AfterFunc(waitUnsaid, w.due)
}

// End records the end of a command. A command that Redis cannot serve is retried,
// so the wait continues.
func (w *waiting) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.began.IsZero():
	case unserved(err):
		w.failed(err)
	case err != nil && w.err != nil: // the command was not sent
	default:
		w.timer.Stop()
		w.began = time.Time{}
	}
}

// stop ends the reports.
func (w *waiting) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// unserved reports whether err means that the server is unreachable or temporarily
// refuses commands.
func unserved(err error) bool {
	_, network := errors.AsType[net.Error](err)
	if network {
		return true
	}
	for _, code := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF", "BUSY"} {
		if redis.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}

// failed records why there is no answer, and reports it after waitUnsaid.
func (w *waiting) failed(err error) {
	w.err = err
	if !w.began.IsZero() && time.Since(w.began) >= waitUnsaid {
		w.speak()
	}
}

func (w *waiting) due() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.began.IsZero() || time.Since(w.began) < waitUnsaid:
	case w.err != nil || time.Since(w.began) >= answerUnsaid:
		w.speak()
	default:
		w.timer.Reset(answerUnsaid - waitUnsaid)
	}
}

func (w *waiting) speak() {
	if w.said {
		return
	}
	w.said = true
	text := w.what()
	if left := (w.budget - time.Since(w.began)).Round(time.Second); left > 0 {
		text += fmt.Sprintf("; trying for another %v", left)
	}
	w.say(text)
}

// server names the server that was dialed last.
func (w *waiting) server() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.named()
}

// reason describes why there is no answer: by the last failure of the connection or, if
// it did not fail, by the error of the command.
func (w *waiting) reason(err error) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if _, network := errors.AsType[net.Error](err); !network {
			return w.named() + " is unavailable: " + rootOf(err).Error()
		}
		w.err = err
	}
	return w.what()
}

func (w *waiting) named() string {
	addr := w.addr
	if op, ok := errors.AsType[*net.OpError](w.err); ok && op.Addr != nil {
		addr = op.Addr.String()
	}
	if addr == "" {
		return "redis"
	}
	return "redis at " + addr
}

// what describes why there is no answer.
func (w *waiting) what() string {
	op, ok := errors.AsType[*net.OpError](w.err)
	server := w.named()
	silent := server + " does not answer"
	if w.tls { // a server without TLS waits for the rest of a command
		silent += ", or has no TLS at this port (use redis:// there)"
	}
	switch {
	case w.err == nil, errors.Is(w.err, context.DeadlineExceeded):
		return silent
	case errors.Is(w.err, syscall.ECONNREFUSED):
		return server + " refuses connections"
	case ok && op.Timeout():
		return silent
	default:
		return server + " is unavailable: " + w.err.Error()
	}
}

// dialWatch is the hook for the nodes of a Cluster, whose commands the client's hook
// sees already.
type dialWatch struct{ *waiting }

func (dialWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dialWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// sayAfter reports what a command waits for, unless it is stopped within
// waitUnsaid.
func (a *App) sayAfter(what string) (stop func()) {
	timer := time.AfterFunc(waitUnsaid, func() { a.warn(what) })
	return func() { timer.Stop() }
}
