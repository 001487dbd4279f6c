package backoff_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/backoff"
)

func TestExponentialDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 12: time.Hour, 1 << 40: time.Hour} {
		require.Equal(t, want, backoff.Exponential(time.Second, n, time.Hour), "n = %d", n)
	}
}

func TestJitterStaysWithinItsFraction(t *testing.T) {
	t.Parallel()
	require.Equal(t, 8*time.Second, backoff.Jitter(10*time.Second, 0.2, 0))
	require.Equal(t, 10*time.Second, backoff.Jitter(10*time.Second, 0.2, 0.5))
	require.Equal(t, 12*time.Second, backoff.Jitter(10*time.Second, 0.2, 1))
}
