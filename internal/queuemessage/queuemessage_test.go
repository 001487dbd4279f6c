package queuemessage

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

const someID = "0123456789abcdef0123456789abcdef"

func encode(payload []byte) string { return Prefix + `{"id":"` + someID + `",` + Rest(payload, nil) }

func TestRestEscapesAsPythonDoes(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		"plain /~":                   `"payload":"plain /~"}`,
		"\"\\\n\r\t\b\f\x00\x1f\x7f": `"payload":"\"\\\n\r\t\b\f\u0000\u001f\u007f"}`,
		"ü\u2028😀":                   `"payload":"\u00fc\u2028\ud83d\ude00"}`,
		"\xff\x00":                   `"payload_hex":"ff00"}`,
		"":                           `"payload":""}`,
	} {
		require.Equal(t, want, Rest([]byte(payload), nil))
	}
}

func TestDecodeOtherWriters(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"raw":                                  " raw",
		Prefix + `{"payload":"a\/b","id":"x"}`: "x a/b",
		Prefix + ` {"id": "x", "payload_hex": "6162"}`:  "x ab",
		Prefix + `{"id":"x","payload":"a","headers":7}`: "x a",
		encode([]byte("a")):                             someID + " a",
	} {
		m, err := Decode(value)
		require.NoError(t, err, value)
		require.Equal(t, want, m.ID+" "+string(m.Payload))
		require.Empty(t, m.Headers)
	}
	for _, body := range []string{``, `[]`, `{}`, `{"id":"a"}`, `{"id":1,"payload":""}`, `{"id":"a","payload":"","payload_hex":""}`, `{"id":"a","payload_hex":"0"}`} {
		_, err := Decode(Prefix + body)
		require.ErrorIs(t, err, ErrMalformed, body)
	}
}

func TestHeadersAreBehindPayload(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"", "plain", "\xff"} {
		headers := []wakebelltype.Header{{Key: "a", Value: "ü\"\x00"}, {Key: "traceparent", Value: "00-1-2-01"}}
		value := Prefix + `{"id":"` + someID + `",` + Rest([]byte(payload), headers)
		require.True(t, json.Valid([]byte(strings.TrimPrefix(value, Prefix))), value)
		require.Contains(t, value, `,"headers":{"a":"\u00fc\"\u0000","traceparent":"00-1-2-01"}}`)
		m, err := Decode(value)
		require.NoError(t, err)
		require.Equal(t, Message{ID: someID, Payload: []byte(payload), Headers: headers}, m)
	}
}

// An encoded message is ASCII and valid JSON, and decodes to the same payload.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", "a", "ü\x00\"", "\xff", `","payload":"`, "😀"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		value := encode(payload)
		require.True(t, json.Valid([]byte(strings.TrimPrefix(value, Prefix))))
		for i := range len(value) {
			require.Less(t, value[i], byte(utf8.RuneSelf))
		}
		back, err := Decode(value)
		require.NoError(t, err)
		require.Equal(t, someID, back.ID)
		require.Equal(t, string(payload), string(back.Payload))
	})
}

// Decode never panics, and its errors wrap ErrMalformed.
func FuzzDecode(f *testing.F) {
	f.Add("")
	f.Add(encode([]byte("a")))
	f.Add(Prefix + `{"id":"a","payload":"\ud83d"}`)
	f.Fuzz(func(t *testing.T, value string) {
		m, err := Decode(value)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			require.Zero(t, m)
		}
	})
}
