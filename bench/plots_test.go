package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlots(t *testing.T) {
	t.Parallel()
	r := &results{}
	for _, c := range plotConcurrent {
		r.add("concurrency", concurrencyName(c), sample{rate: 1000 * float64(c)})
	}
	for _, c := range plotRates {
		r.add("load", strconv.Itoa(c), sample{bothUS: 1e5 / float64(c), lateP50: 3, lateP99: 6})
	}
	for _, trial := range growth() {
		for _, c := range trial.contenders {
			r.add(trial.name, c.name, sample{rate: 1e5})
		}
	}
	r.add("shards", "4-on-2", sample{rate: 1e5})
	late := latenessFigures([]float64{0.2, 0.3, 0.4, 5})
	require.Zero(t, late[earlyOnes])
	require.InDelta(t, 1, latenessFigures([]float64{-0.1, 2})[earlyOnes], 0)
	r.add("lateness", "now", late)
	folder := t.TempDir()
	require.NoError(t, r.write(filepath.Join(folder, "results.json")))
	again, err := readResults(filepath.Join(folder, "results.json"))
	require.NoError(t, err)
	require.NoError(t, draw(again, folder))
	for _, name := range []string{"rate.svg", "lateness.svg", "load.svg", "growth-topics.svg", "growth-masters.svg"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Contains(t, string(text), "<svg")
	}
}
