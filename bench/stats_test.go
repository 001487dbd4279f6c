package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 0)
	require.True(t, math.IsNaN(median(nil)), "of none")
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	sorted := make([]float64, 100)
	for i := range sorted {
		sorted[i] = float64(i + 1)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 0.995: 100, 1: 100} {
		require.InDelta(t, want, quantile(sorted, q), 0, q)
	}
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	t.Parallel()
	// The machine was half as fast in the second round, for both.
	require.InDelta(t, 2, medianRatio([]float64{200, 100, 220}, []float64{100, 50, 100}), 1e-9)
	require.InDelta(t, 3, medianRatio([]float64{1, 3}, []float64{0, 1}), 1e-9, "a round without a figure does not count")
}

func TestContendersAreChosenByBeginnings(t *testing.T) {
	t.Parallel()
	b := &bench{only: []string{"deliver/", "river"}}
	for name, want := range map[string]bool{"deliver/floor": true, "persistence-deliver/floor": false, "deliver-1k/floor": false, "schedule-50/river": true, "load/50": false} {
		of, who, _ := strings.Cut(name, "/")
		require.Equal(t, want, b.chosen(trial{name: of}, contender{name: who}), name)
	}
}

func TestGoals(t *testing.T) {
	t.Parallel()
	r := &results{}
	for _, s := range []struct {
		contender string
		rate      float64
	}{{"floor", 100}, {node200, 80}, {"asynq-10", 3}, {"asynq-50", 5}} {
		r.add("deliver", s.contender, sample{rate: s.rate, clientUS: 5})
	}
	byName := map[string]string{}
	for _, g := range goals {
		byName[g.what] = g.verdict(g.value(r))
	}
	require.Equal(t, "must", byName["handled/s against the floor, a loop over the same exchanges"])
	require.Equal(t, "must", byName["… against asynq at its best concurrency"], "16 times the best of two")
	require.Equal(t, "**missed**", byName["CPU of the client per timer"])
	require.Equal(t, "not measured", byName["early"])

	var out strings.Builder
	require.NoError(t, r.report(&out))
	require.Contains(t, out.String(), "| handled/s against the floor, a loop over the same exchanges | ≥ 0.75 | ≥ 0.9 | 0.800 × | must |")
	require.Contains(t, out.String(), "| asynq-50 | 5.00 | 5.00 |")
}

func TestSimulation(t *testing.T) {
	t.Parallel()
	f := fleet{topics: 10, rate: 100, seconds: 5, exchangeUS: 50, timerUS: 4, tripUS: 100}
	l := f.run(rand.New(rand.NewPCG(1, 2)))
	require.InDelta(t, 5000, l.timers, 300)
	require.InDelta(t, 2, float64(l.exchanges)/float64(l.timers), 0.1, "few timers: one to claim, one to settle each")
	require.InDelta(t, 1000*(2*50+4)/1e6, l.busy, 0.02)
	require.InDelta(t, 0.15, l.p50, 0.05)

	f.topics, f.rate = 1, 100_000
	l = f.run(rand.New(rand.NewPCG(1, 2)))
	require.Less(t, float64(l.exchanges)/float64(l.timers), 0.1, "many timers share exchanges")
}

// Every contender's name is unique, and goals refer only to existing contenders.
func TestTrialsAndGoalsAgree(t *testing.T) {
	t.Parallel()
	r := &results{}
	for _, trial := range allTrials() {
		seen := map[string]bool{}
		for _, c := range trial.contenders {
			require.False(t, seen[c.name], c.name)
			seen[c.name] = true
			s := sample{}
			for _, column := range columns {
				s[column.figure] = 1
			}
			r.add(trial.name, c.name, s)
		}
	}
	for _, g := range goals {
		require.NotEqual(t, "not measured", g.verdict(g.value(r)), g.what)
	}
}
