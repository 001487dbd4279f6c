package dashboard_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/recurring"
)

const (
	viewerSecret   = "viewer-secret-0123456789"
	operatorSecret = "operator-secret-0123456789"
)

func withCredentials(c *dashboard.Config) {
	c.Credentials = []dashboard.Credential{
		{Name: "vera", Role: dashboard.RoleViewer, Secret: viewerSecret},
		{Name: "otto", Role: dashboard.RoleOperator, Secret: operatorSecret},
	}
}

func basic(name, secret string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(name, secret) }
}

func TestRolesDecideWhatRequestMayDo(t *testing.T) {
	t.Parallel()
	s := open(t, withCredentials)
	s.schedule("mails", "m", time.Hour, "x")
	pause := s.path("do/pause", "topic", "mails")
	for _, c := range []struct {
		name         string
		edit         func(*http.Request)
		read, change int
	}{
		{"no credentials", nil, 401, 401},
		{"wrong secret", basic("otto", "wrong-secret-0123456789"), 401, 401},
		{"secret of another", basic("otto", viewerSecret), 401, 401},
		{"viewer", basic("vera", viewerSecret), 200, 403},
		{"operator", basic("otto", operatorSecret), 200, 200},
		{"bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+operatorSecret) }, 200, 200},
	} {
		s.edit = c.edit
		a := s.send(http.MethodGet, s.path("topics"), nil)
		require.Equal(t, c.read, a.status, c.name)
		require.Equal(t, c.read == 401, a.header.Get("WWW-Authenticate") != "", c.name)
		require.Equal(t, c.change, s.send(http.MethodGet, pause, nil).status, c.name)
		require.Equal(t, c.change == 200, strings.Contains(a.body, "do/pause"), c.name)
	}
	s.edit = basic("vera", viewerSecret)
	require.Equal(t, http.StatusForbidden, s.send(http.MethodPost, pause, form("x")).status)
	s.edit = basic("otto", operatorSecret)
	_, page := s.do("pause", []string{"topic", "mails"}, "reason", "r")
	require.Contains(t, page, "by otto: r")
}

func TestReadOnlyIsDefault(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *dashboard.Config) { c.Writable = false })
	s.schedule("mails", "m", time.Hour, "x")
	for _, page := range []string{s.path("topic", "name", "mails"), s.path("timer", "topic", "mails", "id", "m"), s.path("topics")} {
		require.NotContains(t, s.send(http.MethodGet, page, nil).body, "/do/", page)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		require.Equal(t, http.StatusForbidden, s.send(method, s.path("do/cancel", "topic", "mails", "id", "m"), form("x")).status)
	}
}

func TestOnlyThisMachineIsServedByDefault(t *testing.T) {
	t.Parallel()
	s := open(t)
	for host, want := range map[string]int{"localhost:1": 200, "127.0.0.1": 200, "[::1]:8080": 200, "rebound.example:80": 403, "127.0.0.1.example": 403} {
		s.edit = func(r *http.Request) { r.Host = host }
		require.Equal(t, want, s.send(http.MethodGet, s.path("topics"), nil).status, host)
	}
}

// A proxy on this machine may set a loopback Host for clients of anywhere.
func TestWithoutCredentialsForwardedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, header := range []string{"X-Forwarded-For", "x-forwarded-host", "X-Forwarded-Proto", "X-Forwarded", "Forwarded", "Via", "X-Real-IP", "CF-Connecting-IP"} {
		for _, value := range []string{"203.0.113.7", "for=203.0.113.7", "127.0.0.1", ""} {
			s.edit = func(r *http.Request) {
				r.Host = "localhost"
				r.Header[http.CanonicalHeaderKey(header)] = []string{value}
			}
			for _, page := range []string{"topics", "live", "do/pause"} {
				require.Equal(t, http.StatusForbidden, s.send(http.MethodGet, s.path(page), nil).status, "%s: %s", header, value)
			}
		}
	}
	s = open(t, withCredentials)
	s.edit = func(r *http.Request) { basic("vera", viewerSecret)(r); r.Header.Set("X-Forwarded-For", "203.0.113.7") }
	require.Equal(t, http.StatusOK, s.send(http.MethodGet, s.path("topics"), nil).status)
}

func TestForgedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("mails", "m", time.Hour, "x")
	path := s.path("do/cancel", "topic", "mails", "id", "m")
	_, csrf := s.question(path)
	for name, c := range map[string]struct {
		token  string
		header [2]string
	}{
		"no token":       {"", [2]string{}},
		"wrong token":    {strings.Repeat("A", len(csrf)), [2]string{}},
		"another site":   {csrf, [2]string{"Sec-Fetch-Site", "cross-site"}},
		"another origin": {csrf, [2]string{"Origin", "https://evil.example"}},
		"another port":   {csrf, [2]string{"Origin", "http://127.0.0.1:1"}},
		"no cookie":      {csrf, [2]string{"Cookie", "wakebell_csrf="}},
	} {
		s.edit = func(r *http.Request) {
			if c.header[0] != "" {
				r.Header.Set(c.header[0], c.header[1])
			}
		}
		if name == "no cookie" {
			jar := s.browser.Jar
			s.browser.Jar = nil
			require.Equal(t, http.StatusForbidden, s.send(http.MethodPost, path, form(c.token)).status, name)
			s.browser.Jar = jar
			continue
		}
		require.Equal(t, http.StatusForbidden, s.send(http.MethodPost, path, form(c.token)).status, name)
	}
	_, _, err := s.client.Get(t.Context(), "mails", "m")
	require.NoError(t, err)
	s.edit = func(r *http.Request) { r.Header.Set("Origin", s.server.URL) }
	require.Equal(t, http.StatusSeeOther, s.send(http.MethodPost, path, form(csrf)).status)
}

func TestFailedSignInsAreLimited(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := openOn(t, connection.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, withCredentials)
	s.edit = basic("otto", "guess-guess-guess-guess")
	var last answer
	for range 40 {
		if last = s.send(http.MethodGet, s.path("topics"), nil); last.status == http.StatusTooManyRequests {
			break
		}
		require.Equal(t, http.StatusUnauthorized, last.status)
	}
	require.Equal(t, http.StatusTooManyRequests, last.status)
	require.NotEmpty(t, last.header.Get("Retry-After"))
	s.server.Close() // so that no request writes to the log any more
	require.Contains(t, log.String(), "sign-in failed")
	require.NotContains(t, log.String(), "guess-guess")
}

// Behind a proxy all browsers have one address: guesses of one do not lock out others.
func TestGuessesDoNotLockOthersOut(t *testing.T) {
	t.Parallel()
	s := open(t, withCredentials)
	topics := s.path("topics")
	guesses := map[int]int{}
	for range 50 {
		s.edit = basic("otto", "guess-guess-guess-guess")
		guesses[s.send(http.MethodGet, topics, nil).status]++
		s.edit = basic("otto", operatorSecret)
		require.Equal(t, http.StatusOK, s.send(http.MethodGet, topics, nil).status)
	}
	require.Greater(t, guesses[http.StatusTooManyRequests], 20, guesses)
	s.edit = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+viewerSecret) }
	require.Equal(t, http.StatusOK, s.send(http.MethodGet, topics, nil).status)
	s.edit = nil
	a := s.send(http.MethodGet, topics, nil)
	require.Equal(t, http.StatusUnauthorized, a.status, "a browser can still ask for the credentials")
	require.NotEmpty(t, a.header.Get("WWW-Authenticate"))
}

func TestAuthorizeDecides(t *testing.T) {
	t.Parallel()
	s := open(t, func(c *dashboard.Config) {
		c.Authorize = func(r *http.Request) (dashboard.Principal, dashboard.Role, error) {
			switch r.Header.Get("X-User") {
			case "":
				return "", dashboard.RoleNone, dashboard.ErrUnauthenticated
			case "otto":
				return "otto", dashboard.RoleOperator, nil
			case "broken":
				return "", dashboard.RoleOperator, errors.New("secret of the proxy")
			default:
				return "guest", dashboard.RoleNone, nil
			}
		}
	})
	for user, want := range map[string]int{"": 401, "otto": 200, "broken": 403, "guest": 403} {
		s.edit = func(r *http.Request) { r.Header.Set("X-User", user) }
		a := s.send(http.MethodGet, s.path("topics"), nil)
		require.Equal(t, want, a.status, user)
		require.NotContains(t, a.body, "secret of the proxy")
	}
}

func TestEveryAnswerHasSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := open(t, withCredentials)
	for _, page := range []string{"topics", "nothing", "assets/dashboard.js", "live", "do/pause"} {
		for _, edit := range []func(*http.Request){nil, basic("otto", operatorSecret)} {
			s.edit = edit
			h := s.send(http.MethodGet, s.path(page), nil).header
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", page)
			require.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'", page)
			require.NotContains(t, h.Get("Content-Security-Policy"), "unsafe", page)
			require.Equal(t, "DENY", h.Get("X-Frame-Options"), page)
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), page)
		}
	}
}

