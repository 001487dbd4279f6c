//go:build unix

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	lookLimit = time.Minute
	lookAgain = 50 * time.Millisecond
)

// looks matches commands that change nothing. The test repeats them until the output
// is that of the document.
var looks = regexp.MustCompile(`^(cat|grep|tail|wakebell (topics|ls|get|dead ls|dead show|stats|doctor|tail))\b`)

// walk follows a document in a shell: it writes the files, runs the commands in
// order, and compares their output.
type walk struct {
	t      *testing.T
	shell  *shell
	dir    string
	update bool

	// standIns are run in place of commands that need a network. names maps the
	// addresses and entries of the document to the real ones, in commands and files.
	standIns map[string]string
	names    map[string]string
}

// through returns the document with the real outputs.
func (w *walk) through(d document) string {
	w.t.Helper()
	outputs := map[int]string{}
	for _, b := range d.blocks {
		if b.file != "" {
			w.write(b)
		}
		for _, s := range b.steps {
			outputs[s.from] = w.step(s)
		}
	}
	return d.with(outputs)
}

// write writes a file into the directory of the shell.
func (w *walk) write(b block) {
	w.t.Helper()
	dir, code := w.shell.run("pwd")
	require.Zero(w.t, code)
	mode := os.FileMode(0o600)
	if filepath.Ext(b.file) == ".sh" {
		mode = 0o700
	}
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, b.file), []byte(w.real(b.content)), mode))
}

// step runs a command and returns its output.
func (w *walk) step(s step) string {
	w.t.Helper()
	want := steady(s.output)
	var output string
	var code int
	for began := time.Now(); ; <-time.After(lookAgain) {
		output, code = w.shell.run(w.real(s.command))
		again := looks.MatchString(s.command) && time.Since(began) < w.patience()
		if steady(output) == want || !again {
			break
		}
	}
	if w.update && steady(output) != want {
		said := w.said(output)
		w.learn(said, output)
		return said
	}
	require.Equal(w.t, want, steady(output), "%s\n%s", s, output)
	failed := strings.HasPrefix(output, "wakebell: ") && !strings.HasPrefix(output, "wakebell: warning: ")
	require.Equal(w.t, failed, code != 0, "%s ended with %d\n%s", s, code, output)
	w.learn(s.output, output)
	return s.output
}

func (w *walk) patience() time.Duration {
	if w.update {
		return lookLimit / 15
	}
	return lookLimit
}

// real returns the text to run for a command, or to write for a file.
func (w *walk) real(text string) string {
	if standIn, ok := w.standIns[text]; ok {
		return standIn
	}
	for name, real := range w.names {
		text = strings.ReplaceAll(text, name, real)
	}
	return text
}

// said is the inverse of real: it returns output with the names of the document.
func (w *walk) said(output string) string {
	for name, real := range w.names {
		output = strings.ReplaceAll(output, real, name)
	}
	return output
}

// entry matches the id of a dead letter.
var entry = regexp.MustCompile(`\b\d{13}-\d+\b`)

// learn records which real dead letter each entry of the document stands for.
func (w *walk) learn(said, seen string) {
	actual := entry.FindAllString(seen, -1)
	for i, name := range entry.FindAllString(said, len(actual)) {
		w.names[name] = actual[i]
	}
}

// variable matches output that differs between runs or machines.
var variable = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "INSTANT"},
	{entry, "ENTRY"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UUID"},
	{regexp.MustCompile(`"lateness_ms":[0-9.]+`), "LATENESS"},
	{regexp.MustCompile(`(paused by +)\S+`), "${1}OPERATOR"},
	{regexp.MustCompile(`"paused_by":"[^"]*"`), "OPERATOR"},
	{regexp.MustCompile(`\b([0-9.]+[hm])*[0-9.]+m?s\b|\(cached\)`), "DURATION"},
	{regexp.MustCompile(`[0-9.]+ MiB`), "SIZE"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	{regexp.MustCompile(`[ \t]+`), " "}, // the width of a column depends on its content
}

// unused matches the warning about a topic without timers and nodes. Whether a node that
// was just started is seen depends on the machine.
var unused = regexp.MustCompile(`(?m)^wakebell: warning: topic .* no node handles it.*\n`)

// steady returns output without its variable parts.
func steady(output string) string {
	output = unused.ReplaceAllString(output, "")
	for _, w := range variable {
		output = w.pattern.ReplaceAllString(output, w.name)
	}
	return output
}
