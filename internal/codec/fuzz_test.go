package codec_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell/internal/codec"
)

// checkDecode decodes body as a T. A decoded value can be encoded, and decodes to
// the same again.
func checkDecode[T any](t *testing.T, body []byte, contentType string) {
	t.Helper()
	c := codec.For[T]()
	v, err := c.Decode(body, contentType)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrBody)
		return
	}
	written, writtenType, err := c.Encode(v)
	require.NoError(t, err)
	again, err := c.Decode(written, writtenType)
	require.NoError(t, err)
	if message, ok := any(v).(proto.Message); ok {
		require.True(t, proto.Equal(message, any(again).(proto.Message)))
		return
	}
	require.Equal(t, v, again)
}

func FuzzDecode(f *testing.F) {
	for _, contentType := range []string{"", "text/plain", "application/json; charset=utf-8", "application/x-protobuf", "image/png"} {
		for _, body := range []string{"", "x", "\xff", `"a"`, "3.0", "1e+20", `{"order_id":1,"status":"\u2028"}`, "[1,null]", "null", "\n\x01x"} {
			f.Add([]byte(body), contentType)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		checkDecode[string](t, body, contentType)
		checkDecode[note](t, body, contentType)
		checkDecode[[]byte](t, body, contentType)
		checkDecode[float64](t, body, contentType)
		checkDecode[int](t, body, contentType)
		checkDecode[order](t, body, contentType)
		checkDecode[*order](t, body, contentType)
		checkDecode[map[string]string](t, body, contentType)
		checkDecode[*wrapperspb.StringValue](t, body, contentType)
		checkDecodeAny(t, body, contentType)
	})
}

// checkDecodeAny is checkDecode for any, except for bytes: they have no content
// type, so bytes that happen to be JSON are decoded as JSON.
func checkDecodeAny(t *testing.T, body []byte, contentType string) {
	t.Helper()
	v, err := codec.For[any]().Decode(body, contentType)
	if err != nil {
		require.ErrorIs(t, err, codec.ErrBody)
		return
	}
	if v == nil || reflect.TypeOf(v) == reflect.TypeFor[[]byte]() {
		return
	}
	checkDecode[any](t, body, contentType)
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "\"a\"", "<&>", "\u2028\\u2028", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := codec.For[map[string]string]()
		body, contentType, err := c.Encode(map[string]string{"k": s})
		require.NoError(t, err)
		require.NotContains(t, string(body), "\n")
		got, err := c.Decode(body, contentType)
		require.NoError(t, err)
		require.Equal(t, string([]rune(s)), got["k"], "only invalid UTF-8 is replaced")
	})
}

func BenchmarkEncodeJSON(b *testing.B) {
	c := codec.For[order]()
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = c.Encode(order{42, "due"})
	}
}

func BenchmarkDecodeJSON(b *testing.B) {
	c := codec.For[order]()
	body := []byte(`{"order_id":42,"status":"due"}`)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Decode(body, codec.ContentTypeJSON)
	}
}

func BenchmarkDecodeText(b *testing.B) {
	c := codec.For[string]()
	body := []byte("hello")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Decode(body, codec.ContentTypeText)
	}
}
