package gatefaults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The checks find planted faults.
func TestHistoryChecksFindFaults(t *testing.T) {
	t.Parallel()
	turn := func(fence uint64, asked, got, live, freed int64) held {
		return held{fence: fence, got: span{asked, got}, live: live, freed: span{live, freed}, known: true}
	}
	good := func() *History {
		return &History{
			turns:   []held{turn(1, 0, 10, 20, 22), turn(2, 5, 25, 30, 31), turn(3, 5, 40, 50, 51)},
			tickets: map[uint64]span{1: {0, 2}, 2: {5, 6}, 3: {7, 8}},
			wrote:   []write{{1, span{11, 12}}, {2, span{26, 27}}},
		}
	}
	require.Empty(t, good().Overlaps())
	require.Empty(t, good().OutOfOrder())
	require.Empty(t, good().StaleWrites())

	overlap := good()
	overlap.turns[1].got.to = 15
	require.NotEmpty(t, overlap.Overlaps())

	twice := good()
	twice.turns[2].fence = 2
	require.NotEmpty(t, twice.Overlaps())

	backwards := good()
	backwards.turns[0].fence, backwards.turns[1].fence = 2, 1
	require.NotEmpty(t, backwards.Overlaps())

	unfair := good()
	unfair.tickets[2], unfair.tickets[3] = span{7, 8}, span{5, 6}
	require.NotEmpty(t, unfair.OutOfOrder())

	stale := good()
	stale.wrote = append(stale.wrote, write{1, span{28, 29}})
	require.NotEmpty(t, stale.StaleWrites())

	expired := good()
	expired.turns[0].known = false
	expired.turns[0].freed.to = never
	require.Empty(t, expired.Overlaps())
}
