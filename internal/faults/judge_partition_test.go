package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// confirmed records a schedule that so many replicas had to confirm.
func (b testLog) confirmed(replicas int) {
	b.RecordCall("client-1/1", Call{
		Kind: CallSchedule, Client: "client-1", Generation: 1, Called: b.at(1), Returned: b.at(2),
		Earliest: b.at(10), Due: b.at(10), Found: FoundNothing, Replicas: replicas,
	})
}

// Only the writes of processes beside the old master are lost with it, and none that
// all replicas have confirmed.
func TestJudgeOfTwoMasters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(testLog)
		want  Judgement
	}{
		"lost beside the old master": {func(b testLog) {
			b.confirmed(0)
			b.fault(DataLoss, "client-1", 0, 50)
		}, Judgement{LostByRedis: 1}},
		"lost beside the new one": {func(b testLog) {
			b.confirmed(0)
			b.fault(DataLoss, "client-2", 0, 50)
		}, Judgement{Lost: 1}},
		"lost, and confirmed by all replicas": {func(b testLog) {
			b.KeptFrom = 2
			b.confirmed(2)
			b.fault(DataLoss, "client-1", 0, 50)
		}, Judgement{Lost: 1}},
		"lost, and confirmed by one of two replicas": {func(b testLog) {
			b.KeptFrom = 2
			b.confirmed(1)
			b.fault(DataLoss, "client-1", 0, 50)
		}, Judgement{LostByRedis: 1}},
		"claimed from both masters": {func(b testLog) {
			b.confirmed(0)
			b.fault(DataLoss, "a", 5, 50)
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.ran("b", 1, 1, 15, 25, EndAck)
		}, Judgement{Repeated: 1}},
		"claimed twice from one master": {func(b testLog) {
			b.confirmed(0)
			b.fault(DataLoss, "c", 5, 50)
			b.ran("a", 1, 1, 10, 20, EndAck)
			b.ran("b", 1, 1, 15, 25, EndAck)
		}, Judgement{Repeated: 1, Uncaused: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newTestLog()
			c.write(b)
			j := b.Judge()
			require.Equal(t, []int{c.want.Lost, c.want.LostByRedis, c.want.Repeated, c.want.Uncaused}, []int{j.Lost, j.LostByRedis, j.Repeated, j.Uncaused}, "%v", j.Violations)
		})
	}
}
