package show

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxShown bounds how many bytes of a body are decoded and shown.
const maxShown = 64 << 10

// Body is a body as a page shows it.
type Body struct {
	Format string // "JSON", "text", "protobuf", "hex" or "empty"
	Text   string
	Size   int
	Cut    bool // Text shows only the beginning
}

// NewBody decodes a body by its content type or, without one, by its bytes.
func NewBody(body []byte, contentType string) Body {
	b := Body{Size: len(body), Cut: len(body) > maxShown}
	if len(body) == 0 {
		b.Format = "empty"
		return b
	}
	head := body[:min(len(body), maxShown)]
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
	}
	isProto := strings.Contains(media, "protobuf")
	switch {
	case !b.Cut && !isProto && utf8.Valid(body) && json.Valid(body):
		var out bytes.Buffer
		_ = json.Indent(&out, body, "", "  ") // it is valid
		b.Format, b.Text = "JSON", Lines(out.String())
	case isProto && !b.Cut:
		if text, ok := protoText(body, 0); ok {
			b.Format, b.Text = "protobuf", text
			break
		}
		b.Format, b.Text = "hex", hex.Dump(head)
	case utf8.Valid(trimRune(head)):
		b.Format, b.Text = "text", Lines(string(trimRune(head)))
	default:
		head = head[:min(len(head), maxShown/4)] // a dump is four times as long
		b.Format, b.Text, b.Cut = "hex", hex.Dump(head), len(head) < len(body)
	}
	return b
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

// protoText writes the fields of a protobuf message, whose type is not known, by
// their numbers.
func protoText(message []byte, depth int) (string, bool) {
	var b strings.Builder
	indent := strings.Repeat("  ", depth)
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return "", false
		}
		message = message[n:]
		value, n := protoValue(message, number, kind, depth)
		if n < 0 {
			return "", false
		}
		message = message[n:]
		fmt.Fprintf(&b, "%s%d: %s\n", indent, number, value)
	}
	return b.String(), true
}

func protoValue(m []byte, number protowire.Number, kind protowire.Type, depth int) (text string, n int) {
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
		return protoBytes(v, depth), n
	default:
		return "(group)", protowire.ConsumeFieldValue(number, kind, m)
	}
}

// protoBytes writes a field of bytes: a string, a message, or neither.
func protoBytes(v []byte, depth int) string {
	if utf8.Valid(v) && !bytes.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		return fmt.Sprintf("%q", Lines(string(v)))
	}
	if depth < maxDepth {
		if inner, ok := protoText(v, depth+1); ok && inner != "" {
			return "{\n" + inner + strings.Repeat("  ", depth) + "}"
		}
	}
	return "0x" + hex.EncodeToString(v)
}
