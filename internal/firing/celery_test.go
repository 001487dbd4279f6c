package firing

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/tracing"
)

// The message for the golden entry equals Celery's, except for values that differ in
// each message.
func TestCeleryMessageIsGoldenOne(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../recur/testdata/golden-beat.json")
	require.NoError(t, err)
	type step struct {
		Op   string
		Keys map[string]struct{ Value json.RawMessage }
	}
	var golden struct{ Steps []step }
	require.NoError(t, json.Unmarshal(file, &golden))
	i := slices.IndexFunc(golden.Steps, func(s step) bool {
		return s.Op == `one tick dispatching "send" to the redis broker`
	})
	require.GreaterOrEqual(t, i, 0)
	var fields [][2]string
	require.NoError(t, json.Unmarshal(golden.Steps[i].Keys["redbeat:send"].Value, &fields))
	var list []string
	require.NoError(t, json.Unmarshal(golden.Steps[i].Keys["q1\x06\x163"].Value, &list))

	e, err := recur.Read(recur.Raw{Definition: []byte(fields[0][1])}, "send", time.UTC)
	require.NoError(t, err)
	due := time.Date(2026, 11, 21, 7, 50, 19, 912770000, time.UTC)
	run, err := celeryRun(&e, due, "send@x", nil)
	require.NoError(t, err)
	require.Equal(t, "q1\x06\x163", run.Queue)
	require.Equal(t, "_kombu.binding.q1", run.Binding)
	require.Equal(t, "q1\x06\x16\x06\x16q1", run.Member)
	require.Equal(t, likeGolden(t, list[0]), likeGolden(t, string(run.Payload)))
	again, err := celeryRun(&e, due, "send@x", nil)
	require.NoError(t, err)
	require.Equal(t, run, again, "the same run is the same message")
}

// likeGolden returns a message with its body decoded, without ids and host names.
func likeGolden(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	headers, properties := m["headers"].(map[string]any), m["properties"].(map[string]any)
	for _, key := range []string{"id", "root_id", "origin", "argsrepr", "kwargsrepr"} {
		require.NotEmpty(t, headers[key], key)
		headers[key] = ""
	}
	for _, key := range []string{"correlation_id", "reply_to", "delivery_tag"} {
		require.NotEmpty(t, properties[key], key)
		properties[key] = ""
	}
	body, err := base64.StdEncoding.DecodeString(m["body"].(string))
	require.NoError(t, err)
	var decoded any
	require.NoError(t, json.Unmarshal(body, &decoded))
	m["body"] = decoded
	return m
}

func TestCeleryOptions(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 11, 21, 7, 50, 19, 0, time.UTC)
	run := func(options string) (map[string]any, error) {
		e := recur.Entry{Definition: recur.Definition{Name: "n", Task: "t", Options: json.RawMessage(options)}}
		r, err := celeryRun(&e, due, "n@x", nil)
		if err != nil {
			return nil, err
		}
		var m map[string]any
		require.NoError(t, json.Unmarshal(r.Payload, &m))
		m["queue"] = r.Queue
		return m, nil
	}
	m, err := run(`{"priority":9,"countdown":60,"expires":"2026-11-21T08:00:00Z","routing_key":"r","time_limit":30}`)
	require.NoError(t, err)
	require.Equal(t, "celery\x06\x169", m["queue"])
	headers := m["headers"].(map[string]any)
	require.Equal(t, "2026-11-21T07:51:19.000000+00:00", headers["eta"])
	require.Equal(t, "2026-11-21T08:00:00.000000+00:00", headers["expires"])
	require.Equal(t, []any{30.0, nil}, headers["timelimit"])
	require.Equal(t, "581000", m["properties"].(map[string]any)["expiration"])
	m, err = run(`{"expires":{"__type__":"datetime","year":2026,"month":11,"day":21,"hour":8,"timezone":0.0}}`)
	require.NoError(t, err)
	require.Equal(t, "2026-11-21T08:00:00.000000+00:00", m["headers"].(map[string]any)["expires"])
	for _, bad := range []string{
		`[]`, `{"queue":""}`, `{"serializer":"yaml"}`, `{"expires":"soon"}`, `{"expires":[1]}`, `{"expires":""}`, `{"expires":-3e9}`,
		`{"expires":1e300}`, `{"expires":252000000000}`, `{"countdown":-3e9}`, `{"countdown":1e12}`, `{"eta":"soon"}`, `{"eta":5}`,
	} {
		_, err := run(bad)
		require.ErrorIs(t, err, errOptions, bad)
	}
}

