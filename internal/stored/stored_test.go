package stored

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const someID = "0123456789abcdef0123456789abcdef"

func encode(payload []byte) string { return Prefix + `{"id":"` + someID + `",` + Rest(payload) }

func TestRestEscapesAsPythonDoes(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		"plain /~":                   `"payload":"plain /~"}`,
		"\"\\\n\r\t\b\f\x00\x1f\x7f": `"payload":"\"\\\n\r\t\b\f\u0000\u001f\u007f"}`,
		"ü\u2028😀":                   `"payload":"\u00fc\u2028\ud83d\ude00"}`,
		"\xff\x00":                   `"payload_hex":"ff00"}`,
		"":                           `"payload":""}`,
	} {
		require.Equal(t, want, Rest([]byte(payload)))
	}
}

func TestDecodeOtherWriters(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"raw":                                  " raw",
		Prefix + `{"payload":"a\/b","id":"x"}`: "x a/b",
		Prefix + ` {"id": "x", "payload_hex": "6162"}`: "x ab",
		encode([]byte("a")):                            someID + " a",
	} {
		id, payload, err := Decode(value)
		require.NoError(t, err, value)
		require.Equal(t, want, id+" "+string(payload))
	}
	for _, body := range []string{``, `[]`, `{}`, `{"id":"a"}`, `{"id":1,"payload":""}`, `{"id":"a","payload":"","payload_hex":""}`, `{"id":"a","payload_hex":"0"}`} {
		_, _, err := Decode(Prefix + body)
		require.ErrorIs(t, err, ErrMalformed, body)
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
		id, back, err := Decode(value)
		require.NoError(t, err)
		require.Equal(t, someID, id)
		require.Equal(t, string(payload), string(back))
	})
}

// Decode never panics, and its errors wrap ErrMalformed.
func FuzzDecode(f *testing.F) {
	f.Add("")
	f.Add(encode([]byte("a")))
	f.Add(Prefix + `{"id":"a","payload":"\ud83d"}`)
	f.Fuzz(func(t *testing.T, value string) {
		id, payload, err := Decode(value)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			require.Empty(t, id+string(payload))
		}
	})
}
