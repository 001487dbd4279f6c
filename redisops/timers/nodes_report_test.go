package timers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// reports returns what an overview has of the reports of the nodes.
func (f *fixture) reports(t *testing.T) []wakebelltype.NodeReport {
	t.Helper()
	all, err := f.Overview(t.Context(), f.topic)
	require.NoError(t, err)
	return all[0].Reports
}

func TestReportsOfNodes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		state := wakebelltype.NodeState{
			Version: "v1", Breaker: "open", BreakerSince: time.UnixMilli(1.7e12).UTC(), BreakerUntil: time.UnixMilli(1.7e12 + 5).UTC(),
			BreakerReason: "no\n\"route\"", Group: "mail", Weight: 9, Concurrency: 12, ExpireAfter: time.Minute, Options: wakebelltype.Settings{PerKey: 1},
		}
		require.Empty(t, f.reports(t))
		require.NoError(t, f.src.Report(t.Context(), "b", state, time.Minute))
		require.NoError(t, f.src.Report(t.Context(), "a", wakebelltype.NodeState{Breaker: "closed"}, time.Minute))
		require.Equal(t, []wakebelltype.NodeReport{{Node: "a", State: wakebelltype.NodeState{Breaker: "closed"}}, {Node: "b", State: state}}, f.reports(t))
		require.NoError(t, f.src.Report(t.Context(), "a", wakebelltype.NodeState{}, time.Millisecond))
		require.Eventually(t, func() bool { return len(f.reports(t)) < 2 }, 10*time.Second, time.Millisecond, "a report expires")
		require.NoError(t, f.src.Report(t.Context(), "b", wakebelltype.NodeState{}, 0))
		require.Empty(t, f.reports(t))

		f.rdb.HSet(t.Context(), f.key.Reports, "c", "9e9 {", "d", "soon {}", "e", "", "f", "9e9 "+strings.Repeat(" ", maxReport)+"{}", "g", "9e9 {}")
		require.Equal(t, []wakebelltype.NodeReport{{Node: "g"}}, f.reports(t), "what cannot be read is left out")
		require.ErrorContains(t, f.src.Report(t.Context(), "h", wakebelltype.NodeState{Group: strings.Repeat("x", maxReport)}, time.Minute), "at most 4096")
		require.NoError(t, f.Forget(t.Context(), f.topic))
		require.Empty(t, f.reports(t))
		require.NoError(t, f.rdb.Set(t.Context(), f.key.Reports, "x", 0).Err())
		require.ErrorIs(t, f.src.Report(t.Context(), "a", state, time.Minute), wakebelltype.ErrWrongType)
		require.Empty(t, f.reports(t), "an overview does without")
	})
}

func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	for i := range 1005 {
		require.NoError(t, f.src.Report(t.Context(), fmt.Sprintf("node-%04d", i), wakebelltype.NodeState{}, time.Hour))
	}
	require.Len(t, f.reports(t), 1000)
	require.NoError(t, f.src.Report(t.Context(), "node-0001", wakebelltype.NodeState{Weight: 1}, time.Minute), "one that is known is renewed")
	require.Equal(t, 1, f.reports(t)[1].State.Weight)
	require.Greater(t, f.rdb.PTTL(t.Context(), f.key.Reports).Val(), time.Minute, "the key lives as long as the last report")
	for i := range 950 {
		require.NoError(t, f.rdb.HSet(t.Context(), f.key.Reports, fmt.Sprintf("node-%04d", i), "1 {}").Err())
	}
	require.NoError(t, f.src.Report(t.Context(), "node-0000", wakebelltype.NodeState{}, time.Hour))
	require.EqualValues(t, 51, f.rdb.HLen(t.Context(), f.key.Reports).Val(), "those that have expired are removed")
}

func TestReportHasAsManyLongRunsAsFit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	var state wakebelltype.NodeState
	for i := range 10 {
		state.Longest = append(state.Longest, wakebelltype.LongRun{ID: strings.Repeat(fmt.Sprint(i), 1000), Attempt: 1, Since: time.UnixMilli(1.7e12).UTC()})
	}
	require.NoError(t, f.src.Report(t.Context(), "a", state, time.Minute))
	reports := f.reports(t)
	require.Len(t, reports, 1)
	require.Equal(t, state.Longest[:3], reports[0].State.Longest, "the longest")
	require.Len(t, state.Longest, 10)
}
