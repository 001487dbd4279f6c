package pairs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPairs(t *testing.T) {
	t.Parallel()
	r := NewRun()
	r.Add("write", "a")
	r.Add("write", "b")
	r.Add("stop", "a", "b") // once for both
	r.Add("write", "a")
	counts := Counts{}
	counts.Count(r)
	counts.Count(r)
	require.Equal(t, Counts{{"write", "stop"}: 2, {"stop", "write"}: 2}, counts)
	require.Equal(t, "write, write: 0; stop, stop: 0; write, stop: 2", counts.Rarest([]string{"write", "stop"}, 3))
	require.Equal(t, "write, write: 0", counts.Rarest([]string{"write"}, 3))

	seldom, other := NewRun(), NewRun()
	seldom.Add("write", "a")
	seldom.Add("write", "a")
	other.Add("write", "a")
	other.Add("stop", "a")
	require.Greater(t, counts.Worth(seldom), counts.Worth(other))
	require.Zero(t, counts.Worth(NewRun()))
}
