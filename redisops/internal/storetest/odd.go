package storetest

import (
	"fmt"
	"strings"
)

// NoIntegers are values that another program may have written in place of an
// integer.
var NoIntegers = []string{"x", "nan", "inf", "-inf", "-5", "1.5", "0x10", " 5", "007", "1e300", "99999999999999999999"}

// WithSequence replaces the first digit of an answer by the sequence number.
func WithSequence(text string, sequence uint64) string {
	if rest, ok := strings.CutPrefix(text, "1"); ok && (rest == "" || rest[0] == '\n' || rest[0] == ' ') {
		return fmt.Sprint(sequence) + rest
	}
	return text
}
