package remote_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
)

func TestJoinsOverHTTP(t *testing.T) {
	t.Parallel()
	work := wakebell.NewTopic[string](redistest.Name(t))
	n := serveHTTP(t, withToken(), wakebell.HandleResult(work, func(_ context.Context, timer wakebell.Timer[string]) (int, error) {
		return len(timer.Body), nil
	}))
	timers := func(topic string) string { return "/v1/topics/" + topic + "/timers" }
	join := timers(n.topic.Name()) + "/r/join"
	part := func(id string) string { return `{"topic": "` + work.Name() + `", "id": "` + id + `"}` }
	for range 2 { // it is sent again
		n.http(t, "POST", timers(n.topic.Name()), `{"id": "r", "in": "1h", "open": true, "after": [`+part("none")+`]}`, "Idempotency-Key", "k").ok(t)
	}
	n.http(t, "POST", timers(work.Name()), `{"id": "a", "body": "rows", "part_of": [{"topic": "`+n.topic.Name()+`", "id": "r"}]}`).ok(t)
	n.http(t, "POST", timers(work.Name()), `{"id": "b", "in": "1h", "body": "rows"}`).ok(t)
	n.http(t, "POST", join+":add", `{"parts": [`+part("b")+`]}`).ok(t)
	eventually(t, func() bool { return n.http(t, "GET", join, "").ok(t)["join"].(map[string]any)["done"] == 1.0 })
	n.http(t, "POST", join+":close", "").ok(t)
	n.http(t, "POST", join+":add", `{"parts": [`+part("c")+`]}`).problem(t, http.StatusBadRequest, "invalid")
	require.Equal(t, false, n.http(t, "GET", join, "").ok(t)["join"].(map[string]any)["open"])

	page := n.http(t, "GET", join+"/parts?limit=2", "").ok(t)
	parts := page["parts"].([]any)
	require.Len(t, parts, 2)
	require.Equal(t, "missing", parts[0].(map[string]any)["end"])
	require.InDelta(t, 4, parts[1].(map[string]any)["result"].(map[string]any)["content"].(map[string]any)["body"], 0)
	parts = n.http(t, "GET", join+"/parts?after="+page["next"].(string), "").ok(t)["parts"].([]any)
	require.Len(t, parts, 1)
	require.Equal(t, "b", parts[0].(map[string]any)["part"].(map[string]any)["id"])
	parts = n.http(t, "GET", join+"/parts?running=true", "").ok(t)["parts"].([]any)
	require.Len(t, parts, 1)

	problem := n.http(t, "POST", join+":cancel", "").problem(t, http.StatusBadRequest, "invalid")
	require.Contains(t, problem["detail"], "topics: ")
	require.InDelta(t, 1, n.http(t, "POST", join+":cancel", `{"topics": ["`+work.Name()+`"]}`).ok(t)["parts"], 0)
	n.http(t, "GET", timers(n.topic.Name())+"/r", "").problem(t, http.StatusNotFound, "not_found")
	n.http(t, "GET", timers(n.topic.Name())+"/x/join", "").problem(t, http.StatusNotFound, "not_found")
	n.http(t, "POST", timers(n.topic.Name()), `{"id": "r", "in": "1h", "after": [{"topic": "`+strings.Repeat("x", 600)+`", "id": "a"}]}`).problem(t, http.StatusBadRequest, "invalid")
	n.http(t, "POST", timers(n.topic.Name()), `{"id": "r", "in": "1h", "join_name": "mine"}`).problem(t, http.StatusBadRequest, "invalid")
}
