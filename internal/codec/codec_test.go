package codec_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell/internal/codec"
)

type (
	note   string
	digest []byte
	ratio  float64
	// shout implements json.Marshaler, so it is JSON although it is a string.
	shout string
)

func (s *shout) MarshalJSON() ([]byte, error) { return []byte(`{"shout":"` + string(*s) + `"}`), nil }

// encodes returns a case of TestEncode.
func encodes[T any](v T, body, contentType string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		got, gotType, err := codec.For[T]().Encode(v)
		require.NoError(t, err)
		require.Equal(t, body, string(got))
		require.Equal(t, contentType, gotType)
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	text := "by pointer"
	encoded, err := proto.Marshal(wrapperspb.String("x"))
	require.NoError(t, err)
	tests := map[string]func(*testing.T){
		"named string":             encodes(note("n"), "n", "text/plain"),
		"named string in any":      encodes[any](note("n"), "n", "text/plain"),
		"named bytes":              encodes(digest("\x00"), "\x00", ""),
		"named float":              encodes(ratio(2), "2.0", "application/json"),
		"pointer to string":        encodes(&text, "by pointer", "text/plain"),
		"marshaler on pointer":     encodes(shout("a"), `{"shout":"a"}`, "application/json"),
		"marshaler in any":         encodes[any](shout("a"), `{"shout":"a"}`, "application/json"),
		"bytes with a marshaler":   encodes(net.IPv4(10, 0, 0, 1), `"10.0.0.1"`, "application/json"),
		"nil pointer to string":    encodes((*string)(nil), "", ""),
		"nil pointer in any":       encodes[any]((*order)(nil), "", ""),
		"nil bytes":                encodes([]byte(nil), "", ""),
		"nil map":                  encodes(map[string]int(nil), "null", "application/json"),
		"nil raw message":          encodes(json.RawMessage(nil), "", ""),
		"raw message is unchanged": encodes(json.RawMessage(` {"a" : "<" } `), ` {"a" : "<" } `, "application/json"),
		"protobuf":                 encodes(wrapperspb.String("x"), string(encoded), "application/x-protobuf"),
		"protobuf as interface":    encodes[proto.Message](wrapperspb.String("x"), string(encoded), "application/x-protobuf"),
		"protobuf in any":          encodes[any](wrapperspb.String("x"), string(encoded), "application/x-protobuf"),
		"empty protobuf":           encodes(&wrapperspb.StringValue{}, "", "application/x-protobuf"),
		"nil protobuf":             encodes((*wrapperspb.StringValue)(nil), "", ""),
		"no HTML escaping":         encodes([]string{"<a&b>"}, `["<a&b>"]`, "application/json"),
		"raw line separators":      encodes([]string{"\u2028\u2029"}, "[\"\u2028\u2029\"]", "application/json"),
		"a backslash before u2028": encodes([]string{`\u2028`}, `["\\u2028"]`, "application/json"),
		"backslash and separator":  encodes([]string{"\\\u2028\"\\"}, "[\"\\\\\u2028\\\"\\\\\"]", "application/json"),
		"a float in a slice":       encodes([]float64{3, 1e20}, "[3,100000000000000000000]", "application/json"),
	}
	for name, check := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

func TestEncodeFloats(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		0: "0.0", -1: "-1.0", 0.1: "0.1", 123456789.25: "123456789.25", 1e15: "1000000000000000.0",
		1e16: "1e+16", -1.5e300: "-1.5e+300", 1e-5: "0.00001", 1e-7: "1e-7", 2.5e-10: "2.5e-10",
		math.MaxFloat64: "1.7976931348623157e+308",
	} {
		encodes(f, want, "application/json")(t)
	}
	encodes(float32(0.1), "0.1", "application/json")(t)
}

func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	fails := func(err error, text string) {
		t.Helper()
		require.ErrorIs(t, err, codec.ErrBody)
		require.ErrorContains(t, err, text)
	}
	_, _, err := codec.For[float64]().Encode(math.NaN())
	fails(err, "encode float64: NaN and the infinities")
	_, _, err = codec.For[any]().Encode(map[string]float64{"x": math.Inf(1)})
	fails(err, "NaN and the infinities")
	_, _, err = codec.For[string]().Encode("\xff")
	fails(err, "not UTF-8")
	_, _, err = codec.For[json.RawMessage]().Encode(json.RawMessage("{"))
	fails(err, "not JSON")
	_, _, err = codec.For[json.RawMessage]().Encode(json.RawMessage{})
	fails(err, "not JSON")
	_, _, err = codec.For[chan int]().Encode(nil)
	fails(err, "encode chan int")
	_, _, err = codec.For[*wrapperspb.StringValue]().Encode(wrapperspb.String("\xff"))
	fails(err, "StringValue")
	var loop any
	loop = &loop
	_, _, err = codec.For[any]().Encode(loop)
	fails(err, "cycle")
}

