package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bills  = wakebell.NewTopic[[]byte]("bills")
	secret = NewSecret()
)

// received is a request as an endpoint has got it.
type received struct {
	*http.Request
	body []byte
}

// endpoint serves requests with answer after it has verified them, and returns a Webhook
// that posts to it.
func endpoint(t *testing.T, cfg Config, answer func(http.ResponseWriter, received)) *Webhook {
	t.Helper()
	server := httptest.NewServer(verified(t, answer))
	t.Cleanup(server.Close)
	return hookTo(t, server.URL, cfg)
}

func verified(t *testing.T, answer func(http.ResponseWriter, received)) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = Verify(r.Header, body, secret)
		}
		if err != nil {
			t.Errorf("request: %v", err)
		}
		answer(w, received{r, body})
	})
}

// hookTo returns a Webhook to a server of this machine. A path and a query of cfg.URL are
// appended to the server's.
func hookTo(t *testing.T, server string, cfg Config) *Webhook {
	t.Helper()
	cfg.URL = server + cfg.URL
	if cfg.Secrets == nil && cfg.SecretFile == "" {
		cfg.Secrets = []Secret{secret}
	}
	if cfg.AllowNetworks == nil {
		cfg.AllowNetworks = loopback
	}
	w, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return w
}

func bill(t *testing.T, body string, opts ...wakebell.ScheduleOption) wakebell.Timer[[]byte] {
	t.Helper()
	return wakebelltest.Timer(t, bills, []byte(body), append([]wakebell.ScheduleOption{wakebell.ID("inv 42")}, opts...)...)
}

func TestRequestDescribesTimer(t *testing.T) {
	t.Parallel()
	var got received
	w := endpoint(t, Config{
		URL: "/hooks?a=b",
		Key: func(context.Context, wakebell.Meta) string { return "cust\n7%" },
	}, func(_ http.ResponseWriter, r received) { got = r })
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	require.NoError(t, w.Handle(t.Context(), bill(t, `{"cents":995}`, wakebell.At(at), wakebell.ContentType("application/json"))))
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/hooks?a=b", got.RequestURI)
	require.JSONEq(t, `{"cents":995}`, string(got.body))
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Wakebell-Topic": "bills", "Wakebell-Id": "inv%2042", "Wakebell-Attempt": "1",
		"Wakebell-Due": "2026-01-02T03:04:05.678Z", "Wakebell-Key": "cust%0A7%25", "User-Agent": "wakebell-webhook",
	} {
		require.Equal(t, want, got.Header.Get(name), name)
	}
	require.Regexp(t, `^msg_[\w-]{24}$`, got.Header.Get("Webhook-Id"))
	require.Regexp(t, `^v1,[\w+/]{43}=$`, got.Header.Get("Webhook-Signature"))
	for _, bad := range []string{"", "a\nb", strings.Repeat("x", 300)} {
		require.Equal(t, "application/octet-stream", contentType(bad))
	}
}

func TestEmptyBodyIsPosted(t *testing.T) {
	t.Parallel()
	var got received
	w := endpoint(t, Config{}, func(_ http.ResponseWriter, r received) { got = r })
	require.NoError(t, w.Handle(t.Context(), bill(t, "")))
	require.Empty(t, got.body)
	require.Equal(t, "0", got.Header.Get("Content-Length"))
}

func TestMessageIDTellsActivationsApart(t *testing.T) {
	t.Parallel()
	at := time.UnixMicro(1_700_000_000_000_001)
	first := wakebell.Meta{Topic: "a", ID: "b", Activation: at, Attempt: 1}
	again := first
	again.Attempt, again.Delivered = 7, at.Add(time.Hour)
	require.Equal(t, messageID(first), messageID(again))
	for _, other := range []wakebell.Meta{
		{Topic: "a", ID: "b", Activation: at.Add(time.Microsecond)}, {Topic: "ab", Activation: at}, {Topic: "", ID: "ab", Activation: at},
	} {
		require.NotEqual(t, messageID(first), messageID(other))
	}
}

