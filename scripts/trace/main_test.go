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

// bounds are the most that each way may have. Lower one when its way becomes shorter. Those
// of the ways with actors have room for what runs on a busy machine only.
var bounds = []extent{
	{"schedule", 60, 18, 10},
	{"deliver", 270, 82, 20},
	{"subscribe", 440, 125, 30},
}

// tolerated is the part by which a documented figure may differ from a measured one.
const tolerated = 0.1

// TestWaysAreBoundedAndDocumented measures the ways by scripts/trace.sh, holds each to its
// bound, and compares the table in docs/architecture.md, which -update writes.
func TestWaysAreBoundedAndDocumented(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the module again, with coverage; make test runs it without -short too")
	}
	trace := exec.CommandContext(t.Context(), "bash", "../trace.sh")
	trace.Stderr = os.Stderr
	out, err := trace.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 1+len(bounds))
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), tableHead)
	require.True(t, found, "the table is missing in %s", document)
	documented, after, _ := strings.Cut(rest, "\n\n")
	rows, table := strings.Split(documented, "\n"), tableHead
	require.Len(t, rows, len(bounds))
	for i, most := range bounds {
		var is, said extent
		_, err := fmt.Sscan(lines[1+i], &is.way, &is.functions, &is.files, &is.packages)
		require.NoError(t, err)
		require.Equal(t, most.way, is.way)
		require.LessOrEqual(t, is.functions, most.functions, "functions; scripts/trace.sh %s lists them", is.way)
		require.LessOrEqual(t, is.files, most.files, "files of %s", is.way)
		require.LessOrEqual(t, is.packages, most.packages, "packages of %s", is.way)
		table += fmt.Sprintf(wayRow, is.way, is.functions, is.files, is.packages)
		if *update {
			continue
		}
		const outdated = "outdated in %s, which go test ./scripts/trace -update writes: %s"
		_, err = fmt.Sscanf(rows[i]+"\n", wayRow, &said.way, &said.functions, &said.files, &said.packages)
		require.NoError(t, err, rows[i])
		require.Equal(t, is.way, said.way)
		require.InEpsilon(t, is.functions, said.functions, tolerated, outdated, document, rows[i])
		require.InEpsilon(t, is.files, said.files, tolerated, outdated, document, rows[i])
		require.InEpsilon(t, is.packages, said.packages, tolerated, outdated, document, rows[i])
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+table+"\n"+after), 0o600))
	}
}
