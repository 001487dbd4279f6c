package output

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes text safe for a terminal: control characters, invisible characters
// and invalid UTF-8 are written as in a Go string.
func Escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		i += size
	}
	return b.String()
}

// escapeJSON does the same for a line of JSON and keeps its meaning: outside of
// strings, JSON has none of these characters but the newline.
func escapeJSON(line []byte) []byte {
	if !bytes.ContainsFunc(line, harmful) {
		return line
	}
	escaped := make([]byte, 0, len(line)+16)
	for _, r := range string(line) {
		switch {
		case !harmful(r):
			escaped = utf8.AppendRune(escaped, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
	}
	return escaped
}

// harmful reports whether a character of a line of JSON can affect a terminal.
func harmful(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// jsonEscaper escapes lines of JSON, of which each Write gets one.
type jsonEscaper struct{ w io.Writer }

// NewJSONEscaper returns a writer to w that escapes lines of JSON.
func NewJSONEscaper(w io.Writer) io.Writer { return jsonEscaper{w} }

func (e jsonEscaper) Write(line []byte) (int, error) {
	if _, err := e.w.Write(escapeJSON(line)); err != nil {
		return 0, fmt.Errorf("write log: %w", err)
	}
	return len(line), nil
}
