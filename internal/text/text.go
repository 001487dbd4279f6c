// Package text shortens and repairs strings that come from outside the process,
// such as ids, names and error texts.
package text

import (
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
