package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJudgeOfRedrives(t *testing.T) {
	t.Parallel()
	judged := func(redriven bool, runs int) *Judgement {
		b := newTestLog()
		b.scheduled(1, 0, 10, FoundNothing)
		for i := range runs {
			b.ran("a", 1, 1, 20+200*i, 30+200*i, EndReject)
		}
		if redriven {
			b.RecordCall("client-1/1", Call{Kind: CallRedrive, Generation: 1, Called: b.at(100), Returned: b.at(101)})
		}
		return b.Judge()
	}
	require.Zero(t, judged(false, 1).Broken())
	require.Equal(t, 1, judged(false, 2).Uncaused, "without a redrive")
	again := judged(true, 2)
	require.Zero(t, again.Broken(), again.Violations)
	require.Equal(t, 1, again.Causes[CauseRedrive])
	require.Equal(t, 1, judged(true, 1).Lost, "the redriven timer is not delivered")
	require.Equal(t, 1, judged(true, 3).Uncaused, "one redrive makes one timer")
}
