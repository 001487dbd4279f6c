package payload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

func remark(e *payload.Encoded, old, with string) {
	e.Headers[0].Value = strings.Replace(e.Headers[0].Value, old, with, 1)
}

// FuzzDecode decodes hostile marks and bodies: no panic, and nothing above the limit.
func FuzzDecode(f *testing.F) {
	c := full(f, memory{}).WithLimit(10_000)
	for _, body := range []string{"", "short", strings.Repeat("long ", 200)} {
		for _, kind := range kinds {
			e := encode(f, c, outgoing(kind, []byte(body)))
			value := ""
			if kind != wakebelltype.OutgoingMessage {
				value = e.Headers[0].Value
			}
			f.Add(value, e.Body)
		}
	}
	f.Add("1;for=timer gzip;size=99999999999999999999", []byte("\x1f\x8b"))
	f.Add("1;for=timer claim-check;ref=../../etc;size=1", []byte{})
	f.Fuzz(func(t *testing.T, value string, body []byte) {
		e := payload.Encoded{Topic: "invoices", ID: "inv-42", Body: body}
		if value != "" {
			e.Headers = []wakebelltype.Header{{Key: payload.Header, Value: value}}
		}
		_ = payload.Description(e.Headers, e.Body)
		d, err := c.Decode(t.Context(), e)
		if err == nil && payload.Marked(e.Headers, e.Body) {
			require.LessOrEqual(t, len(d.Body), 10_000)
		}
	})
}
