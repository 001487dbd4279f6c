package memorylimit

import (
	"context"
	"math"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGarbageIsThirdOfLiveMemoryAboveFloor(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, Floor, limit(0))
	require.EqualValues(t, Floor, limit(Floor/2))
	require.EqualValues(t, 400<<20, limit(300<<20))
}

func TestLimitAppliesUntilEnd(t *testing.T) { //nolint:paralleltest // it sets the limit of the process
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		Keep(ctx)
	}()
	require.Eventually(t, func() bool { return current() >= Floor && current() < math.MaxInt64 }, time.Minute, time.Millisecond)
	cancel()
	<-done
	require.EqualValues(t, math.MaxInt64, current())
}

func TestEnvironmentTakesPrecedence(t *testing.T) { //nolint:paralleltest // it sets variables of the process
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "1GiB")
			Keep(t.Context())
			require.EqualValues(t, math.MaxInt64, current())
		})
	}
}

// current returns the limit; a negative argument does not change it.
func current() int64 { return debug.SetMemoryLimit(-1) }
