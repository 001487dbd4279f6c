package output

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/bodytext"
)

// Content is the printed content of a timer. One of Body and BodyBase64 is set:
// JSON as JSON, text as a string, an empty body without a content type as null.
// Anything else, and a body that contradicts its content type, is in base64.
type Content struct {
	ContentType   string            `json:"content_type"`
	Headers       map[string]string `json:"headers"`
	CorrelationID string            `json:"correlation_id"`
	ReplyTo       string            `json:"reply_to,omitempty"`
	Encoding      string            `json:"encoding,omitempty"` // of the stored body; empty: none
	Body          json.RawMessage   `json:"body,omitempty"`
	BodyBase64    *string           `json:"body_base64,omitempty"`

	sealed bool // the body is not decoded
}

// NewContent returns the printed content of a timer.
func NewContent(c wakebell.Content) Content {
	out := Content{
		ContentType:   c.ContentType,
		Headers:       c.Headers.Map(),
		CorrelationID: c.CorrelationID,
		ReplyTo:       c.ReplyTo,
	}
	media, _, err := mime.ParseMediaType(c.ContentType)
	if err != nil {
		media, _, _ = strings.Cut(c.ContentType, ";")
	}
	switch {
	case c.ContentType == "" && len(c.Body) == 0:
		out.Body = json.RawMessage("null")
	case media == "application/json" && utf8.Valid(c.Body) && json.Valid(c.Body):
		out.Body = c.Body
	case strings.HasPrefix(media, "text/") && utf8.Valid(c.Body):
		text, err := JSONLine(string(c.Body))
		if err == nil {
			out.Body = text
		}
	}
	if out.Body == nil {
		encoded := base64.StdEncoding.EncodeToString(c.Body)
		out.BodyBase64 = &encoded
	}
	return out
}

// Encoded returns the content with how its body is stored, and whether it was decoded.
func (c Content) Encoded(encoding string, decoded bool) Content {
	c.Encoding, c.sealed = encoding, encoding != "" && !decoded
	return c
}

// Shown returns the body as one line for the table output: of a large one the beginning,
// because lines for people are made visible and measured. JSON output has all of it.
func (c Content) Shown() string {
	if c.sealed {
		return c.Encoding
	}
	all, kind := strings.TrimSpace(string(c.Body)), ""
	if c.BodyBase64 != nil {
		all, kind = *c.BodyBase64, "base64 "
	}
	shown, cut := bodytext.Clip(all, bodytext.MaxShown)
	if cut {
		shown += fmt.Sprintf(" … (the first %d of %d bytes; JSON output has all)", len(shown), len(all))
	}
	return kind + shown
}

// Rows returns all fields for the table output, each a name and a value.
func (c Content) Rows() [][2]string {
	rows := [][2]string{
		{"correlation id", c.CorrelationID},
		{"content type", c.ContentType},
		{"reply to", c.ReplyTo},
	}
	for _, key := range slices.Sorted(maps.Keys(c.Headers)) {
		rows = append(rows, [2]string{"header " + key, c.Headers[key]})
	}
	if c.Encoding != "" {
		rows = append(rows, [2]string{"encoding", c.Encoding})
	}
	return append(rows, [2]string{"body", c.Shown()})
}

// MessageContent returns the content of a message, whose type is derived from its bytes.
func MessageContent(body []byte) Content {
	c := wakebell.Content{Body: body}
	switch {
	case !utf8.Valid(body):
	case json.Valid(body):
		c.ContentType = "application/json"
	default:
		c.ContentType = "text/plain"
	}
	return NewContent(c)
}
