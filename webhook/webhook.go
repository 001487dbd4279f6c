package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
)

// Webhook posts timers to a URL. Its methods may be called from several goroutines.
type Webhook struct {
	cfg       Config
	target    *url.URL
	host      string   // of target, in lower case, without a port
	hidden    []string // of target, from texts
	secrets   secretSource
	dialer    *net.Dialer
	transport *http.Transport
}

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	idleConnections  = 128
	// A connection of HTTP/2 that is dead would take requests until it is noticed.
	pingAfter = 15 * time.Second
	pingLimit = 10 * time.Second

	answerHeaderLimit = 64 << 10 // bytes
)

// New returns a Webhook. Errors about a field wrap wakebell.ErrInvalid.
func New(cfg Config) (*Webhook, error) {
	target, err := cfg.checked()
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	w := &Webhook{cfg: cfg, target: target, host: strings.ToLower(target.Hostname()), hidden: hiddenParts(target)}
	w.secrets = fixed(cfg.Secrets)
	if cfg.SecretFile != "" {
		if w.secrets, err = openSecretFile(cfg.SecretFile, cfg.Logger); err != nil {
			return nil, fmt.Errorf("webhook: SecretFile: %w", err)
		}
	}
	secured := &tls.Config{} //nolint:gosec // the next lines set its version
	if cfg.TLS != nil {
		secured = cfg.TLS.Clone()
	}
	secured.MinVersion = max(secured.MinVersion, tls.VersionTLS12)
	guard := &guard{allowed: cfg.AllowNetworks, loopbackOnly: target.Scheme == "http" && !cfg.AllowHTTP}
	w.dialer = &net.Dialer{Timeout: dialTimeout, ControlContext: guard.control}
	w.transport = &http.Transport{
		DialContext:            w.dialer.DialContext,
		TLSClientConfig:        secured,
		TLSHandshakeTimeout:    handshakeTimeout,
		ForceAttemptHTTP2:      true, // it is off with a dialer of our own
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingLimit},
		DisableCompression:     true, // a small answer could become a large one
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: answerHeaderLimit,
	}
	if cfg.ProxyFromEnvironment {
		w.transport.Proxy = proxy
	}
	return w, nil
}

// proxy returns the proxy for a request. Its error does not show the variable, which may
// have a password.
func proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errors.New("the proxy that the environment names is not a URL")
	}
	return u, nil
}

// Close closes the idle connections. Requests that run are not affected.
func (w *Webhook) Close() { w.transport.CloseIdleConnections() }

// Handle posts a timer and returns the verdict of the answer; see the package
// documentation. Use it as the function of wakebell.Handle or wakebell.HandleQueue.
func (w *Webhook) Handle(ctx context.Context, t wakebell.Timer[[]byte]) error {
	leave, err := w.cfg.Hosts.enter(ctx, w.host)
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(w.cfg.Timeout, func() { cancel(errNoAnswer) })
	request, err := w.request(within, t)
	if err != nil {
		return err
	}
	answer, err := w.transport.RoundTrip(request)
	if !limit.Stop() && err == nil {
		_ = answer.Body.Close() // the timeout has ended it
		err = errNoAnswer
	}
	switch {
	case err == nil:
		return w.verdict(answer, func() { cancel(errSlowBody) })
	case ctx.Err() != nil:
		return context.Cause(ctx) // the timer is not this handler's any more
	case errors.Is(context.Cause(within), errNoAnswer):
		return w.failure("no answer within "+w.cfg.Timeout.String(), errNoAnswer)
	default:
		return w.failure(clean(err.Error()), err)
	}
}

var (
	errNoAnswer = errors.New("no answer in time")
	errSlowBody = errors.New("the body of the answer is slow")
)
