package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands and allocations do not depend on the machine: if they differ from the tables of
// RESULTS.md, then the code has changed since, and the other figures there are older than it.
func TestTablesCountWhatIsCountedToday(t *testing.T) { // not parallel: it counts the process's allocations
	text, err := os.ReadFile("RESULTS.md")
	require.NoError(t, err)
	w, err := newWorld(0.1, t.Output())
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close()) }()
	trials := map[string]trial{}
	for _, tr := range allTrials() {
		trials[tr.name] = tr
	}
	for _, counted := range []struct {
		trial, contender string
		within           float64 // by which factor it may differ
	}{
		{"deliver", "floor", 1.15},
		{"deliver", node200, 1.5}, // how many timers share an exchange depends on the machine
		{"schedule", "wakebell", 1.1},
		{"schedule-batch", "wakebell", 1.15},
		{"schedule-batch", "multi", 1.15},
	} {
		require.NoError(t, w.clean(t.Context()))
		s, err := trials[counted.trial].contender(counted.contender).run(t.Context(), w)
		require.NoError(t, err)
		for column, figure := range map[string]string{"commands": commandsPer, "allocations": allocsPer} {
			in := tabled(t, string(text), counted.trial, counted.contender, column)
			ratio := s[figure] / in
			require.Truef(t, ratio < counted.within && ratio > 1/counted.within,
				"%s/%s has %s %s a timer, RESULTS.md has %s: renew the tables", counted.trial, counted.contender, digits(s[figure]), column, digits(in))
		}
	}
}

// contender returns the contender of that name.
func (t trial) contender(name string) contender {
	for _, c := range t.contenders {
		if c.name == name {
			return c
		}
	}
	return contender{}
}

// tabled reads a figure from the table of a trial.
func tabled(t *testing.T, text, trial, row, column string) float64 {
	t.Helper()
	_, table, found := strings.Cut(text, "\n"+trial+": ")
	require.True(t, found, trial)
	at := -1
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
			if at < 0 && cells[i] == column {
				at = i
			}
		}
		if at > 0 && len(cells) > at && cells[1] == row {
			x, err := strconv.ParseFloat(cells[at], 64)
			require.NoError(t, err, line)
			return x
		}
	}
	require.Failf(t, "no figure", "%s of %s/%s", column, trial, row)
	return 0
}
