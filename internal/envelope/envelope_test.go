package envelope_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/envelope"
)

// frame builds a version 1 envelope from explicit lengths.
func frame(count int, body string, parts ...string) []byte {
	block := strings.Join(parts, "")
	b := []byte("\x89BIN\r\n\x1a\n\x00\x01")
	b = binary.BigEndian.AppendUint32(b, 18)
	b = binary.BigEndian.AppendUint32(b, uint32(20+len(block)))
	b = binary.BigEndian.AppendUint16(b, uint16(count))
	return append(append(b, block...), body...)
}

// part is a key or a value that is preceded by the length n.
func part(n int, s string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(n))) + s
}

func TestEncodeOrderAndReplacement(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   envelope.Envelope
		want []byte
	}{
		{
			"all fields, then the user headers",
			envelope.Envelope{
				CorrelationID: "c", ContentType: "t", ReplyTo: "r",
				Headers: []envelope.Header{{Key: "x", Value: "1"}}, Body: []byte("b"),
			},
			frame(4, "b", part(14, "correlation_id"), part(1, "c"), part(12, "content-type"), part(1, "t"),
				part(8, "reply_to"), part(1, "r"), part(1, "x"), part(1, "1")),
		},
		{
			"a user header replaces a field in place",
			envelope.Envelope{
				CorrelationID: "c", ContentType: "t",
				Headers: []envelope.Header{{Key: "x", Value: "1"}, {Key: "content-type", Value: "u"}},
			},
			frame(3, "", part(14, "correlation_id"), part(1, "c"), part(12, "content-type"), part(1, "u"),
				part(1, "x"), part(1, "1")),
		},
		{
			"a user header stays in place if the field is empty",
			envelope.Envelope{
				CorrelationID: "c",
				Headers:       []envelope.Header{{Key: "x", Value: "1"}, {Key: "content-type", Value: "u"}},
			},
			frame(3, "", part(14, "correlation_id"), part(1, "c"), part(1, "x"), part(1, "1"),
				part(12, "content-type"), part(1, "u")),
		},
		{
			"a duplicate name has the first place and the last value",
			envelope.Envelope{Headers: []envelope.Header{{Key: "x", Value: "1"}, {Key: "y"}, {Key: "x", Value: "2"}}},
			frame(2, "", part(1, "x"), part(1, "2"), part(1, "y"), part(0, "")),
		},
		{
			"names are case-sensitive",
			envelope.Envelope{ContentType: "t", Headers: []envelope.Header{{Key: "Content-Type", Value: "u"}}},
			frame(2, "", part(12, "content-type"), part(1, "t"), part(12, "Content-Type"), part(1, "u")),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := envelope.Encode(tt.in)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)

			appended, err := tt.in.AppendTo([]byte("before"))
			require.NoError(t, err)
			require.Equal(t, "before"+string(tt.want), string(appended))
		})
	}
}

func TestEncodeBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", envelope.MaxHeaderBytes)

	ok, err := envelope.Encode(envelope.Envelope{Headers: []envelope.Header{{Key: long, Value: long}}})
	require.NoError(t, err)
	back, err := envelope.Decode(ok)
	require.NoError(t, err)
	require.Equal(t, []envelope.Header{{Key: long, Value: long}}, back.Headers)

	got, err := envelope.Envelope{Headers: []envelope.Header{{Key: long + "k"}}}.AppendTo([]byte("before"))
	require.ErrorIs(t, err, envelope.ErrTooLarge)
	require.ErrorContains(t, err, "the key of header")
	require.Less(t, len(err.Error()), 300)
	require.Equal(t, "before", string(got))

	_, err = envelope.Encode(envelope.Envelope{CorrelationID: long + "k"})
	require.ErrorContains(t, err, `the value of header "correlation_id"`)

	headers := make([]envelope.Header, envelope.MaxHeaders)
	for i := range headers {
		headers[i] = envelope.Header{Key: fmt.Sprint(i), Value: "v"}
	}
	most, err := envelope.Encode(envelope.Envelope{Headers: headers})
	require.NoError(t, err)
	back, err = envelope.Decode(most)
	require.NoError(t, err)
	require.Equal(t, headers, back.Headers)

	_, err = envelope.Encode(envelope.Envelope{CorrelationID: "one more", Headers: headers})
	require.ErrorIs(t, err, envelope.ErrTooLarge)
	require.ErrorContains(t, err, "65536 headers, at most 65535")
}

// The 65,535 headers share one string of 65,535 bytes: the encoded size would be
// over 4 GiB, the memory in use is not.
func TestEncodeTotalBound(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("v", envelope.MaxHeaderBytes)
	headers := make([]envelope.Header, envelope.MaxHeaders)
	for i := range headers {
		headers[i] = envelope.Header{Key: fmt.Sprint(i), Value: value}
	}
	_, err := envelope.Encode(envelope.Envelope{Headers: headers[:65534], Body: []byte(value)})
	require.ErrorIs(t, err, envelope.ErrTooLarge)
	require.ErrorContains(t, err, "4294967295 in all")
}

func TestDecodeLengthsInCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		payload []byte
		want    []envelope.Header
	}{
		{
			"lengths in characters",
			frame(2, "b", part(1, "k"), part(4, "Jörg"), part(1, "x"), part(1, "1")),
			[]envelope.Header{{Key: "k", Value: "Jörg"}, {Key: "x", Value: "1"}},
		},
		{
			"a character beyond the basic plane counts once",
			frame(1, "b", part(2, "ключ"[:4]), part(2, "😀😀")),
			[]envelope.Header{{Key: "кл", Value: "😀😀"}},
		},
		{
			"invalid UTF-8 beside lengths in characters",
			frame(2, "b", part(1, "k"), part(1, "ö"), part(1, "x"), part(2, "\xff\xfe")),
			[]envelope.Header{{Key: "k", Value: "ö"}, {Key: "x", Value: "\xff\xfe"}},
		},
		{
			"lengths in bytes",
			frame(1, "b", part(1, "k"), part(5, "Jörg")),
			[]envelope.Header{{Key: "k", Value: "Jörg"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := envelope.Decode(tt.payload)
			require.NoError(t, err)
			require.Equal(t, tt.want, e.Headers)
			require.Equal(t, "b", string(e.Body))
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	t.Parallel()
	head := "\x89BIN\r\n\x1a\n\x00\x01"
	valid := frame(1, "", part(1, "k"), part(1, "v"))
	tests := map[string]string{
		"version only":              head,
		"cut in the count":          string(valid[:19]),
		"cut in the headers":        string(valid[:22]),
		"more headers than bytes":   string(frame(2, "b", part(1, "k"), part(1, "v"))),
		"fewer headers than bytes":  string(frame(0, "b", part(1, "k"), part(1, "v"))),
		"length beyond the headers": string(frame(1, "body", part(1, "k"), part(9, "v"))),
		"headers inside the magic":  head + "\x00\x00\x00\x04\x00\x00\x00\x14\x00\x00",
		"body before the headers":   head + "\x00\x00\x00\x12\x00\x00\x00\x12\x00\x00",
		"body beyond the end":       head + "\x00\x00\x00\x12\xff\xff\xff\xff\x00\x00",
		"headers beyond the end":    head + "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00",
		"legacy, not hex":           `{"b":"zz"}`,
		"legacy, half a byte":       `{"b":"abc","ct":"text/plain"}`,
		"legacy, not a string":      `{"b":5}`,
	}
	for name, payload := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := envelope.Decode([]byte(payload))
			require.ErrorIs(t, err, envelope.ErrMalformed)
			require.Equal(t, envelope.Envelope{Body: []byte(payload)}, e)
		})
	}
}

func TestDecodeLegacyAndRaw(t *testing.T) {
	t.Parallel()
	raw := func(s string) envelope.Envelope { return envelope.Envelope{Body: []byte(s)} }
	tests := []struct {
		name, payload string
		want          envelope.Envelope
	}{
		{"hex, no content type", `{"b":"6869","ct":null}`, raw("hi")},
		{"hex, upper case", `{"b":"4A4b"}`, raw("JK")},
		{"hex takes precedence over data", `{"data":"x","b":"6869"}`, raw("hi")},
		{"b counts only if the payload starts with a brace", ` {"b":"6869"}`, raw(` {"b":"6869"}`)},
		{"keys are case-sensitive", `{"B":"6869"}`, raw(`{"B":"6869"}`)},
		{"data without headers", `{"data":"ü"}`, raw("ü")},
		{"data with null headers", ` {"data":"x","headers":null}`, raw("x")},
		{"data that is not text", `{"data":{"a":1},"headers":{}}`, raw(`{"data":{"a":1},"headers":{}}`)},
		{"headers that are not an object", `{"data":"x","headers":[1]}`, raw(`{"data":"x","headers":[1]}`)},
		{"invalid UTF-8", "{\"data\":\"\xff\"}", raw("{\"data\":\"\xff\"}")},
		{"not JSON", `{"b":"6869"`, raw(`{"b":"6869"`)},
		{"another version", "\x89BIN\r\n\x1a\n\x00\x02{}", raw("\x89BIN\r\n\x1a\n\x00\x02{}")},
		{"half the magic", "\x89BIN", raw("\x89BIN")},
		{
			"data with headers in order, numbers as written",
			`{"data":"x","headers":{"z":1.50,"reply_to":"r","a":"A","z":"last"}}`,
			envelope.Envelope{
				ReplyTo: "r", Body: []byte("x"),
				Headers: []envelope.Header{{Key: "z", Value: "last"}, {Key: "a", Value: "A"}},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e, err := envelope.Decode([]byte(tt.payload))
			require.NoError(t, err)
			require.Equal(t, tt.want, e)
		})
	}
}

func TestAllocations(t *testing.T) {
	plain := envelope.Envelope{CorrelationID: "inv-42", ContentType: "application/json", Body: []byte(`{"a":1}`)}
	tagged := plain
	tagged.Headers = []envelope.Header{{Key: "x-tenant", Value: "acme"}, {Key: "x-trace", Value: "1"}}
	for want, e := range []envelope.Envelope{plain, tagged} {
		payload, err := envelope.Encode(e)
		require.NoError(t, err)
		require.InDelta(t, 1, testing.AllocsPerRun(100, func() { _, _ = envelope.Encode(e) }), 0)
		require.InDelta(t, want+1, testing.AllocsPerRun(100, func() { _, _ = envelope.Decode(payload) }), 0)
	}
}

func benchmarkEnvelope() envelope.Envelope {
	return envelope.Envelope{
		CorrelationID: "inv-42", ContentType: "application/json",
		Headers: []envelope.Header{{Key: "x-tenant", Value: "acme"}},
		Body:    []byte(strings.Repeat("x", 100)),
	}
}

func BenchmarkEncode(b *testing.B) {
	e := benchmarkEnvelope()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = envelope.Encode(e)
	}
}

func BenchmarkDecode(b *testing.B) {
	payload, err := envelope.Encode(benchmarkEnvelope())
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = envelope.Decode(payload)
	}
}
