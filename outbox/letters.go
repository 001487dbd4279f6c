package outbox

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// letters is how a statement has a text whose letters the database or the connection may lack.
type letters struct {
	value string // stands for the text
	args  func(text string) []any
}

var (
	// plain is for ASCII, which all of them have.
	plain = letters{"?", func(text string) []any { return []any{text} }}

	// byEncoding is for PostgreSQL: bytes for a database that has them all, and ASCII for
	// others. The name of the encoding is not a constant, because PostgreSQL converts a
	// constant before it reads the condition.
	byEncoding = letters{
		"CASE WHEN getdatabaseencoding() IN ('UTF8', 'SQL_ASCII') THEN convert_from(?, getdatabaseencoding()) ELSE ? END",
		func(text string) []any { return []any{[]byte(text), escaped(text)} },
	}

	// inHex is for MySQL, whose tables are in UTF-8: a connection with charset=utf8, which
	// is common, lacks characters of 4 bytes.
	inHex = letters{"CONVERT(UNHEX(?) USING utf8mb4)", func(text string) []any { return []any{hex.EncodeToString([]byte(text))} }}
)

// lettersOf returns how a statement has these texts.
func (d dialect) lettersOf(texts ...string) letters {
	for _, text := range texts {
		if !ascii(text) {
			return d.letters
		}
	}
	return plain
}

func ascii(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// escaped returns a text in ASCII.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}
