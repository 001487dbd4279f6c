package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesBecomePositions(t *testing.T) {
	t.Parallel()
	const text = "-- Does it.\n--\n-- KEYS: timeline payloads\n-- ARGV: sequence ttl ...\n\nlocal a = KEYS.payloads .. ARGV.ttl .. ARGV[3]\n"
	require.Contains(t, positions("x", text), "local a = KEYS[2] .. ARGV[2] .. ARGV[3]\n")
	require.Contains(t, positions("x", text+"local base = ARGV_NAMED\n"), "local base = 2\n")
	require.Equal(t, []string{"sequence", "ttl", "..."}, HeaderNames(text, "ARGV"))
	require.Empty(t, HeaderNames("-- ARGV: none\n", "ARGV"))
	require.Panics(t, func() { positions("x", text+"return KEYS.leases\n") }, "not in the header")
	require.Panics(t, func() { positions("x", "-- KEYS: key key\nreturn KEYS.key\n") }, "twice")
}
