package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/examples/internal/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// TestSaga compares lines without their order: what is undone may be printed before the end of
// the trip.
func TestSaga(t *testing.T) {
	program.Both(t, func(t *testing.T, p *program.Program) {
		require.ElementsMatch(t, []string{
			"rome: booked",
			"london: not booked, car is dead: no car is left", "london: flight undone", "london: hotel undone",
			"oslo: not booked, hotel is late", "oslo: flight undone", "oslo: hotel undone", "oslo: car undone",
		}, strings.Split(strings.TrimSuffix(p.Rest(), "\n"), "\n"))
	})
}