// Instants are those that Celery 5 makes of the same options: texts without a zone are in UTC, what
// is in the past is sent with an expiration of 0, and a countdown of 0 is none.
func TestCeleryInstants(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 11, 21, 7, 50, 19, 0, time.UTC)
	for options, want := range map[string][3]any{ // eta, expires, expiration
		`{"expires":"2026-11-21T08:00:00"}`:            {nil, "2026-11-21T08:00:00.000000+00:00", "581000"},
		`{"expires":"2026-11-21T08:00:00.5"}`:          {nil, "2026-11-21T08:00:00.500000+00:00", "581500"},
		`{"expires":"2026-11-21 09:00+01:00"}`:         {nil, "2026-11-21T08:00:00.000000+00:00", "581000"},
		`{"expires":"20261121T080000z"}`:               {nil, "2026-11-21T08:00:00.000000+00:00", "581000"},
		`{"expires":"2026-11-21T0800-0000"}`:           {nil, "2026-11-21T08:00:00.000000+00:00", "581000"},
		`{"expires":"2026-11-21T03-05"}`:               {nil, "2026-11-21T08:00:00.000000+00:00", "581000"},
		`{"expires":"2026-11-21"}`:                     {nil, "2026-11-21T00:00:00.000000+00:00", "0"},
		`{"expires":-5}`:                               {nil, "2026-11-21T07:50:14.000000+00:00", "0"},
		`{"expires":0}`:                                {nil, "2026-11-21T07:50:19.000000+00:00", "0"},
		`{"expires":1.5}`:                              {nil, "2026-11-21T07:50:20.500000+00:00", "1500"},
		`{"expires":12000000000}`:                      {nil, "2407-02-26T05:10:19.000000+00:00", "12000000000000"},
		`{"expires":null,"eta":null,"countdown":null}`: {nil, nil, nil},
		`{"countdown":0}`:                              {nil, nil, nil},
		`{"countdown":-5}`:                             {"2026-11-21T07:50:14.000000+00:00", nil, nil},
		`{"eta":"2026-11-21T08:00:00"}`:                {"2026-11-21T08:00:00.000000+00:00", nil, nil},
		`{"eta":"2026-11-21T08:00:00","countdown":60}`: {"2026-11-21T07:51:19.000000+00:00", nil, nil},
		`{"eta":{"__type__":"datetime","year":2026,"month":11,"day":21,"hour":8,"timezone":"UTC"}}`: {"2026-11-21T08:00:00.000000+00:00", nil, nil},
	} {
		e := recur.Entry{Definition: recur.Definition{Name: "n", Task: "t", Options: json.RawMessage(options)}}
		run, err := celeryRun(&e, due, "n@x", nil)
		require.NoError(t, err, options)
		var m celeryMessage
		require.NoError(t, json.Unmarshal(run.Payload, &m))
		require.Equal(t, want, [3]any{m.Headers["eta"], m.Headers["expires"], m.Properties["expiration"]}, options)
		require.NoError(t, knownOptions(e.Definition.Options))
	}
}

// Texts of ISO 8601 are those that Python 3.11's datetime.fromisoformat reads, and a lower-case z.
func TestISOTimes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // empty: no time
		"2026-W48-1": "2026-11-23T00:00:00Z", "2026W481": "2026-11-23T00:00:00Z", "2026-W48": "2026-11-23T00:00:00Z", "2026W48": "2026-11-23T00:00:00Z",
		"2026-W48-1T10:00": "2026-11-23T10:00:00Z", "2026W481T1000+0100": "2026-11-23T09:00:00Z", "2026-W48T10:00": "2026-11-23T10:00:00Z",
		"2026W48T10:00": "2026-11-23T10:00:00Z", "2026-W48-7": "2026-11-29T00:00:00Z", "2026-W48-1t08": "2026-11-23T08:00:00Z",
		"2026-W53-1": "2026-12-28T00:00:00Z", "2026-W01-1": "2025-12-29T00:00:00Z", "2026-W53-7": "2027-01-03T00:00:00Z", "2020-W53-5": "2021-01-01T00:00:00Z",
		"2026-11-21x08:00": "2026-11-21T08:00:00Z", "2026-11-21_08:00:00,5": "2026-11-21T08:00:00.5Z", "2026-11-21日08:00": "2026-11-21T08:00:00Z",
		"2026-W54-1": "", "2026-W00-1": "", "2026-W48-8": "", "2026-W48-0": "", "2025-W53-1": "", "2026-w48-1": "", "2026-W4-1": "",
		"2026": "", "2026-11": "", "202611": "", "2026-325": "", "2026-11-21T": "", "2026-11-21T24:00": "", "2026-11-21Z": "", "2026-1-2": "", "": "",
	} {
		got, ok := isoTime(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, got.UTC().Format(time.RFC3339Nano), text)
		}
	}
}

