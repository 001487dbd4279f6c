package webhook

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
)

const (
	// DefaultTimeout is the default of Config.Timeout. It is half of the default LeaseTTL.
	DefaultTimeout = 15 * time.Second
	// DefaultMaxRetryAfter is the default of Config.MaxRetryAfter.
	DefaultMaxRetryAfter = time.Hour

	maxTimeout    = time.Hour
	maxRetryAfter = 7 * 24 * time.Hour
	maxURL        = 2048 // bytes
	maxSecrets    = 2
	maxPerHost    = 10_000
	maxNetworks   = 64
)

// Config configures a Webhook. URL and either Secrets or SecretFile are required.
type Config struct {
	// URL receives the requests. It has the scheme https, or http if AllowHTTP permits
	// it, at most 2,048 bytes, and neither a user nor a fragment. Its path and query are
	// treated as secrets.
	URL string

	// Secrets sign the requests: one, or two while a secret is replaced. Receivers accept
	// a request if one of its signatures is right.
	Secrets []Secret

	// SecretFile is a file with the secrets, one on each line; # begins a comment. It is
	// read again within a second after it has changed. While it cannot be used, the
	// previous secrets stay.
	SecretFile string

	// Timeout bounds a request until its answer has begun: 1 ms – 1 h. It must be less
	// than the LeaseTTL of the topic, so that a drain and a retry do not meet a request
	// that still runs; the lease is extended meanwhile. Default: 15 s.
	Timeout time.Duration

	// MaxRetryAfter is the longest delay that Retry-After may ask for: 1 s – 7 days. A
	// longer one is cut to it. Default: 1 h.
	MaxRetryAfter time.Duration

	// AllowNetworks are networks whose addresses may be called although they are not
	// public, as 127.0.0.0/8; at most 64. ParseNetworks returns the usual ones. Default:
	// none.
	AllowNetworks []netip.Prefix

	// AllowHTTP permits http, with which others can read the timers. Default: false,
	// which permits http on loopback alone.
	AllowHTTP bool

	// TLS is used for connections, for instance for its RootCAs and Certificates. Its
	// MinVersion is raised to TLS 1.2; it must not have InsecureSkipVerify. Default: the
	// authorities of the system.
	TLS *tls.Config

	// ProxyFromEnvironment uses the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name.
	// The addresses are then those that the proxy connects to; AllowNetworks is about the
	// proxy's own address. Default: false, no proxy.
	ProxyFromEnvironment bool

	// Hosts bounds requests to the same host. Share it between Webhooks. Default: nil,
	// only MaxConcurrent of each topic bounds them.
	Hosts *Hosts

	// Key returns the key of a timer for the header wakebell-key, "" for none. A delivery
	// does not have it: ask Client.Get. Default: nil, no such header.
	Key func(context.Context, wakebell.Meta) string

	// Logger logs when the secrets are read again or cannot be. Default: nothing is logged.
	Logger *slog.Logger
}

// Validate returns the error that New would return because of a field. It reads no file.
func (c Config) Validate() error {
	_, err := c.checked()
	return err
}

// checked sets the defaults, and returns the parsed URL.
func (c *Config) checked() (*url.URL, error) {
	target, err := parseURL(c.URL, c.AllowHTTP)
	if err != nil {
		return nil, err
	}
	switch {
	case (len(c.Secrets) > 0) == (c.SecretFile != ""):
		return nil, argument.Invalid("Secrets", "want them or SecretFile")
	case len(c.Secrets) > maxSecrets:
		return nil, argument.Invalid("Secrets", "%d, want at most %d", len(c.Secrets), maxSecrets)
	case len(c.AllowNetworks) > maxNetworks:
		return nil, argument.Invalid("AllowNetworks", "%d, want at most %d", len(c.AllowNetworks), maxNetworks)
	case c.TLS != nil && c.TLS.InsecureSkipVerify:
		return nil, argument.Invalid("TLS", "InsecureSkipVerify is set; set RootCAs instead")
	case c.Hosts != nil && (c.Hosts.Max < 1 || c.Hosts.Max > maxPerHost):
		return nil, argument.Invalid("Hosts.Max", "%d is not within 1 and %d", c.Hosts.Max, maxPerHost)
	}
	for _, s := range c.Secrets {
		if len(s.key) == 0 {
			return nil, argument.Invalid("Secrets", "one is empty; use ParseSecret")
		}
	}
	for _, network := range c.AllowNetworks {
		if !network.IsValid() {
			return nil, argument.Invalid("AllowNetworks", "one is the zero value; use ParseNetworks")
		}
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = DefaultMaxRetryAfter
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := argument.Within("Timeout", c.Timeout, time.Millisecond, maxTimeout); err != nil {
		return nil, err
	}
	return target, argument.Within("MaxRetryAfter", c.MaxRetryAfter, time.Second, maxRetryAfter)
}

// parseURL parses a URL. Its errors show nothing of it: a path may be as secret as a query.
func parseURL(text string, allowHTTP bool) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, argument.Invalid("URL", "%d bytes, want at most %d", len(text), maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return nil, argument.Invalid("URL", "want https://host/path")
	case u.User != nil:
		return nil, argument.Invalid("URL", "it has a user; requests are authenticated by their signature")
	case strings.Contains(text, "#"):
		return nil, argument.Invalid("URL", "it has a fragment, which is not sent")
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, argument.Invalid("URL", "scheme %s, want https", argument.Quote(u.Scheme))
	case !allowHTTP && !namesLoopback(u.Hostname()):
		return nil, argument.Invalid("URL", "http beyond loopback needs AllowHTTP; want https")
	}
	return u, nil
}

// namesLoopback reports whether a host is this machine by its name. The address is
// checked again when a connection is opened.
func namesLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
