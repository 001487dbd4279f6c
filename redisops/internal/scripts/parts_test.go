package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPartsOf(t *testing.T) {
	t.Parallel()
	text := "-- Does something.\n--\n-- Parts: a b\n--   one: c\n--     d e\n--   two:\n-- KEYS: k\n--   f g\n-- Returns: nothing.\nreturn\n-- Parts: h\n"
	for variant, want := range map[string][]string{"": {"a", "b"}, "one": {"c", "d", "e"}, "two": nil} {
		require.Equal(t, want, partsOf("x", text, variant), "%q", variant)
	}
	require.Empty(t, partsOf("x", "-- Does something.\n-- KEYS: k\n", ""))
	require.PanicsWithValue(t, `redisops: script x: its header has no variant "three"`, func() { partsOf("x", text, "three") })
}