// The messages carry the spans of their runs where OpenTelemetry's instrumentation of
// Celery reads them.
func TestCeleryMessagesCarrySpans(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		w.engine(func(c *Config) {
			c.Maker.Celery, c.Maker.Tracer = true, tracing.New(tracing.Config{Provider: provider})
		})
		w.python("a", 5)
		w.advance(11 * time.Second)
		sent := w.rdb.LRange(t.Context(), "celery", 0, -1).Val()
		require.Len(t, sent, 2)
		require.Len(t, spans.Ended(), 2)
		for i, text := range sent {
			var m celeryMessage
			require.NoError(t, json.Unmarshal([]byte(text), &m))
			span := spans.Ended()[len(sent)-1-i] // the newest message is the first
			require.Equal(t, "fire a", span.Name())
			require.Contains(t, span.Attributes(), attribute.String("messaging.destination.name", "celery"))
			require.Equal(t, fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID()), m.Headers["traceparent"])
			require.Equal(t, "topic", m.Headers["task"])
		}
	})
}

// A propagator cannot replace the headers of Celery.
func TestCeleryKeepsItsHeaders(t *testing.T) {
	t.Parallel()
	e := recur.Entry{Definition: recur.Definition{Name: "n", Task: "t"}}
	run, err := celeryRun(&e, time.Unix(0, 0), "n@x", map[string]string{"task": "other", "eta": "now", "baggage": "a=b"})
	require.NoError(t, err)
	var m celeryMessage
	require.NoError(t, json.Unmarshal(run.Payload, &m))
	require.Equal(t, "t", m.Headers["task"])
	require.Nil(t, m.Headers["eta"])
	require.Equal(t, "a=b", m.Headers["baggage"])
}

// Seconds until a task expires count from when it is sent, as in Celery: the workers would discard
// a late or backfilled run otherwise.
func TestLateCeleryRunDoesNotExpireBeforeItIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.rdb.HSet(t.Context(), "redbeat:c", "definition", `{"name":"c","task":"t","options":{"expires":30,"countdown":10},"schedule":60,"enabled":true}`)
		w.rdb.ZAdd(t.Context(), "redbeat::schedule", redis.Z{Score: 0, Member: "redbeat:c"})
		beat := func() {
			stop := w.engine(func(c *Config) { c.Maker.Celery = true })
			synctest.Wait()
			stop()
		}
		beat()
		w.rdb.Del(t.Context(), "celery")
		sent := func() {
			t.Helper()
			payload, err := w.rdb.LPop(t.Context(), "celery").Result()
			require.NoError(t, err)
			var m celeryMessage
			require.NoError(t, json.Unmarshal([]byte(payload), &m))
			for header, left := range map[string]time.Duration{"expires": 30 * time.Second, "eta": 10 * time.Second} {
				at, err := time.Parse(time.RFC3339, m.Headers[header].(string))
				require.NoError(t, err)
				require.WithinDuration(t, time.Now().Add(left), at, time.Second, header)
			}
			require.Equal(t, "30000", m.Properties["expiration"])
		}
		w.advance(100 * time.Second) // no beat runs
		beat()
		sent()

		_, _, err := Manual{Store: w.store, Maker: Maker{Store: w.store, Limit: 1 << 20, Celery: true}}.
			Backfill(t.Context(), "c", w.began.Add(-2*time.Minute), w.began.Add(-time.Minute), 1)
		require.NoError(t, err)
		sent()
	})
}
