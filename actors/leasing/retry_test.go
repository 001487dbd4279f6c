package leasing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	r := Retry{Initial: time.Second, Max: time.Hour}
	for failures, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 12: time.Hour, 1 << 40: time.Hour} {
		require.Equal(t, want, r.delay(failures, 0.5))
		require.InDelta(t, 0.8*want.Seconds(), r.delay(failures, 0).Seconds(), 1e-6)
		require.InDelta(t, 1.2*want.Seconds(), r.delay(failures, 1).Seconds(), 1e-6)
	}
}