func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	status := atomic.Int32{}
	server := httptest.NewUnstartedServer(verified(t, func(w http.ResponseWriter, _ received) {
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, strings.Repeat("x", 20<<10)) // a client that closed it fails the test below
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	w := hookTo(t, server.URL, Config{})
	for _, code := range []int32{200, 404, 503, 201} {
		status.Store(code)
		err := w.Handle(t.Context(), bill(t, "x"))
		require.Equal(t, code < 300, err == nil, "%d: %v", code, err)
	}
	require.EqualValues(t, 1, opened.Load())
}

func TestHostsBoundRequestsOfAllWebhooks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	running, most := 0, 0
	arrived, proceed := make(chan struct{}, 10), make(chan struct{})
	hosts := &Hosts{Max: 2}
	serve := func(http.ResponseWriter, received) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		arrived <- struct{}{}
		<-proceed
		mu.Lock()
		running--
		mu.Unlock()
	}
	all := []*Webhook{endpoint(t, Config{Hosts: hosts}, serve), endpoint(t, Config{Hosts: hosts, URL: "/other"}, serve)}
	ended := make(chan error, 10)
	for i := range 10 {
		go func() { ended <- all[i%2].Handle(t.Context(), bill(t, "x")) }()
	}
	<-arrived
	<-arrived
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(wakebell.ErrLeaseLost)
	require.ErrorIs(t, all[0].Handle(gone, bill(t, "x")), wakebell.ErrLeaseLost, "a wait for a place ends with the lease")
	close(proceed)
	for range 10 {
		require.NoError(t, <-ended)
	}
	require.Equal(t, 2, most)
}

func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	valid := Config{URL: "https://example.com/hook?token=hidden", Secrets: []Secret{secret}}
	require.NoError(t, valid.Validate())
	for want, change := range map[string]func(*Config){
		"URL: want https://host/path":             func(c *Config) { c.URL = "" },
		"URL: want https://host":                  func(c *Config) { c.URL = "https://ho st/?token=hidden" },
		"URL: want https":                         func(c *Config) { c.URL = "https:///hidden" },
		"URL: it has a user":                      func(c *Config) { c.URL = "https://me:hidden@example.com" },
		"URL: it has a fragment":                  func(c *Config) { c.URL += "#hidden" },
		`URL: scheme "ftp", want https`:           func(c *Config) { c.URL = "ftp://example.com/hidden" },
		"URL: http beyond loopback":               func(c *Config) { c.URL = "http://example.com/hidden" },
		"URL: 2049 bytes, want at most 2048":      func(c *Config) { c.URL = "https://e/" + strings.Repeat("h", 2039) },
		"Secrets: want them or SecretFile":        func(c *Config) { c.Secrets = nil },
		"Secrets: want them or":                   func(c *Config) { c.SecretFile = "x" },
		"Secrets: 3, want at most 2":              func(c *Config) { c.Secrets = []Secret{secret, secret, secret} },
		"Secrets: one is empty":                   func(c *Config) { c.Secrets = []Secret{{}} },
		"Timeout: -1ns is not within 1ms":         func(c *Config) { c.Timeout = -1 },
		"Timeout: 2h0m0s is not within":           func(c *Config) { c.Timeout = 2 * time.Hour },
		"MaxRetryAfter: 1ms is not within 1s":     func(c *Config) { c.MaxRetryAfter = time.Millisecond },
		"Hosts.Max: 0 is not within 1 and 10000":  func(c *Config) { c.Hosts = &Hosts{} },
		"AllowNetworks: one is the zero value":    func(c *Config) { c.AllowNetworks = append(prefixes(), loopback[0], prefixOfNone) },
		"TLS: InsecureSkipVerify is set":          func(c *Config) { c.TLS = insecure },
		"AllowNetworks: 65, want at most 64":      func(c *Config) { c.AllowNetworks = make([]prefix, 65) },
		"Hosts.Max: 10001 is not within 1 and 10": func(c *Config) { c.Hosts = &Hosts{Max: 10001} },
	} {
		cfg := valid
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, wakebell.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	for _, url := range []string{"http://localhost:8080/x", "http://127.9.9.9", "http://[::1]:1/"} {
		valid.URL = url
		require.NoError(t, valid.Validate(), url)
	}
	valid.URL, valid.AllowHTTP = "http://example.com/", true
	require.NoError(t, valid.Validate())
}

func TestProxyOfEnvironmentIsUsedIfAsked(t *testing.T) {
	t.Parallel()
	require.Nil(t, hookTo(t, "https://example.com", Config{}).transport.Proxy)
	require.NotNil(t, hookTo(t, "https://example.com", Config{ProxyFromEnvironment: true}).transport.Proxy)
}
