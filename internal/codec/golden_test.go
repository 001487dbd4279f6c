package codec_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/codec"
	"github.com/wakebell/wakebell/internal/envelope"
)

// golden returns the envelopes that the peer writes or reads, by case.
func golden(t *testing.T) map[string]envelope.Envelope {
	t.Helper()
	raw, err := os.ReadFile("../envelope/testdata/golden-timers.json")
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Name         string `json:"name"`
			PayloadHex   string `json:"payload_hex"`
			PublishError string `json:"publish_error"`
		} `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	envelopes := make(map[string]envelope.Envelope)
	for _, c := range file.Cases {
		if c.PublishError != "" {
			continue // a case about headers, without a payload
		}
		payload, err := hex.DecodeString(c.PayloadHex)
		require.NoError(t, err)
		envelopes[c.Name], err = envelope.Decode(payload)
		require.NoError(t, err)
	}
	return envelopes
}

type order struct {
	ID     int    `json:"order_id"`
	Status string `json:"status"`
}

type moments struct {
	T       time.Time `json:"t"`
	Date    string    `json:"d"`
	Delta   string    `json:"td"`
	Decimal string    `json:"dec"`
	UUID    string    `json:"u"`
	Bytes   string    `json:"b"`
}

// same returns a case in which v encodes to the peer's bytes and decodes from
// them.
func same[T any](v T) func(*testing.T, envelope.Envelope) {
	return func(t *testing.T, e envelope.Envelope) {
		t.Helper()
		c := codec.For[T]()
		body, contentType, err := c.Encode(v)
		require.NoError(t, err)
		require.Equal(t, string(e.Body), string(body))
		require.Equal(t, e.ContentType, contentType)
		reads(v)(t, e)
	}
}

// reads returns a case that decodes to v.
func reads[T any](v T) func(*testing.T, envelope.Envelope) {
	return func(t *testing.T, e envelope.Envelope) {
		t.Helper()
		got, err := codec.For[T]().Decode(e.Body, e.ContentType)
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
}

func all(checks ...func(*testing.T, envelope.Envelope)) func(*testing.T, envelope.Envelope) {
	return func(t *testing.T, e envelope.Envelope) {
		t.Helper()
		for _, check := range checks {
			check(t, e)
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	checks := map[string]func(*testing.T, envelope.Envelope){
		"str":                         all(same("hello"), same[any]("hello")),
		"str_unicode":                 same("Привет ☃ 😀"),
		"str_empty":                   all(same(""), same[any]("")),
		"dict":                        all(same(order{42, "due"}), same(&order{42, "due"}), same[any](map[string]any{"order_id": 42.0, "status": "due"})),
		"dict_empty":                  all(same(map[string]any{}), same(struct{}{})),
		"list":                        all(same([]any{1.0, "two", nil, 3.5}), same[any]([]any{1.0, "two", nil, 3.5})),
		"int":                         all(same(7), same(uint8(7)), reads(7.0), reads[any](7.0)),
		"float":                       all(same(1.5), same(float32(1.5)), same[any](1.5)),
		"float_whole":                 all(same(3.0), same[any](3.0)),
		"float_big":                   all(same(1e20), same[any](1e20)),
		"bool_true":                   all(same(true), same[any](true)),
		"bool_false":                  all(same(false), same[any](false)),
		"none":                        all(same[any](nil), same((*order)(nil)), same(json.RawMessage(nil)), reads(""), reads(struct{}{})),
		"bytes":                       all(same([]byte("\x00\xff{\x89BIN")), same[any]([]byte("\x00\xff{\x89BIN"))),
		"bytes_empty":                 all(same([]byte{}), reads[any](nil)),
		"nan":                         unreadable,
		"datetime_in_dict":            same(moments{at, "2030-01-02", "PT1M30S", "1.10", "00000000-0000-0000-0000-000000000001", "raw"}),
		"headers":                     same("h"),
		"headers_bytes_value":         same("h"),
		"headers_non_ascii":           same("h"),
		"correlation_id":              same("c"),
		"timer_id_empty_gives_uuid":   same("z"),
		"large_100k":                  same(strings.Repeat("x", 102400)),
		"router_prefix":               same("p"),
		"topic_with_colon_space":      same("k"),
		"no_orjson_apply_types_false": all(same(map[string][]int{"a": {1, 2}}), same(json.RawMessage(`{"a":[1,2]}`))),
		"activate_in_zero":            same("now"),
		"activate_in_negative":        same("past"),
		"read_legacy_v0_json":         all(reads("hello"), reads[any]("hello")),
		"read_legacy_faststream_json": all(same("hi"), reads[any]("hi")),
		"read_raw_text":               all(reads("plain text"), reads[any]([]byte("plain text"))),
		"read_raw_json":               all(reads[any](map[string]any{"a": 1.0}), reads(`{"a": 1}`)),
		"read_empty":                  all(same[any](nil), same([]byte{})),
		"read_bad_version":            reads[any]([]byte("\x89BIN\r\n\x1a\n\x00\x02")),
	}
	envelopes := golden(t)
	require.Len(t, checks, len(envelopes))
	for name, e := range envelopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, checks, name)
			checks[name](t, e)
		})
	}
}

// unreadable checks the NaN that the peer writes but cannot read itself.
func unreadable(t *testing.T, e envelope.Envelope) {
	t.Helper()
	_, err := codec.For[map[string]float64]().Decode(e.Body, e.ContentType)
	require.ErrorIs(t, err, codec.ErrBody)
	_, err = codec.For[any]().Decode(e.Body, e.ContentType)
	require.ErrorIs(t, err, codec.ErrBody)
}
