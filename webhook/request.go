package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/wakebell/wakebell"
)

// The headers of a request, in the form that http.Header has.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

const (
	untyped         = "application/octet-stream"
	longestType     = 256 // bytes of a content type that is sent
	messageIDPrefix = "msg_"
	messageIDBytes  = 18 // of the hash: no two messages share them, and Base64 needs no padding
)

// request returns the request for an attempt.
func (w *Webhook) request(ctx context.Context, t wakebell.Timer[[]byte]) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.target.String(), bytes.NewReader(t.Body))
	if err != nil {
		return nil, errors.New("the URL cannot be used") // the error would show it
	}
	id, now := messageID(t.Meta), time.Now()
	r.Header = http.Header{
		"User-Agent":       {"wakebell-webhook"},
		"Content-Type":     {contentType(t.ContentType)},
		headerID:           {id},
		headerTimestamp:    {strconv.FormatInt(now.Unix(), 10)},
		headerSignature:    {sign(w.secrets.current(now), id, now.Unix(), t.Body)},
		"Wakebell-Topic":   {encode(t.Topic)},
		"Wakebell-Id":      {encode(t.ID)},
		"Wakebell-Attempt": {strconv.Itoa(t.Attempt)},
		"Wakebell-Due":     {t.Activation.UTC().Format(time.RFC3339Nano)},
	}
	if w.cfg.Key != nil {
		if key := w.cfg.Key(ctx, t.Meta); key != "" {
			r.Header.Set("Wakebell-Key", encode(key))
		}
	}
	return r, nil
}

// messageID identifies what a timer was scheduled for: its attempts have the same instant
// of activation, and a timer that takes its id later has another one. A hash has no dot,
// which separates the signed parts.
func messageID(m wakebell.Meta) string {
	text := strconv.Itoa(len(m.Topic)) + ":" + m.Topic + m.ID + "@" + strconv.FormatInt(m.Activation.UnixMicro(), 10)
	hash := sha256.Sum256([]byte(text))
	return messageIDPrefix + base64.RawURLEncoding.EncodeToString(hash[:messageIDBytes])
}

func contentType(of string) string {
	if of == "" || len(of) > longestType || !httpguts.ValidHeaderFieldValue(of) {
		return untyped
	}
	return of
}

// encode percent-encodes the bytes that a header cannot have, or that end or begin one
// without a trace.
func encode(s string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '%' {
			out.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}
