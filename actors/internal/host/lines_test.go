package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What messages of others have logged is bounded for one topic or principal, and
// for all.
func TestLinesThatOthersCauseAreBounded(t *testing.T) {
	t.Parallel()
	lines, passed := NewLogLimiter(), 0
	for range 1000 {
		if _, ok := lines.Allow("lost mallory"); ok {
			passed++
		}
	}
	require.Equal(t, 10, passed)
}
