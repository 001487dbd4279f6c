package schedule_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// goldenCase is what the Python peer wrote to Redis, or reads from it.
type goldenCase struct {
	Name          string            `json:"name"`
	ActivateAt    *time.Time        `json:"activate_at"`
	TimerID       string            `json:"timer_id"`
	Timeline      string            `json:"timeline_key"`
	Payloads      string            `json:"payloads_key"`
	Score         string            `json:"zscore"`
	PayloadHex    string            `json:"payload_hex"`
	Headers       map[string]string `json:"parsed_headers"`
	CorrelationID string            `json:"correlation_id_seen"`
	PublishError  string            `json:"publish_error"`
}

// goldenCases returns the cases that are about bytes. The peer refused to write the
// others.
func goldenCases(t *testing.T) (cases []goldenCase) {
	t.Helper()
	raw, err := os.ReadFile(stacktest.Root + "internal/envelope/testdata/golden-timers.json")
	require.NoError(t, err)
	var file struct {
		Cases []goldenCase `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file.Cases, 36)
	for _, c := range file.Cases {
		if c.PublishError == "" {
			cases = append(cases, c)
		}
	}
	return cases
}

// id returns the timer's id; the reading cases used T.
func (c goldenCase) id() string {
	switch c.TimerID {
	case "":
		return "T"
	case "<uuid4>": // it is the correlation id too
		return c.CorrelationID
	default:
		return c.TimerID
	}
}

func (c goldenCase) payload(t *testing.T) string {
	t.Helper()
	payload, err := hex.DecodeString(c.PayloadHex)
	require.NoError(t, err)
	return string(payload)
}

type goldenDelivery struct {
	body any
	meta wakebell.Meta
}

// goldenValue returns a case's body as a Go value of a suitable type.
type goldenValue struct {
	want    any
	handler func(topic string, got chan<- goldenDelivery) wakebell.Handler
	draft   func(topic string, opts ...wakebell.ScheduleOption) wakebell.Draft
	headers map[string]string
}

func golden[T any](v T, headers ...string) goldenValue {
	g := goldenValue{want: v, headers: map[string]string{}}
	var options []wakebell.ScheduleOption
	for i := 0; i < len(headers); i += 2 {
		g.headers[headers[i]] = headers[i+1]
		options = append(options, wakebell.Header(headers[i], headers[i+1]))
	}
	g.draft = func(topic string, opts ...wakebell.ScheduleOption) wakebell.Draft {
		return wakebell.NewTopic[T](topic).Draft(v, append(options, opts...)...)
	}
	g.handler = func(topic string, got chan<- goldenDelivery) wakebell.Handler {
		return wakebell.Handle(wakebell.NewTopic[T](topic), func(_ context.Context, timer wakebell.Timer[T]) error {
			got <- goldenDelivery{timer.Body, timer.Meta}
			return nil
		})
	}
	return g
}

type goldenOrder struct {
	ID     int    `json:"order_id"`
	Status string `json:"status"`
}

type goldenMoments struct {
	T       time.Time `json:"t"`
	Date    string    `json:"d"`
	Delta   string    `json:"td"`
	Decimal string    `json:"dec"`
	UUID    string    `json:"u"`
	Bytes   string    `json:"b"`
}

func goldenValues() map[string]goldenValue {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	return map[string]goldenValue{
		"str":                         golden("hello"),
		"str_unicode":                 golden("Привет ☃ 😀"),
		"str_empty":                   golden(""),
		"dict":                        golden(goldenOrder{42, "due"}),
		"dict_empty":                  golden(map[string]any{}),
		"list":                        golden([]any{1.0, "two", nil, 3.5}),
		"int":                         golden(7),
		"float":                       golden(1.5),
		"float_whole":                 golden(3.0),
		"float_big":                   golden(1e20),
		"bool_true":                   golden(true),
		"bool_false":                  golden(false),
		"none":                        golden[any](nil),
		"bytes":                       golden([]byte("\x00\xff{\x89BIN")),
		"bytes_empty":                 golden([]byte{}),
		"datetime_in_dict":            golden(goldenMoments{at, "2030-01-02", "PT1M30S", "1.10", "00000000-0000-0000-0000-000000000001", "raw"}),
		"headers":                     golden("h", "x-tenant", "acme", "x-empty", ""),
		"headers_bytes_value":         golden("h", "x-b", "\x01\x02"),
		"headers_non_ascii":           golden("h", "x-name", "Jörg"),
		"correlation_id":              golden("c"),
		"timer_id_empty_gives_uuid":   golden("z"),
		"large_100k":                  golden(strings.Repeat("x", 102400)),
		"router_prefix":               golden("p"),
		"topic_with_colon_space":      golden("k"),
		"no_orjson_apply_types_false": golden(map[string][]int{"a": {1, 2}}),
		"activate_in_zero":            golden("now"),
		"activate_in_negative":        golden("past"),
		"read_legacy_v0_json":         golden("hello"),
		"read_legacy_faststream_json": golden("hi"),
		"read_raw_text":               golden("plain text"),
		"read_raw_json":               golden(map[string]int{"a": 1}),
		"read_empty":                  golden[any](nil),
		"read_bad_version":            golden([]byte("\x89BIN\r\n\x1a\n\x00\x02")),
	}
}

// Timers that the peer wrote are delivered to a handler.
func TestGoldenTimersAreDelivered(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	values := goldenValues()
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			topic := redistest.Name(t)
			stacktest.Peer{Rdb: rdb, Topic: topic}.Publish(t, c.id(), c.payload(t), 1)
			if c.Name == "nan" { // the peer itself cannot read it
				sys := stacktest.Serve(t, rdb, golden(map[string]float64{}).handler(topic, nil))
				stacktest.Eventually(t, func() bool { return stacktest.Count(t, sys.Client(), topic) == 0 })
				require.Len(t, stacktest.DeadLetters(t, sys.Client(), topic), 1)
				return
			}
			require.Contains(t, values, c.Name)
			want, got := values[c.Name], make(chan goldenDelivery, 1)
			stacktest.Serve(t, rdb, want.handler(topic, got))
			timer := stacktest.Receive(t, got)
			require.Equal(t, want.want, timer.body)
			require.Equal(t, c.id(), timer.meta.ID)
			require.Equal(t, topic, timer.meta.Topic)
			require.Equal(t, c.CorrelationID, timer.meta.CorrelationID)
			require.Equal(t, c.Headers["content-type"], timer.meta.ContentType)
			require.Equal(t, want.headers, timer.meta.Headers.Map())
			require.Equal(t, 1, timer.meta.Attempt)
			require.Equal(t, time.Unix(1, 0).UTC(), timer.meta.Activation)
		})
	}
}

// A timer that Wakebell schedules has the same bytes in Redis as one of the peer.
func TestGoldenTimersAreScheduled(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	values := goldenValues()
	for _, c := range goldenCases(t) {
		if c.Name == "nan" || strings.HasPrefix(c.Name, "read_") {
			continue // refused here, or only read by the peer
		}
		t.Run(c.Name, func(t *testing.T) {
			require.Contains(t, values, c.Name)
			topic, prefix := strings.TrimPrefix(c.Timeline, "timers_timeline:"), ""
			if c.Name == "router_prefix" {
				prefix, topic = "my-service:", strings.TrimPrefix(topic, "my-service:")
			}
			options := []wakebell.ScheduleOption{wakebell.ID(c.id())}
			switch {
			case c.ActivateAt != nil:
				options = append(options, wakebell.At(*c.ActivateAt))
			case c.Name == "activate_in_negative":
				options = append(options, wakebell.In(-5*time.Second))
			}
			if c.Name == "correlation_id" {
				options = append(options, wakebell.CorrelationID(c.CorrelationID))
			}
			_, err := stacktest.Client(t, rdb, connection.Config{Prefix: prefix}).
				Schedule(t.Context(), values[c.Name].draft(topic, options...))
			require.NoError(t, err)

			want := c.payload(t)
			if c.Name == "headers_non_ascii" {
				// The only difference is the length of "Jörg", which is in bytes.
				want = strings.Replace(want, "\x00\x04J", "\x00\x05J", 1)
			}
			got, err := rdb.HGet(t.Context(), c.Payloads, c.id()).Result()
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString([]byte(want)), hex.EncodeToString([]byte(got)))
			if c.ActivateAt != nil {
				score, err := rdb.Eval(t.Context(), "return redis.call('ZSCORE', KEYS[1], ARGV[1])", []string{c.Timeline}, c.id()).Text()
				require.NoError(t, err)
				require.Equal(t, c.Score, score)
			}
		})
	}
}
