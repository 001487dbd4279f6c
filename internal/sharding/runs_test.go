package sharding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

func TestJoinRuns(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	run := func(id string, after time.Duration) wakebelltype.LongRun {
		return wakebelltype.LongRun{ID: id, Attempt: 1, Since: at.Add(after)}
	}
	require.Empty(t, JoinRuns(nil, nil))
	require.Equal(t, []wakebelltype.LongRun{run("b", 0), run("a", 1), run("c", 2)},
		JoinRuns([]wakebelltype.LongRun{run("a", 1), run("c", 2)}, []wakebelltype.LongRun{run("b", 0), run("a", 1)}))
	var many []wakebelltype.LongRun
	for i := range 2 * maxRuns {
		many = append(many, run("x", time.Duration(i)))
	}
	require.Equal(t, many[:maxRuns], JoinRuns(many[maxRuns:], many[:maxRuns]))
	require.Len(t, JoinRuns([]wakebelltype.LongRun{run("a", 1), run("b", 1)}, []wakebelltype.LongRun{run("a", 1), run("b", 1)}), 2)
}
