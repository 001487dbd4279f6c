package remote_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/remote"
)

// TestBadInputIsAProblem has what is refused before anything is written.
func TestBadInputIsAProblem(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	topic := "/v1/topics/" + n.topic.Name()
	timers := topic + "/timers"
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code, field        string
		headers            []string
	}{
		"no JSON":                {"POST", timers, `{`, 400, "invalid", "", nil},
		"no object":              {"POST", timers, `[]`, 400, "invalid", "", nil},
		"null":                   {"POST", timers, `null`, 400, "invalid", "", nil},
		"trailing data":          {"POST", timers, `{} {}`, 400, "invalid", "", nil},
		"no UTF-8":               {"POST", timers, "{\"id\":\"\xff\"}", 400, "invalid", "", nil},
		"deep":                   {"POST", timers, `{"body":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 400, "invalid", "", nil},
		"unknown field":          {"POST", timers, `{"idd":"x"}`, 400, "invalid", "idd", nil},
		"another case":           {"POST", timers, `{"ID":"x"}`, 400, "invalid", "ID", nil},
		"hidden field":           {"POST", timers, `{"request":1}`, 400, "invalid", "request", nil},
		"field of the path":      {"POST", timers, `{"topic":"x"}`, 400, "invalid", "topic", nil},
		"field of a header":      {"POST", timers, `{"key":"x"}`, 400, "invalid", "key", nil},
		"name of JSON":           {"POST", timers, `{"ifExists":"keep"}`, 400, "invalid", "ifExists", nil},
		"repeated field":         {"POST", timers, `{"id":"x","id":"y"}`, 400, "invalid", "id", nil},
		"repeated header":        {"POST", timers, `{"headers":{"a":"b","a":"c"}}`, 400, "invalid", "headers.a", nil},
		"null field":             {"POST", timers, `{"id":null}`, 400, "invalid", "id", nil},
		"number for a text":      {"POST", timers, `{"id":1}`, 400, "invalid", "id", nil},
		"two instants":           {"POST", timers, `{"in":"1h","at":"2030-01-01T00:00:00Z"}`, 400, "invalid", "at", nil},
		"no duration":            {"POST", timers, `{"in":"soon"}`, 400, "invalid", "in", nil},
		"duration as a number":   {"POST", timers, `{"in":3600}`, 400, "invalid", "in", nil},
		"months":                 {"POST", timers, `{"in":"P1M"}`, 400, "invalid", "in", nil},
		"no instant":             {"POST", timers, `{"at":"tomorrow"}`, 400, "invalid", "at", nil},
		"unknown policy":         {"POST", timers, `{"if_exists":"maybe"}`, 400, "invalid", "if_exists", nil},
		"policy of the protocol": {"POST", timers, `{"if_exists":"POLICY_KEEP"}`, 400, "invalid", "if_exists", nil},
		"unspecified policy":     {"POST", timers, `{"if_exists":"unspecified"}`, 400, "invalid", "if_exists", nil},
		"no base64":              {"POST", timers, `{"body_base64":"*"}`, 400, "invalid", "body_base64", nil},
		"two bodies":             {"POST", timers, `{"body":1,"body_base64":"AA=="}`, 400, "invalid", "body_base64", nil},
		"JSON as a text":         {"POST", timers, `{"body":1,"content_type":"text/plain"}`, 400, "invalid", "body", nil},
		"JSON as bytes":          {"POST", timers, `{"body":1,"content_type":"image/png"}`, 400, "invalid", "body", nil},
		"long id":                {"POST", timers, `{"id":"` + strings.Repeat("x", 513) + `"}`, 400, "invalid", "id", nil},
		"reserved header":        {"POST", timers, `{"headers":{"content-type":"x"}}`, 400, "invalid", "", nil},
		"debounce without id":    {"POST", timers, `{"debounce":{"delay":"1s"}}`, 400, "invalid", "debounce", nil},
		"nested field":           {"POST", timers, `{"id":"x","debounce":{"wait":"1s"}}`, 400, "invalid", "debounce.wait", nil},
		"item of a batch":        {"POST", timers + ":batch", `{"timers":[{},{"in":"x"}]}`, 400, "invalid", "timers[1].in", nil},
		"no list":                {"POST", timers + ":batch", `{"timers":{}}`, 400, "invalid", "timers", nil},
		"long batch":             {"POST", timers + ":batch", `{"timers":[{}` + strings.Repeat(",{}", 1000) + `]}`, 400, "invalid", "timers", nil},
		"many values":            {"POST", timers + ":cancel", `{"ids":["x"` + strings.Repeat(`,"x"`, 200_000) + `]}`, 400, "invalid", "", nil},
		"no id to cancel":        {"POST", timers + ":cancel", `{"ids":[1]}`, 400, "invalid", "ids[0]", nil},
		"no new instant":         {"PATCH", timers + "/x", `{}`, 400, "invalid", "", nil},
		"long page":              {"GET", timers + "?limit=1001", "", 400, "invalid", "limit", nil},
		"negative page":          {"GET", timers + "?limit=-1", "", 400, "invalid", "limit", nil},
		"no cursor":              {"GET", timers + "?after=x", "", 400, "invalid", "", nil},
		"no truth value":         {"GET", timers + "?running=1", "", 400, "invalid", "running", nil},
		"unknown parameter":      {"GET", timers + "?page=1", "", 400, "invalid", "page", nil},
		"repeated parameter":     {"GET", timers + "?limit=1&limit=2", "", 400, "invalid", "limit", nil},
		"bad query":              {"GET", timers + "?limit=%zz", "", 400, "invalid", "", nil},
		"parameter of a body":    {"POST", timers + "?id=x", `{}`, 400, "invalid", "id", nil},
		"timeout":                {"GET", topic + "/stats?timeout=1h", "", 400, "invalid", "timeout", nil},
		"negative timeout":       {"GET", topic + "/stats?timeout=-1s", "", 400, "invalid", "timeout", nil},
		"more negative timeout":  {"GET", topic + "/stats?timeout=-5s", "", 400, "invalid", "timeout", nil},
		"empty key":              {"POST", timers, `{}`, 400, "invalid", "Idempotency-Key", []string{"Idempotency-Key", ""}},
		"long key":               {"POST", timers, `{}`, 400, "invalid", "Idempotency-Key", []string{"Idempotency-Key", strings.Repeat("x", 257)}},
		"path without UTF-8":     {"GET", timers + "/%ff", "", 400, "invalid", "id", nil},
		"form":                   {"POST", timers, `id=x`, 415, "unsupported_media_type", "Content-Type", []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"text":                   {"POST", timers, `{}`, 415, "unsupported_media_type", "Content-Type", []string{"Content-Type", "text/plain"}},
		"another charset":        {"POST", timers, `{}`, 415, "unsupported_media_type", "Content-Type", []string{"Content-Type", "application/json; charset=latin1"}},
		"compressed":             {"POST", timers, `{}`, 415, "unsupported_media_type", "Content-Encoding", []string{"Content-Encoding", "gzip"}},
		"body of a GET":          {"GET", timers, `{}`, 400, "invalid", "", nil},
		"no path":                {"GET", "/v2", "", 404, "no_route", "", nil},
		"no verb":                {"POST", timers + "/x:explode", "", 405, "method_not_allowed", "", nil},
		"no method":              {"PUT", timers, "{}", 405, "method_not_allowed", "", nil},
		"no timer":               {"GET", timers + "/none", "", 404, "not_found", "", nil},
		"no timer to move":       {"PATCH", timers + "/none", `{"in":"1h"}`, 404, "not_found", "", nil},
		"no schedule":            {"POST", "/v1/schedules/none:run", "", 404, "no_schedule", "", nil},
		"no rule":                {"PUT", "/v1/schedules/x", `{"topic":"t","when":{}}`, 400, "invalid", "", nil},
		"wrong cron":             {"PUT", "/v1/schedules/x", `{"topic":"t","when":{"cron":"x"}}`, 400, "invalid", "", nil},
		"no fence":               {"POST", "/v1/gates/x:guard", `{"resource":"r","fence":-1}`, 400, "invalid", "fence", nil},
		"long turn":              {"POST", "/v1/gates/x/turns", `{"ttl":"48h"}`, 400, "invalid", "ttl", nil},
		"long wait for a turn":   {"POST", "/v1/gates/x/turns", `{"wait":"1h"}`, 400, "invalid", "wait", nil},
		"no token of a turn":     {"POST", "/v1/gates/x/turns/abc:extend", "", 400, "invalid", "token", nil},
		"unknown turn":           {"POST", "/v1/gates/x/turns/" + strings.Repeat("A", 22) + ":extend", "", 409, "turn_lost", "", nil},
		"many leases":            {"POST", topic + "/leases:claim", `{"max":1001}`, 400, "invalid", "max", nil},
		"short wait":             {"POST", topic + "/leases:claim", `{"wait":"1ms"}`, 400, "invalid", "wait", nil},
		"no token of a lease":    {"POST", topic + "/leases/abc:ack", "", 400, "invalid", "token", nil},
		"unknown lease":          {"POST", topic + "/leases/" + strings.Repeat("A", 32) + ":ack", "", 409, "lease_lost", "", nil},
		"negative delay":         {"POST", topic + "/leases/" + strings.Repeat("A", 32) + ":nack", `{"delay":"-1s"}`, 400, "invalid", "delay", nil},
		"short snooze":           {"POST", topic + "/leases/" + strings.Repeat("A", 32) + ":nack", `{"snooze":true}`, 400, "invalid", "delay", nil},
		"another site":           {"POST", timers, `{}`, 403, "forbidden", "", []string{"Sec-Fetch-Site", "cross-site"}},
		"another origin":         {"POST", timers, `{}`, 403, "forbidden", "", []string{"Origin", "https://attacker.example"}},
	} {
		a := n.http(t, c.method, c.path, c.body, c.headers...)
		require.Equal(t, c.status, a.status, "%s: %s", name, a.text)
		p := a.problem(t, c.status, c.code)
		field, _ := p["field"].(string)
		require.Equal(t, c.field, field, "%s: %s", name, a.text)
		if c.status == http.StatusMethodNotAllowed {
			require.NotEmpty(t, a.header.Get("Allow"), name)
		}
	}
	st, err := n.Client().Stats(t.Context(), n.topic.Name())
	require.NoError(t, err)
	require.Zero(t, st.Total)
}

func TestLargeBodiesAreRefused(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.MaxMessage = 64 << 10
	n := serveHTTP(t, cfg)
	timers := "/v1/topics/" + n.topic.Name() + "/timers"
	n.http(t, "POST", timers, `{"body":"`+strings.Repeat("x", 64<<10)+`"}`).problem(t, http.StatusRequestEntityTooLarge, "too_large")
	r := n.request(t, "POST", timers, secret, `{"body":"`+strings.Repeat("x", 64<<10)+`"}`)
	r.ContentLength, r.GetBody = -1, nil
	do(t, r).problem(t, http.StatusRequestEntityTooLarge, "too_large")
}

func TestDescriptionNeedsNoToken(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	doc := do(t, n.request(t, "GET", "/openapi.json", "", ""))
	require.Equal(t, "3.1.0", doc.ok(t)["openapi"])
	page := do(t, n.request(t, "GET", "/docs", "", ""))
	page.ok(t)
	require.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, page.text, "<script")
	require.Contains(t, page.text, `id="gate_held"`)
	require.Contains(t, page.text, "POST /v1/topics/{topic}/leases:claim")
	do(t, n.request(t, "POST", "/docs", "", "")).problem(t, http.StatusMethodNotAllowed, "method_not_allowed")
}

// Without credentials, a page of the web that a browser shows cannot use a node on
// loopback under a name of its own.
func TestNodeWithoutCredentialsAnswersOnLoopback(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, remote.Config{})
	stats := "/v1/topics/" + n.topic.Name() + "/stats"
	n.http(t, "GET", stats, "").ok(t)
	r := n.request(t, "GET", stats, "", "")
	r.Host = "attacker.example"
	do(t, r).problem(t, http.StatusForbidden, "forbidden")
}
