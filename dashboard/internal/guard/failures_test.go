package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailuresRecover(t *testing.T) {
	t.Parallel()
	var f Failures
	now := time.Now()
	for range burst {
		require.Zero(t, f.Fail("192.0.2.1:1", now))
	}
	for range 1000 { // those that are refused do not prolong the wait
		require.Equal(t, recovery, f.Fail("192.0.2.1:2", now))
	}
	require.Zero(t, f.Fail("192.0.2.2:1", now), "another address")
	require.Zero(t, f.Fail("192.0.2.1:1", now.Add(recovery)))
	require.Positive(t, f.Fail("192.0.2.1:1", now.Add(recovery)))
	require.Zero(t, f.Fail("192.0.2.1:1", now.Add(2*burst*recovery)))
}

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	var f Failures
	now := time.Now()
	for i := range 3 * maxTracks {
		f.Fail(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff), now)
		require.LessOrEqual(t, len(f.until), maxTracks)
	}
}
