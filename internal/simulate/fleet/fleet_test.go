package fleet

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var (
	fleetSeed = flag.Uint64("fleet.seed", 1, "the seed of the first plan")
	fleetRuns = flag.Int("fleet.runs", 1, "how many plans")
	fleetOps  = flag.Int("fleet.ops", 100, "operations of a plan")
	fleetAll  = flag.Bool("fleet.v", false, "print what happened")
)

func TestFleet(t *testing.T) {
	for i := range *fleetRuns {
		p := Draw(*fleetSeed+uint64(i), *fleetOps, nil)
		began := time.Now()
		var r Result
		synctest.Test(t, func(t *testing.T) { r = Run(t.Context(), p) })
		if len(r.Broken) > 0 || *fleetAll {
			t.Log(p)
			for _, line := range r.Trace {
				t.Log(line)
			}
		}
		for _, b := range r.Broken {
			t.Error(p.Seed, b)
		}
		t.Logf("seed %d: %d writes, %d runs, %d turns, %d reminders, %d faults, %v in %v", p.Seed, r.Writes, r.Runs, r.Turns, r.Arrived, r.Faults, r.Virtual, time.Since(began))
	}
}
