//go:build !race

package recur

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func zoneNames(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/zones.txt")
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// Around a change of the clock of every IANA zone, random rules of each kind have the
// instants that brute force finds, and Latest is the last of a chain of Next.
func TestZonesAgainstBruteForce(t *testing.T) {
	t.Parallel()
	for n, name := range zoneNames(t) {
		if testing.Short() && n%9 != 0 {
			continue
		}
		checkZone(t, rand.New(rand.NewPCG(uint64(n), 20261025)), name)
	}
}

// The same, for other changes of the clock and other rules.
func FuzzZonesAgainstBruteForce(f *testing.F) {
	names := zoneNames(f)
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		checkZone(t, r, names[r.IntN(len(names))])
	})
}
