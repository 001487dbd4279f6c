// Package reasons groups errors that differ by what they are about only: by ids, numbers and
// quoted words.
package reasons

import (
	"regexp"
	"strings"
)

// Gap stands in a pattern for what differs.
const Gap = "…"

// longest is how many bytes of a reason a pattern has.
const longest = 200

// varying is what differs between errors of one kind: quoted words, and words with a digit,
// such as numbers, ids, addresses and instants. An apostrophe within a word quotes nothing.
var varying = regexp.MustCompile("\"[^\"]*\"|`[^`]*`|(?:^|[\\s(=:,])'[^']*'|[\\p{L}\\p{N}_.:@/+-]*\\p{N}[\\p{L}\\p{N}_@/+-]*")

// Pattern returns what errors of the same kind have in common: the first line of a reason, at
// most 200 bytes, with a Gap for each part that differs.
func Pattern(reason string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	if len(line) > longest {
		line = line[:longest]
	}
	return varying.ReplaceAllStringFunc(strings.ToValidUTF8(line, Gap), func(part string) string {
		if i := strings.IndexByte(part, '\''); i == 1 && part[0] != '\'' {
			return part[:1] + Gap
		}
		return Gap
	})
}

// Part returns the longest part of a pattern without a Gap, by which a filter finds its
// reasons; empty: there is none.
func Part(pattern string) (longest string) {
	for _, part := range strings.Split(pattern, Gap) {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}
