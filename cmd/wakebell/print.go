package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// choice is a flag with a few allowed values.
type choice struct {
	value   string
	allowed []string
}

func oneOf(preset string, others ...string) choice {
	return choice{preset, append([]string{preset}, others...)}
}

func (c *choice) String() string { return c.value }

// Type is shown in the help as the flag's value.
func (c *choice) Type() string { return strings.Join(c.allowed, "|") }

// Set takes one of the allowed values.
func (c *choice) Set(value string) error {
	for _, allowed := range c.allowed {
		if value == allowed {
			c.value = value
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(c.allowed, ", "))
}

// outputFlag adds --output.
func (a *app) outputFlag(cmd *cobra.Command) {
	a.output = oneOf("table", "json")
	cmd.Flags().VarP(&a.output, "output", "o", "a table, or one JSON object per line")
	completeChoice(cmd, "output", a.output)
}

func (a *app) wantsJSON() bool { return a.output.value == "json" }

// errStdout means that stdout cannot be written, as when its reader has exited.
var errStdout = errors.New("write to stdout")

// jsonLine encodes v as one line, without HTML escaping. Characters that can affect
// a terminal are escaped.
func jsonLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return escapeJSON(buf.Bytes()), nil
}

func (a *app) printJSON(v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	return a.write(line)
}

func (a *app) printf(format string, args ...any) error {
	return a.write(fmt.Appendf(nil, format, args...))
}

func (a *app) write(text []byte) error {
	if _, err := a.stdout.Write(text); err != nil {
		return fmt.Errorf("%w: %w", errStdout, err)
	}
	return nil
}

// notef writes to stderr. An error of that has no place to be reported.
func (a *app) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format, args...)
}

// printRows prints the fields of one object, one name and value per line.
func (a *app) printRows(rows [][2]string) error {
	out := newTable(a.stdout)
	for _, row := range rows {
		out.row(row[0], row[1])
	}
	return out.flush()
}

// stamp formats an instant for output; empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// isTerminal reports whether f looks like a terminal: a character device other
// than the null device.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// lockedWriter serializes the writes of several goroutines.
type lockedWriter struct {
	mu    sync.Mutex
	w     io.Writer
	ended bool
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return len(p), nil
	}
	return l.w.Write(p)
}

// end discards what is written from now on: a connection that is still being
// dialled may fail after the command has returned.
func (l *lockedWriter) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// fault formats an error as one line; empty for none.
func fault(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
