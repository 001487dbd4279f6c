package remote_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTimersOverHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	timers := "/v1/topics/" + n.topic.Name() + "/timers"
	got := n.http(t, "POST", timers, `{"id":"inv-42","in":"72h","body":{"cents":995},"headers":{"a":"b"}}`).ok(t)
	require.Equal(t, "inv-42", got["id"])
	require.Equal(t, "created", got["outcome"])
	due, err := time.Parse(time.RFC3339Nano, got["due"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(72*time.Hour), due, time.Hour)
	require.Equal(t, "kept_pending", n.http(t, "POST", timers, `{"id":"inv-42","in":"PT1H","if_exists":"keep"}`).ok(t)["outcome"])

	read := n.http(t, "GET", timers+"/inv-42", "")
	require.Equal(t, strconv.Itoa(len(read.text)), read.header.Get("Content-Length"), "an answer is not sent in chunks")
	timer := read.ok(t)["timer"].(map[string]any)
	require.Equal(t, "pending", timer["state"])
	content := timer["content"].(map[string]any)
	require.Equal(t, map[string]any{"cents": 995.0}, content["body"])
	require.Equal(t, "application/json", content["content_type"])
	require.Equal(t, map[string]any{"a": "b"}, content["headers"])

	batch := n.http(t, "POST", timers+":batch", `{"timers":[{"id":"a/b:run","in":"1h","content_type":"text/plain","body":"hi"},{"id":"c","at":"2100-01-01T00:00:00Z","body_base64":"AAE="}]}`).ok(t)
	require.Len(t, batch["timers"], 2)
	text := n.http(t, "GET", timers+"/a%2Fb%3Arun", "").ok(t)["timer"].(map[string]any)["content"].(map[string]any)
	require.Equal(t, "hi", text["body"])
	bytes := n.http(t, "GET", timers+"/c", "").ok(t)["timer"].(map[string]any)["content"].(map[string]any)
	require.Equal(t, "AAE=", bytes["body_base64"])

	seen := []any{}
	for after := ""; ; {
		page := n.http(t, "GET", timers+"?limit=1&after="+after, "").ok(t)
		for _, timer := range page["timers"].([]any) {
			seen = append(seen, timer.(map[string]any)["id"])
		}
		next, more := page["next"]
		if !more {
			break
		}
		after = next.(string)
	}
	require.Equal(t, []any{"a/b:run", "inv-42", "c"}, seen)
	require.Len(t, n.http(t, "GET", timers+"?due_before=2030-01-01T00:00:00Z", "").ok(t)["timers"], 2)

	require.Equal(t, "moved", n.http(t, "PATCH", timers+"/inv-42", `{"in":"2h"}`).ok(t)["outcome"])
	require.Equal(t, "pending", n.http(t, "POST", timers+"/inv-42:run", "").ok(t)["found"])
	require.InDelta(t, 3, n.http(t, "GET", "/v1/topics/"+n.topic.Name()+"/stats", "").ok(t)["stats"].(map[string]any)["total"], 0)
	require.Equal(t, []any{"pending"}, n.http(t, "DELETE", timers+"/inv-42", "").ok(t)["found"])
	require.Equal(t, []any{"pending", "absent"}, n.http(t, "POST", timers+":cancel", `{"ids":["c","inv-42"]}`).ok(t)["found"])
	n.http(t, "GET", timers+"/inv-42", "").problem(t, http.StatusNotFound, "not_found")
}

func TestIdempotencyKeysOverHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	timers, queue := "/v1/topics/"+n.topic.Name()+"/timers", redistest.Name(t)
	first := n.http(t, "POST", timers, `{"in":"1h"}`, "Idempotency-Key", "k").ok(t)
	require.Equal(t, first["id"], n.http(t, "POST", timers, `{"in":"1h"}`, "Idempotency-Key", "k").ok(t)["id"])
	n.http(t, "POST", timers, `{"in":"2h"}`, "Idempotency-Key", "k").problem(t, http.StatusConflict, "conflict")
	require.Equal(t, "Idempotency-Key", n.http(t, "PATCH", timers+"/x", `{"in":"2h"}`, "Idempotency-Key", "k").problem(t, http.StatusBadRequest, "invalid")["field"])
	for range 2 {
		n.http(t, "POST", "/v1/queues/"+queue+"/messages", `{"messages":[{"body":1},{"body":"x"}]}`, "Idempotency-Key", "k").ok(t)
	}
	st, err := n.Client().Queues().Stats(t.Context(), wakebelltype.QueueKeys{Name: queue})
	require.NoError(t, err)
	require.EqualValues(t, 2, st.Pending)
	n.http(t, "POST", "/v1/queues/"+queue+"/messages", `{"messages":[{"body":2}]}`, "Idempotency-Key", "k").ok(t)
	st, err = n.Client().Queues().Stats(t.Context(), wakebelltype.QueueKeys{Name: queue})
	require.NoError(t, err)
	require.EqualValues(t, 3, st.Pending, "another message under the same key is stored")
}

func TestRecurringSchedulesOverHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withToken())
	name := redistest.Name(t)
	path := "/v1/schedules/" + name
	n.http(t, "PUT", path, `{"topic":"`+n.topic.Name()+`","when":{"cron":"0 9 * * *","zone":"Europe/Berlin"},"body":{"a":1}}`).ok(t)
	state := n.http(t, "GET", path, "").ok(t)["schedule"].(map[string]any)
	require.Equal(t, "Europe/Berlin", state["recurrence"].(map[string]any)["zone"])
	require.Len(t, n.http(t, "GET", path+"/preview?count=3", "").ok(t)["instants"], 3)
	require.InDelta(t, 1, n.http(t, "POST", path+":run", "").ok(t)["run"], 0)
	n.http(t, "POST", path+":enable", `{"enabled":false}`).ok(t)
	require.Equal(t, true, n.http(t, "GET", path, "").ok(t)["schedule"].(map[string]any)["paused"])
	require.NotEmpty(t, n.http(t, "GET", "/v1/schedules?limit=1000", "").ok(t)["schedules"])
	n.http(t, "DELETE", path, "").ok(t)
	n.http(t, "GET", path, "").problem(t, http.StatusNotFound, "no_schedule")
}

func TestTurnsOverHTTP(t *testing.T) {
	t.Parallel()
	n := serveHTTP(t, withMallory())
	gate := "/v1/gates/" + redistest.Name(t)
	turn := n.http(t, "POST", gate+"/turns", `{"ttl":"1m"}`).ok(t)
	token, fence := turn["token"].(string), jsonOf(t, turn["fence"])
	n.http(t, "POST", gate+"/turns", `{"wait":"0s"}`).problem(t, http.StatusConflict, "gate_held")
	n.http(t, "POST", gate+"/turns", `{"wait":"10ms"}`).problem(t, http.StatusConflict, "gate_held")
	n.http(t, "POST", gate+":guard", `{"resource":"row","fence":`+fence+`}`).ok(t)
	for range 2 {
		require.NotEmpty(t, n.http(t, "POST", gate+"/turns/"+token+":extend", "").ok(t)["ttl"])
	}
	do(t, n.request(t, "POST", gate+"/turns/"+token+":release", malloryToken, "")).problem(t, http.StatusConflict, "turn_lost")
	n.http(t, "POST", gate+"/turns/"+token+":release", "").ok(t)
	n.http(t, "POST", gate+"/turns/"+token+":release", "").problem(t, http.StatusConflict, "turn_lost")
	n.http(t, "POST", gate+"/turns/"+token+":extend", "").problem(t, http.StatusConflict, "turn_lost")
	next := n.http(t, "POST", gate+"/turns", `{"wait":"0s","ttl":"1h"}`).ok(t)
	n.http(t, "POST", gate+":guard", `{"resource":"row","fence":`+jsonOf(t, next["fence"])+`}`).ok(t)
	n.http(t, "POST", gate+":guard", `{"resource":"row","fence":`+fence+`}`).problem(t, http.StatusPreconditionFailed, "fence_stale")
	n.http(t, "POST", gate+"/turns/"+next["token"].(string)+":release", "").ok(t)
}
