package fleet

import (
	"context"
	"flag"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	fleetSeed = flag.Uint64("fleet.seed", 1, "the seed of the first plan")
	fleetRuns = flag.Int("fleet.runs", 4, "how many plans")
	fleetOps  = flag.Int("fleet.ops", 80, "operations of a plan")
	fleetFail = flag.Int("fleet.failures", 1, "plans that break a promise after which no more are drawn")
	fleetAll  = flag.Bool("fleet.v", false, "print what happened")
)

// noLog drops what go-redis logs about connections that break.
type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(noLog{})
	redistest.Main(m)
}

// TestFleet runs plans. One that breaks a promise is printed with its seed and its trace.
func TestFleet(t *testing.T) {
	t.Parallel()
	failures := 0
	for i := range *fleetRuns {
		p := Draw(*fleetSeed+uint64(i), *fleetOps, nil)
		var r Result
		synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), p) })
		r.Report(t, p, *fleetAll)
		if len(r.Broken) > 0 {
			if failures++; failures >= *fleetFail {
				return
			}
		}
	}
}

// A plan is the same for a seed, what happens in it is not.
func TestSameSeedSamePlan(t *testing.T) {
	t.Parallel()
	plan := Draw(7, 200, nil).String()
	require.Equal(t, plan, Draw(7, 200, nil).String())
	require.NotEqual(t, plan, Draw(8, 200, nil).String())
}

// Each kind of operation is drawn soon, and faults only where there may be some.
func TestPlansHaveAllOperations(t *testing.T) {
	t.Parallel()
	drawn := map[string]bool{}
	for seed := range uint64(20) {
		p := Draw(seed, 90, &Outbox{})
		for i, o := range p.Ops {
			drawn[o.kind.name] = true
			require.False(t, o.kind.fault && i >= p.calm(len(p.Ops)))
		}
	}
	require.False(t, slices.ContainsFunc(kinds, func(k kind) bool { return !drawn[k.name] }))
}
