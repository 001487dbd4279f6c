package reasons

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPattern(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"card declined 17":                     "card declined …",
		`user "ann" has no card`:               "user … has no card",
		"user 'ann' has no card":               "user … has no card",
		"can't read, won't write":              "can't read, won't write",
		"order inv-42: dial tcp 10.0.0.7:5432": "order …: dial tcp …",
		"command: exit status 1: no disk":      "command: exit status …: no disk",
		"id=9f1c-aa 7d0e3 is gone\nat main.go": "id=… … is gone",
		"dial tcp: timeout after 1.5s":         "dial tcp: timeout after …",
		"no such user":                         "no such user",
		"":                                     "",
		"42":                                   "…",
	} {
		require.Equal(t, want, Pattern(reason), reason)
	}
	require.Equal(t, "has no card", Part("user … has no card"))
	require.Empty(t, Part("…"))
}

// Each reason of a kind contains its part, so a filter by it finds all of them.
func TestReasonsContainTheirPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reason := rapid.StringOf(rapid.RuneFrom([]rune("ab '\"`1.:=-\n…ä"))).Draw(t, "reason")
		if part := Part(Pattern(reason)); !strings.Contains(reason, part) {
			t.Fatalf("%q does not contain %q", reason, part)
		}
	})
}
