package cli

import (
	"fmt"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

// WantsJSON reports whether --output is json.
func (a *App) WantsJSON() bool { return a.output.value == "json" }

// PrintJSON prints v as one line of JSON.
func (a *App) PrintJSON(v any) error {
	line, err := output.JSONLine(v)
	if err != nil {
		return err
	}
	return a.Write(line)
}

// Printf prints text. Escape what is not the program's own.
func (a *App) Printf(format string, args ...any) error {
	return a.Write(fmt.Appendf(nil, format, args...))
}

// Write prints text in one call.
func (a *App) Write(text []byte) error {
	if _, err := a.Stdout.Write(text); err != nil {
		return fmt.Errorf("%w: %w", output.ErrStdout, err)
	}
	return nil
}

// Notef writes to stderr. An error of that has no place to be reported.
func (a *App) Notef(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stderr, format, args...)
}

// PrintRows prints the fields of one object, one name and value per line.
func (a *App) PrintRows(rows [][2]string) error {
	out := output.NewTable(a.Stdout)
	for _, row := range rows {
		out.Row(row[0], row[1])
	}
	return out.Flush()
}
