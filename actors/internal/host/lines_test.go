package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRemotelyCausedLogLinesAreBounded checks that remote messages about one topic or
// principal cause a bounded number of log lines.
func TestRemotelyCausedLogLinesAreBounded(t *testing.T) {
	t.Parallel()
	lines, passed := NewLogLimiter(), 0
	for range 1000 {
		if _, ok := lines.Allow("lost mallory"); ok {
			passed++
		}
	}
	require.Equal(t, 10, passed)
}
