package output

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStamp(t *testing.T) {
	t.Parallel()
	require.Empty(t, Stamp(time.Time{}))
	at := time.Date(2031, 1, 2, 3, 4, 5, 678_900_000, time.FixedZone("", 3600))
	require.Equal(t, "2031-01-02T02:04:05.6789Z", Stamp(at))
	require.False(t, IsTerminal(&bytes.Buffer{}))
}
