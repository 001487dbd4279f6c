//go:build !race

package shards

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/pairs"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// These tests make long histories of calls, one call after another: the race detector would see
// nothing in them.

// TestEveryPairOfOperations checks that timers are delivered, or wait for a named reason
// that ends, and that no limit is exceeded, for every pair of operations.
func TestEveryPairOfOperations(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	met := pairs.Counts{}
	began, runs := time.Now(), 0
	known := map[string]bool{}
	for ; runs < *modelsRuns && *modelsFor == 0 || time.Since(began) < *modelsFor; runs++ {
		seed := *modelsSeed + uint64(runs)
		p := drawPlan(seed)
		met.Count(pairsOf(p))
		wrong, _ := play(t, server, p)
		if wrong == "" || known[kindOf(wrong)] {
			continue
		}
		known[kindOf(wrong)] = true
		p = shorten(t, server, p, wrong)
		wrong, log := play(t, server, p)
		t.Errorf("run %d of the model, -models.seed %d, SkipFailed %v, %v:\n%s\n%s", runs+1, seed, p.skips, p.steps, strings.Join(log, "\n"), wrong)
		if !*modelsAll {
			break
		}
	}
	t.Logf("%d runs, rarest pairs: %s", runs, met.Rarest(operationNames(), 10))
}

// TestEveryChangeOfPlaceCanBeEnded begins a change of the place of a topic, ends its process,
// and tries another change. Whether that is refused or not, one documented command ends
// what has begun: that which the error names, and then everything is there once.
func TestEveryChangeOfPlaceCanBeEnded(t *testing.T) {
	t.Parallel()
	for begun, begin := range beginnings {
		for tried, try := range attempts {
			t.Run(begun+", "+tried, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := newChanging(t)
					begin(t, c)
					if err := try(t, c); err != nil {
						require.ErrorIs(t, err, wakebelltype.ErrInvalid)
					}
					if err := c.resume(t); err != nil {
						require.ErrorIs(t, err, wakebelltype.ErrInvalid)
						require.ErrorContains(t, err, "--abort")
						_, err = c.from.AbortMove(t.Context(), c.from.topic)
						require.NoError(t, err)
						require.NoError(t, c.resume(t))
					}
					c.rests(t, begun == "a move has taken timers that arrived")
				})
			})
		}
	}
}

// TestScriptsRefineTheSpecification runs histories of internal/spec against the scripts on
// a real Redis, in virtual time: every answer and the content of the topic after every
// step agree.
func TestScriptsRefineSpecification(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for run := range *specRuns {
		seed := *specSeed + uint64(run)
		synctest.Test(t, func(t *testing.T) {
			r := newRefinement(t, server, seed)
			for range 60 {
				r.step()
			}
			require.NoError(t, r.server.Close())
		})
	}
}