func TestDashboardWorksBelowPrefixAndBehindProxyThatRemovesIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("mails", "m", time.Hour, "x")
	for _, path := range []string{"/ops/wakebell/topics", "/topics"} {
		a := s.send(http.MethodGet, path, nil)
		require.Equal(t, 200, a.status, path)
		for _, link := range regexp.MustCompile(`(?:href|src|action|data-live)="([^"#]+)"`).FindAllStringSubmatch(a.body, -1) {
			require.True(t, strings.HasPrefix(link[1], "/ops/wakebell/"), link[1])
		}
	}
	a := s.send(http.MethodGet, "/ops/wakebell", nil)
	require.Equal(t, "/ops/wakebell/", a.header.Get("Location"))
	for _, path := range []string{"/ops/wakebell//evil.example", "/ops/wakebellx", "/ops/wakebell/../topics", "//evil.example/"} {
		a := s.send(http.MethodGet, path, nil)
		require.Equal(t, 404, a.status, path)
		require.Empty(t, a.header.Get("Location"), path)
	}
}

const (
	script = `<script>alert(1)</script>`
	nasty  = script + `"'><img src=x onerror=alert(2)>` + "\x1b[2J\x00\u202egnp.exe\u2066javascript:alert(3)"
)

// entered matches the values of inputs, which are what was entered or is edited.
var entered = regexp.MustCompile(`(?s) value="[^"]*"|<textarea.*?</textarea>`)

// Foreign text is shown, and has no effect.
func TestHostileTextIsInertOnEveryPage(t *testing.T) {
	t.Parallel()
	s := open(t, queueNames(script))
	big := nasty + strings.Repeat("A", 1<<20-2000)
	s.schedule(nasty, nasty, time.Hour, big, wakebell.Header(nasty, nasty), wakebell.ContentType("text/plain; "+script), wakebell.CorrelationID(nasty))
	s.kill("dead"+script, map[string]string{nasty: nasty, "plain": "\xff\xfe" + nasty})
	_, err := s.client.Pause(t.Context(), nasty, nasty, nasty)
	require.NoError(t, err)
	require.NoError(t, s.client.Schedules().Put(t.Context(), wakebell.NewTopic[string](nasty).Recurring(nasty, recurring.Rule{Cron: "0 0 * * *"}, nasty)))
	turn, err := s.gates.Acquire(t.Context(), nasty)
	require.NoError(t, err)
	require.NoError(t, turn.Guard(t.Context(), nasty))
	s.do("publish", []string{"name", script}, "body", nasty)
	letters, err := s.client.LastDead(t.Context(), "dead"+script, 2)
	require.NoError(t, err)

	pages := [][]string{
		{""},
		{"topics"},
		{"topics", "q", nasty},
		{"topic", "name", nasty},
		{"timers", "topic", nasty},
		{"timers", "topic", nasty, "prefix", nasty},
		{"timer", "topic", nasty, "id", nasty},
		{"dead"},
		{"dead", "topic", "dead" + script},
		{"dead", "topic", "dead" + script, "reason", nasty},
		{"queues"},
		{"queue", "name", script},
		{"schedules"},
		{"schedule", "name", nasty},
		{"gates"},
		{"gate", "name", nasty},
		{"nodes"},
		{"doctor", "topic", nasty},
		{"search", "q", nasty[:len(script)]},
		{"jobs"},
		{"audit"},
		{"audit", "name", nasty},
		{"do/pause", "topic", nasty},
		{"do/cancel", "topic", nasty, "id", nasty},
		{"do/schedule", "topic", nasty, "id", nasty},
		{"do/put-schedule", "name", nasty},
		{"do/release-gate", "name", nasty},
		{"do/redrive", "topic", "dead" + script},
	}
	for _, l := range letters {
		pages = append(pages, []string{"letter", "topic", "dead" + script, "entry", l.Entry})
	}
	for _, p := range pages {
		body := s.get(p[0], p[1:]...)
		require.NotContains(t, body, script, p)
		require.NotContains(t, body, "<img", p)
		shown := entered.ReplaceAllString(body, "")
		require.NotContains(t, shown, "\u202e", p)
		require.NotContains(t, shown, "\x1b", p)
		require.Less(t, len(body), 3<<20, p)
	}
	require.Contains(t, s.get("topic", "name", nasty), `&lt;script&gt;`)
	for _, bad := range []string{nasty, "\xff", strings.Repeat("x", 5000)} {
		for _, page := range []string{"topic", "timer", "letter", "queue", "schedule", "gate", "job", "do/pause", "do/job"} {
			a := s.send(http.MethodGet, s.path(page, "name", bad, "topic", bad, "id", bad, "entry", bad), nil)
			require.NotContains(t, a.body, script, page)
		}
	}
}

