package storetest

import (
	"fmt"
	"strings"
)

// NoIntegers are what another program may have written where a whole number is
// stored.
var NoIntegers = []string{"x", "nan", "inf", "-inf", "-5", "1.5", "0x10", " 5", "007", "1e300", "99999999999999999999"}

// WithSequence gives an answer the sequence number in place of its first digit.
func WithSequence(text string, sequence uint64) string {
	if rest, ok := strings.CutPrefix(text, "1"); ok && (rest == "" || rest[0] == '\n' || rest[0] == ' ') {
		return fmt.Sprint(sequence) + rest
	}
	return text
}
