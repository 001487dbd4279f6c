package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the table of ways in docs/architecture.md")

const (
	document  = "../../docs/architecture.md"
	tableHead = "| way | functions | files | packages |\n|---|---|---|---|\n"
	wayRow    = "| %s | %d | %d | %d |\n"
)

// extent is what a reader of a way has to follow.
type extent struct {
	way                        string
	functions, files, packages int
}

// bounds are the most that each way may have. Lower one when its way becomes shorter.
var bounds = []extent{
	{"schedule", 60, 18, 10},
	{"deliver", 270, 82, 20},
	{"subscribe", 440, 125, 30},
}

// tolerated is the part by which a documented figure may differ from a measured one.
const tolerated = 0.1

// TestWaysAreBoundedAndDocumented measures the ways by scripts/trace.sh, holds each to its
// bound, and compares the table in docs/architecture.md, which -update writes. With -short it
// holds the table to the bounds: to measure builds the module once more, with coverage.
func TestWaysAreBoundedAndDocumented(t *testing.T) {
	t.Parallel()
	before, said, after := documented(t)
	measured := said
	if !testing.Short() {
		measured = trace(t)
	}
	table := tableHead
	for i, most := range bounds {
		is := measured[i]
		require.Equal(t, most.way, is.way)
		require.LessOrEqual(t, is.functions, most.functions, "functions; scripts/trace.sh %s lists them", is.way)
		require.LessOrEqual(t, is.files, most.files, "files of %s", is.way)
		require.LessOrEqual(t, is.packages, most.packages, "packages of %s", is.way)
		table += fmt.Sprintf(wayRow, is.way, is.functions, is.files, is.packages)
		if *update {
			continue
		}
		const outdated = "outdated in %s, which go test ./scripts/trace -update writes: %+v"
		require.Equal(t, is.way, said[i].way)
		require.InEpsilon(t, is.functions, said[i].functions, tolerated, outdated, document, said[i])
		require.InEpsilon(t, is.files, said[i].files, tolerated, outdated, document, said[i])
		require.InEpsilon(t, is.packages, said[i].packages, tolerated, outdated, document, said[i])
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+table+"\n"+after), 0o600))
	}
}

// documented returns the table of the document, and what is before and after it.
func documented(t *testing.T) (before string, ways []extent, after string) {
	t.Helper()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), tableHead)
	require.True(t, found, "the table is missing in %s", document)
	table, after, _ := strings.Cut(rest, "\n\n")
	rows := strings.Split(table, "\n")
	require.Len(t, rows, len(bounds))
	ways = make([]extent, len(rows))
	for i, row := range rows {
		way := &ways[i]
		_, err = fmt.Sscanf(row+"\n", wayRow, &way.way, &way.functions, &way.files, &way.packages)
		require.NoError(t, err, row)
	}
	return before, ways, after
}

// trace measures the ways.
func trace(t *testing.T) []extent {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "../trace.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 1+len(bounds))
	ways := make([]extent, len(bounds))
	for i := range ways {
		way := &ways[i]
		_, err := fmt.Sscan(lines[1+i], &way.way, &way.functions, &way.files, &way.packages)
		require.NoError(t, err)
	}
	return ways
}
