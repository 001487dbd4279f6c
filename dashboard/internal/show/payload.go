package show

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"mime"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/wakebell/wakebell/internal/bodytext"
)

// Body is a body as a page shows it.
type Body struct {
	Format string // "JSON", "text", "protobuf", "hex" or "empty"
	Text   string
	Size   int
	Cut    bool // Text shows only the beginning
}

// NewBody decodes a body by its content type or, without one, by its bytes. It shows at
// most so many bytes of the body, and its text has at most bodytext.Limit of them.
func NewBody(body []byte, contentType string, shown int) Body {
	b := Body{Size: len(body), Cut: len(body) > shown}
	if len(body) == 0 {
		b.Format = "empty"
		return b
	}
	head := body[:min(len(body), shown)]
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
	}
	if strings.Contains(media, "protobuf") {
		b.protobuf(body, head, shown)
	} else if indented, cut, ok := bodytext.JSON(body, shown); ok {
		b.Format, b.Text, b.Cut = "JSON", Lines(indented), cut
	} else if utf8.Valid(trimRune(head)) {
		b.Format, b.Text = "text", Lines(string(trimRune(head)))
	} else {
		b.hex(head)
	}
	// What is made visible is several times as long.
	clipped, cut := bodytext.Clip(b.Text, bodytext.Limit(shown))
	b.Text, b.Cut = clipped, b.Cut || cut
	return b
}

func (b *Body) protobuf(body, head []byte, shown int) {
	if b.Cut {
		b.hex(head)
		return
	}
	w := protoWriter{left: bodytext.Limit(shown)}
	text, ok := w.message(body, 0)
	if !ok {
		b.hex(head)
		return
	}
	b.Format, b.Text, b.Cut = "protobuf", text, w.left < 0
}

// hex shows the beginning: a dump is about five times as long.
func (b *Body) hex(head []byte) {
	head = head[:(len(head)+3)/4]
	b.Format, b.Text, b.Cut = "hex", hex.Dump(head), len(head) < b.Size
}

// trimRune removes a character that the limit has cut.
func trimRune(head []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(head); i++ {
		if r := head[len(head)-i]; utf8.RuneStart(r) {
			if !utf8.FullRune(head[len(head)-i:]) {
				return head[:len(head)-i]
			}
			break
		}
	}
	return head
}

// maxDepth bounds the nesting of a protobuf message that is shown.
const maxDepth = 8

// protoWriter writes the fields of protobuf messages, whose types are not known, by their
// numbers, until nothing is left of its bound.
type protoWriter struct{ left int }

func (w *protoWriter) message(message []byte, depth int) (string, bool) {
	var b strings.Builder
	indent := strings.Repeat("  ", depth)
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return "", false
		}
		message = message[n:]
		value, n := w.value(message, number, kind, depth)
		if n < 0 {
			return "", false
		}
		message = message[n:]
		if w.left < 0 {
			continue // is the rest a message?
		}
		before := b.Len()
		fmt.Fprintf(&b, "%s%d: %s\n", indent, number, value)
		w.left -= b.Len() - before
	}
	return b.String(), true
}

func (w *protoWriter) value(m []byte, number protowire.Number, kind protowire.Type, depth int) (text string, n int) {
	switch kind {
	case protowire.VarintType:
		v, n := protowire.ConsumeVarint(m)
		return fmt.Sprint(v), n
	case protowire.Fixed32Type:
		v, n := protowire.ConsumeFixed32(m)
		return fmt.Sprintf("%d (float %v)", v, math.Float32frombits(v)), n
	case protowire.Fixed64Type:
		v, n := protowire.ConsumeFixed64(m)
		return fmt.Sprintf("%d (double %v)", v, math.Float64frombits(v)), n
	case protowire.BytesType:
		v, n := protowire.ConsumeBytes(m)
		return w.bytes(v, depth), n
	default:
		return "(group)", protowire.ConsumeFieldValue(number, kind, m)
	}
}

// bytes writes a field of bytes: a string, a message, or neither.
func (w *protoWriter) bytes(v []byte, depth int) string {
	if w.left < 0 {
		return ""
	}
	if utf8.Valid(v) && !bytes.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		return fmt.Sprintf("%q", Lines(string(v)))
	}
	if depth < maxDepth {
		inner := protoWriter{left: w.left}
		if text, ok := inner.message(v, depth+1); ok && text != "" {
			return "{\n" + text + strings.Repeat("  ", depth) + "}"
		}
	}
	return "0x" + hex.EncodeToString(v)
}
