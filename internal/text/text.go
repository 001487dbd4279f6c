// Package text shortens, repairs and quotes strings that come from outside the process,
// such as ids, names and error texts.
package text

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Cut returns at most the first n bytes of s. It does not split a character. The
// result shares the memory of s.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Clip shortens s to about n bytes for a message, and marks that with an ellipsis.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Cut(s, n) + "…"
}

// Valid returns s with a replacement character in place of invalid UTF-8, as
// protobuf strings require.
func Valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Escaped returns s with invalid UTF-8 as in a Go string, such as \xff. Unlike with Valid,
// texts that differ stay different.
func Escaped(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

var safeWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// ShellWord returns s as a shell takes it as one word.
func ShellWord(s string) string {
	if safeWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
