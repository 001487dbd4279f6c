package envelope_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/envelope"
)

// A decoded envelope can be encoded, and decodes to the same again.
func FuzzDecode(f *testing.F) {
	for _, c := range goldenCases(f) {
		if c.PublishError == "" && c.Name != "large_100k" {
			f.Add(c.payload(f))
		}
	}
	f.Add([]byte(`{"data":"x","headers":{"a":1,"reply_to":"r"}}`))
	f.Add(frame(2, "b", part(1, "k"), part(4, "Jörg"), part(1, "x"), part(1, "1")))
	f.Fuzz(func(t *testing.T, payload []byte) {
		before := string(payload)
		e, err := envelope.Decode(payload)
		require.Equal(t, before, string(payload), "the payload is not changed")
		if err != nil {
			require.ErrorIs(t, err, envelope.ErrMalformed)
			require.Equal(t, envelope.Envelope{Body: payload}, e)
		}
		written, err := envelope.Encode(e)
		if err != nil {
			require.ErrorIs(t, err, envelope.ErrTooLarge)
			return
		}
		again, err := envelope.Decode(written)
		require.NoError(t, err)
		requireSame(t, e, again)
	})
}

// An encoded envelope decodes to the same, with duplicate names merged as
// documented.
func FuzzRoundTrip(f *testing.F) {
	f.Add("c", "text/plain", "", "x-name", "Jörg", "content-type", "u", []byte("body"))
	f.Add("", "", "r", "k", "\xff\xfe", "k", "", []byte(nil))
	f.Add("ö", "ö", "ö", "ö", "ö", "", "ö", []byte("\x89BIN\r\n\x1a\n\x00\x01"))
	f.Fuzz(func(t *testing.T, correlation, contentType, replyTo, k1, v1, k2, v2 string, body []byte) {
		in := envelope.Envelope{
			CorrelationID: correlation, ContentType: contentType, ReplyTo: replyTo,
			Headers: []envelope.Header{{Key: k1, Value: v1}, {Key: k2, Value: v2}}, Body: body,
		}
		written, err := envelope.Encode(in)
		if err != nil {
			require.ErrorIs(t, err, envelope.ErrTooLarge)
			return
		}
		got, err := envelope.Decode(written)
		require.NoError(t, err)
		requireSame(t, merged(in), got)
	})
}

// merged applies the rule for duplicate names in the simplest way.
func merged(e envelope.Envelope) envelope.Envelope {
	headers := e.Headers
	e.Headers = nil
next:
	for _, h := range headers {
		switch h.Key {
		case envelope.HeaderCorrelationID:
			e.CorrelationID = h.Value
			continue
		case envelope.HeaderContentType:
			e.ContentType = h.Value
			continue
		case envelope.HeaderReplyTo:
			e.ReplyTo = h.Value
			continue
		}
		for i := range e.Headers {
			if e.Headers[i].Key == h.Key {
				e.Headers[i].Value = h.Value
				continue next
			}
		}
		e.Headers = append(e.Headers, h)
	}
	return e
}

// requireSame compares envelopes. A nil body equals an empty one.
func requireSame(t *testing.T, want, got envelope.Envelope) {
	t.Helper()
	require.Equal(t, string(want.Body), string(got.Body))
	want.Body, got.Body = nil, nil
	require.Equal(t, want, got)
}