// decodes returns a case of TestDecode.
func decodes[T any](body, contentType string, want T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		got, err := codec.For[T]().Decode([]byte(body), contentType)
		require.NoError(t, err)
		if message, ok := any(want).(proto.Message); ok {
			require.True(t, proto.Equal(message, any(got).(proto.Message)))
			return
		}
		require.Equal(t, want, got)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	text := "t"
	encoded, err := proto.Marshal(wrapperspb.String("x"))
	require.NoError(t, err)
	pb := string(encoded)
	tests := map[string]func(*testing.T){
		"text with parameters":       decodes("ü", "text/plain; charset=utf-8", "ü"),
		"text of another kind":       decodes("# t", "text/markdown", "# t"),
		"text that is a JSON string": decodes(`"a\n"`, "text/plain", `"a\n"`),
		"string, JSON":               decodes(`"a\n"`, "application/json", "a\n"),
		"string, none, JSON string":  decodes(`"a\n"`, "", "a\n"),
		"string, none, broken JSON":  decodes(`"a`, "", `"a`),
		"string, none, number":       decodes("12", "", "12"),
		"named string":               decodes("n", "text/plain", note("n")),
		"named string, JSON":         decodes(`"n"`, "application/json", note("n")),
		"pointer to string":          decodes("t", "text/plain", &text),
		"bytes, none":                decodes("\xff", "", []byte("\xff")),
		"bytes, JSON":                decodes("{}", "application/json", []byte("{}")),
		"bytes, text":                decodes("t", "text/plain", digest("t")),
		"struct, JSON by prefix":     decodes(`{"order_id":1}`, "Application/JSON; charset=utf-8", order{ID: 1}),
		"struct, none":               decodes(` {"order_id":1} `, "", order{ID: 1}),
		"struct, unknown field":      decodes(`{"order_id":1,"new":2}`, "", order{ID: 1}),
		"float of an integer":        decodes("3", "", ratio(3)),
		"any, other":                 decodes[any]("x", "image/png", []byte("x")),
		"any, protobuf":              decodes[any](pb, "application/x-protobuf", []byte(pb)),
		"any, none, null":            decodes[any]("null", "", nil),
		"any, none, not UTF-8":       decodes[any]("\"\xff\"", "", []byte("\"\xff\"")),
		"raw message":                decodes(`{"a": 1}`, "application/json", json.RawMessage(`{"a": 1}`)),
		"protobuf":                   decodes(pb, "application/x-protobuf", wrapperspb.String("x")),
		"protobuf, none":             decodes(pb, "", wrapperspb.String("x")),
		"protobuf, JSON":             decodes(`"x"`, "application/json", wrapperspb.String("x")),
		"protobuf, empty":            decodes("", "", &wrapperspb.StringValue{}),
	}
	for name, check := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

// refuses returns a case of TestDecodeErrors.
func refuses[T any](body, contentType string, texts ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		got, err := codec.For[T]().Decode([]byte(body), contentType)
		require.ErrorIs(t, err, codec.ErrBody)
		for _, text := range texts {
			require.ErrorContains(t, err, text)
		}
		require.Zero(t, got)
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T){
		"struct, text":        refuses[order]("x", "text/plain", "decode codec_test.order", "expected application/json", `found "text/plain" with 1 bytes`),
		"struct, not JSON":    refuses[order]("x", "", "expected JSON, found no content type"),
		"struct, empty":       refuses[order]("", "", "0 bytes"),
		"struct, half filled": refuses[order](`{"order_id":1,"status":2}`, "application/json", "status"),
		"struct, two values":  refuses[order](`{} {}`, "application/json"),
		"pointer, not JSON":   refuses[*order]("x", ""),
		"string, JSON object": refuses[string]("{}", "application/json", "expected JSON"),
		"string, not UTF-8":   refuses[string]("\xff", "text/plain", "not UTF-8"),
		"string, protobuf":    refuses[string]("x", "application/x-protobuf", "expected text/plain"),
		"JSON, not UTF-8":     refuses[[]string]("[\"\xff\"]", "application/json", "not UTF-8"),
		"int of a fraction":   refuses[int]("1.5", "application/json"),
		"int, overflow":       refuses[int8]("300", "application/json"),
		"any, broken JSON":    refuses[any]("{", "application/json"),
		"any, not UTF-8":      refuses[any]("\xff", "text/plain"),
		"interface":           refuses[fmt.Stringer]("{}", "application/json", "no concrete type"),
		"protobuf, broken":    refuses[*wrapperspb.StringValue]("\xff", "", "expected protobuf"),
		"protobuf, text":      refuses[*wrapperspb.StringValue]("x", "text/plain", "application/x-protobuf"),
		"protobuf, JSON":      refuses[*wrapperspb.StringValue]("{", "application/json", "as JSON"),
	}
	for name, check := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}
