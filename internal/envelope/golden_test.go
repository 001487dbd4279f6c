package envelope_test

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/envelope"
)

// goldenCase has the bytes that the Python peer wrote, and its own decoding of
// them.
type goldenCase struct {
	Name  string `json:"name"`
	Input struct {
		ReplyTo string `json:"reply_to"`
	} `json:"input"`
	TimerID       string            `json:"timer_id"`
	PublishError  string            `json:"publish_error"`
	PayloadHex    string            `json:"payload_hex"`
	ParsedHeaders map[string]string `json:"parsed_headers"`
	ParsedBodyHex string            `json:"parsed_body_hex"`
	CorrelationID string            `json:"correlation_id_seen"`
}

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden-timers.json")
	require.NoError(t, err)
	var file struct {
		Cases []goldenCase `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	require.Len(t, file.Cases, 36)
	return file.Cases
}

func (c goldenCase) payload(t testing.TB) []byte {
	t.Helper()
	payload, err := hex.DecodeString(c.PayloadHex)
	require.NoError(t, err)
	return payload
}

// body is the body that the peer decoded. The file abbreviates long ones.
func (c goldenCase) body(t testing.TB) []byte {
	t.Helper()
	if c.ParsedBodyHex == "len 102400" {
		return []byte(strings.Repeat("x", 102400))
	}
	body, err := hex.DecodeString(c.ParsedBodyHex)
	require.NoError(t, err)
	return body
}

// userHeaders are the user headers of a case, in the order of the payload.
var userHeaders = map[string][]envelope.Header{
	"headers":             {{Key: "x-tenant", Value: "acme"}, {Key: "x-empty"}},
	"headers_bytes_value": {{Key: "x-b", Value: "\x01\x02"}},
	"headers_non_ascii":   {{Key: "x-name", Value: "Jörg"}},
}

func TestGoldenDecode(t *testing.T) {
	t.Parallel()
	for _, c := range goldenCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if c.PublishError != "" {
				require.Empty(t, c.PayloadHex, "the peer wrote nothing")
				return
			}
			e, err := envelope.Decode(c.payload(t))
			require.NoError(t, err)
			require.Equal(t, string(c.body(t)), string(e.Body))
			require.Equal(t, userHeaders[c.Name], e.Headers)

			timerID := c.TimerID
			if timerID == "" {
				timerID = "T" // the id that the file's reading cases use
			}
			require.Equal(t, c.CorrelationID, cmp.Or(e.CorrelationID, timerID))
			require.Equal(t, c.ParsedHeaders[envelope.HeaderCorrelationID], e.CorrelationID)
			require.Equal(t, c.ParsedHeaders[envelope.HeaderReplyTo], e.ReplyTo)
			require.Equal(t, c.ParsedHeaders[envelope.HeaderContentType], e.ContentType)
		})
	}
}

func TestGoldenEncode(t *testing.T) {
	t.Parallel()
	for _, c := range goldenCases(t) {
		if c.PublishError != "" || strings.HasPrefix(c.Name, "read_") {
			continue // the peer refuses to write it, or only reads it
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			e := envelope.Envelope{
				CorrelationID: c.ParsedHeaders[envelope.HeaderCorrelationID],
				ContentType:   c.ParsedHeaders[envelope.HeaderContentType],
				ReplyTo:       c.Input.ReplyTo,
				Headers:       userHeaders[c.Name],
				Body:          c.body(t),
			}
			got, err := envelope.Encode(e)
			require.NoError(t, err)

			want := c.payload(t)
			if c.Name == "headers_non_ascii" {
				// The one intended difference: the length of "Jörg" is in bytes.
				i := strings.LastIndex(string(want), "\x00\x04J")
				want[i+1] = 5
			}
			require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got))
		})
	}
}

// A header that the peer refuses for its length is refused here too.
func TestGoldenHeaderTooLong(t *testing.T) {
	t.Parallel()
	_, err := envelope.Encode(envelope.Envelope{Headers: []envelope.Header{{Key: "x", Value: strings.Repeat("y", 65536)}}})
	require.ErrorIs(t, err, envelope.ErrTooLarge)
	require.ErrorContains(t, err, `"x" has 65536 bytes, at most 65535`)
}
