package dashboard_test

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// patience is for how long a test waits for what a page will show. What took long to read is
// shown for fifty times as long, so on a busy machine that can be minutes.
const patience = 5 * time.Minute

// site is a dashboard on a real Redis with a browser.
type site struct {
	t       *testing.T
	client  *wakebell.Client
	gates   *gate.Gates
	server  *httptest.Server
	browser *http.Client
	prefix  string
	edit    func(*http.Request)
}

// open serves a dashboard that permits changes.
func open(t *testing.T, change ...func(*dashboard.Config)) *site {
	t.Helper()
	return openOn(t, connection.Config{}, change...)
}

// openOn is open with the configuration of the dashboard's Connection.
func openOn(t *testing.T, shown connection.Config, change ...func(*dashboard.Config)) *site {
	t.Helper()
	cfg := dashboard.Config{Writable: true, Path: "/ops/wakebell"}
	for _, c := range change {
		c(&cfg)
	}
	rdb, name := redistest.Shared(t), redistest.Name(t)
	client, err := wakebell.NewClient(conntest.Switched(t, rdb,
		connection.Config{Prefix: name + ":", Keys: wakebelltype.Keys{Beat: name + ":beat:"}},
		opened.Switches{Names: timers.Names{Topics: name + ":topics"}}))
	require.NoError(t, err)
	gates, err := gate.New(conntest.New(t, rdb, connection.Config{
		GateKeys: wakebelltype.GateKeys{
			Stream: "{" + name + "}:s", Group: "g", Signal: "{" + name + "}:sig", State: "{" + name + "}:state", Guard: "{" + name + "}:guard",
			Exchange: "{" + name + "}:x", Presence: "{" + name + "}:p", Deadlines: "{" + name + "}:d", Mark: "{" + name + "}:m",
		},
	}), gate.Config{})
	require.NoError(t, err)
	d, err := dashboard.New(conntest.WithoutRedis(t, shown), dashboard.Operators{
		Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates,
	}, cfg)
	require.NoError(t, err)
	s := &site{t: t, client: client, gates: gates, server: httptest.NewServer(d), prefix: cfg.Path}
	t.Cleanup(func() { require.NoError(t, gates.Close()) })
	t.Cleanup(s.server.Close)
	t.Cleanup(d.Close)
	s.fresh()
	return s
}

func (s *site) keys() wakebelltype.Keys { return s.client.Connection().Config().Keys }

// serve serves a dashboard with other operators, in place of that of open.
func (s *site) serve(operators dashboard.Operators, change ...func(*dashboard.Config)) {
	s.t.Helper()
	cfg := dashboard.Config{Path: s.prefix}
	for _, c := range change {
		c(&cfg)
	}
	d, err := dashboard.New(conntest.WithoutRedis(s.t, connection.Config{}), operators, cfg)
	require.NoError(s.t, err)
	s.server = httptest.NewServer(d)
	s.t.Cleanup(s.server.Close)
	s.t.Cleanup(d.Close)
}

// fresh gives the site a browser without cookies.
func (s *site) fresh() {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	transport := &http.Transport{}
	s.browser = &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.t.Cleanup(transport.CloseIdleConnections)
}

// answer is what the dashboard answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// path returns the address of a page with parameters.
func (s *site) path(page string, params ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		query.Set(params[i], params[i+1])
	}
	if len(query) > 0 {
		page += "?" + query.Encode()
	}
	return s.prefix + "/" + page
}

func (s *site) send(method, path string, form url.Values) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if s.edit != nil {
		s.edit(req)
	}
	resp, err := s.browser.Do(req)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// get reads a page that exists, as a browser does: again while something of it is being read.
func (s *site) get(page string, params ...string) string {
	s.t.Helper()
	for {
		a := s.send(http.MethodGet, s.path(page, params...), nil)
		require.Equal(s.t, http.StatusOK, a.status, "%s: %s", page, a.body)
		if a.header.Get("Refresh") == "" && !strings.Contains(a.body, "is being counted.") {
			return a.body
		}
		<-time.After(20 * time.Millisecond)
	}
}

var token = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// question reads the page of an action, and returns it with the token of its form.
func (s *site) question(path string) (page, csrf string) {
	s.t.Helper()
	a := s.send(http.MethodGet, path, nil)
	require.Equal(s.t, http.StatusOK, a.status, "%s: %s", path, a.body)
	found := token.FindStringSubmatch(a.body)
	require.NotNil(s.t, found, a.body)
	return a.body, found[1]
}

// do carries out an action as a browser does: it opens the page of the action, sends
// the form, and follows to the next page. It returns both pages.
func (s *site) do(action string, params []string, fields ...string) (asked, next string) {
	s.t.Helper()
	path := s.path("do/"+action, params...)
	asked, csrf := s.question(path)
	a := s.send(http.MethodPost, path, form(csrf, fields...))
	require.Equal(s.t, http.StatusSeeOther, a.status, "%s: %s", action, a.body)
	b := s.send(http.MethodGet, a.header.Get("Location"), nil)
	return asked, b.body
}

func form(csrf string, fields ...string) url.Values {
	f := url.Values{"csrf": {csrf}}
	for i := 0; i+1 < len(fields); i += 2 {
		f.Set(fields[i], fields[i+1])
	}
	return f
}

// schedule stores a timer.
func (s *site) schedule(topic, id string, in time.Duration, body string, opts ...wakebell.ScheduleOption) {
	s.t.Helper()
	opts = append(opts, wakebell.ID(id), wakebell.In(in))
	_, err := s.client.Schedule(s.t.Context(), wakebell.NewTopic[[]byte](topic).Draft([]byte(body), opts...))
	require.NoError(s.t, err)
}

// kill makes dead letters of timers, with these reasons.
func (s *site) kill(topic string, reasons map[string]string) {
	s.t.Helper()
	for id := range reasons {
		s.schedule(topic, id, 0, "body of "+id)
	}
	s.run(topic, func(_ context.Context, timer wakebell.Timer[[]byte]) error {
		return wakebell.Reject(errors.New(reasons[timer.ID]))
	}, func() bool {
		stats, err := s.client.Stats(s.t.Context(), topic)
		return err == nil && int(stats.Dead) == len(reasons)
	})
}

// run runs a node that handles a topic until the condition holds.
func (s *site) run(topic string, handle func(context.Context, wakebell.Timer[[]byte]) error, until func() bool, options ...wakebell.HandlerOption) {
	s.t.Helper()
	sys, err := wakebell.New(actor.NewActorSystem(), s.client.Connection(), wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(wakebell.NewTopic[[]byte](topic), handle, options...)},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, sys.Start(s.t.Context()))
	defer func() { require.NoError(s.t, sys.Stop()) }()
	require.Eventually(s.t, until, patience, 5*time.Millisecond)
}

func queueNames(names ...string) func(*dashboard.Config) {
	return func(c *dashboard.Config) {
		for _, name := range names {
			c.QueueNames = append(c.QueueNames, wakebelltype.QueueKeys{Name: name})
		}
	}
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

var next = regexp.MustCompile(`href="([^"]+)">Next page`)

// nextPage returns the address of the next page of a list; empty: none.
func nextPage(body string) string {
	found := next.FindStringSubmatch(body)
	if found == nil {
		return ""
	}
	return html.UnescapeString(found[1])
}
