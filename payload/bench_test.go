package payload_test

import (
	"context"
	"strings"
	"testing"

	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// BenchmarkChain encodes and decodes a body of JSON.
func BenchmarkChain(b *testing.B) {
	encrypt, compress := payload.Encrypt(key(b, "k")), payload.Compress(1)
	for name, c := range map[string]*payload.Chain{
		"encrypt": {Codecs: []payload.Codec{encrypt}}, "compress": {Codecs: []payload.Codec{compress}}, "both": {Codecs: []payload.Codec{compress, encrypt}},
	} {
		for size, body := range map[string][]byte{"200B": document(200), "20KiB": document(20 << 10)} {
			b.Run(name+"/"+size, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				send := c.Encode(func(context.Context, []*wakebelltype.Outgoing) error { return nil })
				for b.Loop() {
					o := outgoing(wakebelltype.OutgoingTimer, body)
					if err := send(b.Context(), []*wakebelltype.Outgoing{o}); err != nil {
						b.Fatal(err)
					}
					if _, err := c.Decode(b.Context(), payload.Encoded{Topic: o.Topic, ID: o.ID, Headers: o.Headers, Body: o.Body}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func document(n int) []byte {
	const part = `{"number":"2026-1174","cents":99500,"to":"Ada Lovelace, 12 St James Square","paid":false},`
	return []byte(strings.Repeat(part, n/len(part)+1)[:n])
}