// A body of 20 KB that is nested 9,990 times was 200 MB when it was indented.
func TestPagesOfNestedBodiesAreSmall(t *testing.T) {
	t.Parallel()
	s := open(t, queueNames("deep"))
	deep := strings.Repeat("[", 9990) + strings.Repeat("]", 9990)
	s.schedule("deep", "d", time.Hour, deep)
	for range 20 {
		s.do("publish", []string{"name", "deep"}, "body", deep)
	}
	require.Less(t, len(s.get("timer", "topic", "deep", "id", "d")), 200<<10)
	require.Less(t, len(s.get("queue", "name", "deep")), 1<<20)
}

func TestPayloadsAreHiddenOrRedacted(t *testing.T) {
	t.Parallel()
	secret, trace := "pin=1234", strings.Repeat("ab", 16)
	for name, change := range map[string]func(*dashboard.Config){
		"hidden": func(c *dashboard.Config) { c.HidePayloads = true },
		"redacted": func(c *dashboard.Config) {
			c.Redact = func(p dashboard.Payload) wakebell.Content { return wakebell.Content{Body: []byte("(redacted)")} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, change)
			s.schedule("cards", "c", time.Hour, secret, wakebell.Header("auth", secret), wakebell.Header("traceparent", "00-"+trace+"-"+trace[:16]+"-01"))
			require.Equal(t, name == "hidden", strings.Contains(s.get("timer", "topic", "cards", "id", "c"), trace))
			s.kill("cards2", map[string]string{"d": "r"})
			s.do("publish", []string{"name", "q"}, "body", secret)
			for _, page := range [][]string{{"timer", "topic", "cards", "id", "c"}, {"topic", "name", "cards"}, {"queue", "name", "q"}, {"export/dead", "topic", "cards2"}} {
				body := s.get(page[0], page[1:]...)
				require.NotContains(t, body, secret, page)
				require.NotContains(t, body, "Ym9keSBvZiBk", page) // "body of d"
			}
			a := s.send(http.MethodGet, s.path("do/schedule", "topic", "cards", "id", "c"), nil)
			require.Equal(t, http.StatusForbidden, a.status)
			require.NotContains(t, a.body, secret)
		})
	}
}

func TestConfigurationIsValidated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]dashboard.Config{
		"path": {Path: "wakebell"}, "path of another host": {Path: "//evil.example"}, "no credentials": {Credentials: []dashboard.Credential{}},
		"short secret": {Credentials: []dashboard.Credential{{Name: "a", Role: dashboard.RoleViewer, Secret: "short"}}},
		"no role":      {Credentials: []dashboard.Credential{{Name: "a", Secret: viewerSecret}}},
		"origin":       {TrustedOrigins: []string{"evil"}}, "trace": {TraceURL: "javascript:{trace}"},
	} {
		_, err := dashboard.New(nil, dashboard.Operators{Timers: &wakebell.Client{}}, c)
		require.ErrorIs(t, err, wakebell.ErrInvalid, name)
		require.NotContains(t, err.Error(), "short\"", name)
	}
	_, err := dashboard.New(nil, dashboard.Operators{}, dashboard.Config{})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

func TestCredentialsAreReadFromFile(t *testing.T) {
	t.Parallel()
	all, err := dashboard.ReadCredentials(strings.NewReader("# team\n\nvera:viewer:" + viewerSecret + "\notto : operator : " + operatorSecret + "\n"))
	require.NoError(t, err)
	require.Equal(t, dashboard.RoleOperator, all[1].Role)
	for _, bad := range []string{"", "vera", "vera:viewer", "vera:admin:" + viewerSecret, "vera:viewer:short", ":viewer:" + viewerSecret, "a:viewer:" + viewerSecret + "\na:viewer:" + operatorSecret} {
		_, err := dashboard.ReadCredentials(strings.NewReader(bad))
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), viewerSecret)
	}
}
