// Package bodytext turns bodies into text for people, and bounds the text: a body comes
// from outside, and a few bytes of it may stand for a lot of indentation.
package bodytext

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/wakebell/wakebell/internal/text"
)

const (
	// MaxShown is how many bytes of a body are shown, unless a list shows fewer of each.
	MaxShown = 64 << 10
	// growth bounds the text of a body, as a multiple of what is shown of the body.
	growth = 2
	// maxDepth bounds the nesting that is indented. Deeper values are on one line.
	maxDepth = 32
	indent   = "  "
)

// Limit returns the bound of the text of a body of which so many bytes are shown.
func Limit(shown int) int { return growth * shown }

// Clip returns at most the first shown bytes of a text, and whether that is not all. It
// does not split a character.
func Clip(s string, shown int) (clipped string, cut bool) {
	clipped = text.Cut(s, shown)
	return clipped, len(clipped) < len(s)
}

// JSON indents JSON. The text has at most Limit(shown) bytes; cut reports that it is only
// the beginning. It returns false for what is not JSON, and for more than shown bytes.
func JSON(body []byte, shown int) (indented string, cut, ok bool) {
	if len(body) > shown || !utf8.Valid(body) || !json.Valid(body) {
		return "", false, false
	}
	w := writer{limit: Limit(shown)}
	for i := 0; i < len(body) && w.Len() <= w.limit; {
		i += w.token(body[i:])
	}
	indented, cut = Clip(w.String(), w.limit)
	return indented, cut, true
}

// writer writes the tokens of valid JSON with indentation.
type writer struct {
	strings.Builder
	limit int
	depth int
	empty bool // the last token began an object or array
}

// token writes the first token, and returns its length.
func (w *writer) token(rest []byte) int {
	begun := w.empty
	switch c := rest[0]; c {
	case ' ', '\t', '\r', '\n':
		return 1
	case '}', ']':
		w.depth--
		if !begun {
			w.newline(w.depth + 1)
		}
		w.empty = false
		w.WriteByte(c)
		return 1
	case ',':
		w.WriteByte(c)
		w.newline(w.depth)
		return 1
	case ':':
		w.WriteString(": ")
		return 1
	default:
		if w.empty = c == '{' || c == '['; begun {
			w.newline(w.depth)
		}
		n := 1
		switch {
		case w.empty:
			w.depth++
		case c == '"':
			n = stringLength(rest)
		default:
			n = literalLength(rest)
		}
		w.Write(rest[:n])
		return n
	}
}

// newline begins a line for an item of so deep a value, or for the end of the value.
func (w *writer) newline(of int) {
	if of > maxDepth {
		return
	}
	w.WriteByte('\n')
	w.WriteString(strings.Repeat(indent, w.depth))
}

// stringLength returns the length of the string that rest begins with.
func stringLength(rest []byte) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(rest)
}

// literalLength returns the length of the number or the word that rest begins with.
func literalLength(rest []byte) int {
	for i, c := range rest {
		if strings.IndexByte(" \t\r\n,:]}", c) >= 0 {
			return i
		}
	}
	return len(rest)
}
