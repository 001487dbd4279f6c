package faults

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faults/gatefaults"
	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	seed     = flag.Uint64("faults.seed", 1, "seed of all random choices")
	rounds   = flag.Int("faults.rounds", 1, "rounds of every scenario")
	span     = flag.Duration("faults.for", 0, "start new rounds for this long")
	only     = flag.String("faults.only", "", "comma-separated scenarios to run; empty: those of the suite")
	all      = flag.Bool("faults.all", false, "without -faults.only, run those too that the simulation covers")
	beatsFor = flag.Duration("faults.beats", shortBeats, "duration of the scenario beats in the first round")
	keysOf   = flag.Int("faults.keys", fewKeys, "keys of the scenario keys in the first round")
	joinsOf  = flag.Int("faults.joins", fewJoins, "joins of the scenario joins in the first round")
	stalls   = flag.Bool("faults.stalls", false, "suspend nodes, beats, clients and Redis in all scenarios")
	logs     = flag.String("faults.log", "", "folder to which the delivery logs of all rounds are written")
	output   = flag.String("faults.o", "text", "format of the report: text, json or markdown")

	report = NewReport()
)

// atOnce is the number of scenarios that run in parallel: they mostly wait.
const atOnce = "6"

func TestMain(m *testing.M) {
	if config := os.Getenv(NodeVariable); config != "" {
		if err := NodeMain(config, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	gatefaults.Main()
	logging.Disable()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	redistest.Main(m)
}

// TestFaults runs the scenarios and writes the report.
func TestFaults(t *testing.T) {
	began := time.Now()
	t.Cleanup(func() {
		if err := write(report, os.Stdout); err != nil {
			t.Error(err)
		}
	})
	for round := 1; round <= *rounds || time.Since(began) < *span; round++ {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			for _, s := range chosen(t) {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					runRound(t, s, round)
				})
			}
		})
	}
}

// chosen returns the scenarios that the flags select. Under the race detector, which makes
// nodes many times as expensive, the suite runs few: it runs all without the detector too.
func chosen(t *testing.T) []scenario {
	t.Helper()
	switch {
	case *only == "" && redistest.Raced:
		return named(t, "kill", "gates")
	case *only == "" && *all:
		return slices.Concat(scenarios, simulated)
	case *only == "":
		return scenarios
	}
	return named(t, strings.Split(*only, ",")...)
}

func named(t *testing.T, names ...string) []scenario {
	t.Helper()
	var some []scenario
	for _, name := range names {
		known := slices.Concat(scenarios, simulated, apart)
		i := slices.IndexFunc(known, func(s scenario) bool { return s.name == name })
		if i < 0 {
			t.Fatalf("unknown scenario %q", name)
		}
		some = append(some, known[i])
	}
	return some
}

func runRound(t *testing.T, s scenario, round int) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			report.Failed(s.name, fmt.Sprintf("round %d of seed %d", round, *seed))
		}
	})
	w := &world{T: t, round: round, rng: choices(s.name, round), deliveries: NewDeliveryLog(s.ttl)}
	w.fleet = NewFleet(t, w.deliveries)
	w.versions = versionsOf(t)
	w.fleet.Program = w.versions.from
	defer w.judge(s, round) // also if the round has failed
	if *stalls {
		w.stall()
	}
	s.run(w)
}

// judge adds a round to the report, and fails it for broken promises.
func (w *world) judge(s scenario, round int) {
	w.Helper()
	w.writeLog(s, round)
	j := w.deliveries.Judge()
	if w.found != nil {
		j.add(w.found)
	}
	report.Add(s.name, w.tries(), s.ttl, j)
	for _, v := range j.Violations[:min(len(j.Violations), 5)] {
		w.Errorf("seed %d, round %d: %s", *seed, round, v)
	}
	if j.Broken() > 0 {
		w.Errorf("seed %d, round %d: %d promises broken", *seed, round, j.Broken())
	}
}

// writeLog writes the delivery log of a round for the specification to check.
func (w *world) writeLog(s scenario, round int) {
	w.Helper()
	if *logs == "" {
		return
	}
	file, err := os.Create(filepath.Join(*logs, fmt.Sprintf("%s-%d-%d.jsonl", s.name, *seed, round)))
	require.NoError(w, err)
	defer file.Close() //nolint:errcheck // after an error
	require.NoError(w, w.deliveries.WriteLog(file, s.name))
	require.NoError(w, file.Close())
}

// choices returns the random source of a round, which is the same for the same seed,
// scenario and round.
func choices(scenario string, round int) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, scenario) // a hash never fails
	return rand.New(rand.NewPCG(*seed, h.Sum64()+uint64(round)))
}

func write(r *Report, w io.Writer) error {
	switch *output {
	case "json":
		return r.WriteJSON(w)
	case "markdown":
		return r.WriteMarkdown(w)
	default:
		return r.WriteText(w)
	}
}
