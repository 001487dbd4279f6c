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
	a.clearProgress()
	if _, err := a.Stdout.Write(text); err != nil {
		return fmt.Errorf("%w: %w", output.ErrStdout, err)
	}
	return nil
}

// Notef writes to stderr. An error of that has no place to be reported.
func (a *App) Notef(format string, args ...any) {
	a.clearProgress()
	_, _ = fmt.Fprintf(a.Stderr, format, args...)
}

// Screen returns how stdout shows tables, by the flags and the kind of stdout.
func (a *App) Screen() output.Screen {
	s := output.NewScreen(a.Stdout)
	if a.color.value != "auto" && a.color.value != "" {
		s.Color = a.color.value == "always"
	}
	if a.times.value != "auto" && a.times.value != "" {
		s.Relative = a.times.value == "relative"
	}
	return s
}

// PrintRows prints the fields of one object, one name and value per line. Values are
// not cut.
func (a *App) PrintRows(rows [][2]string) error {
	screen := a.Screen()
	screen.Columns = 0
	out := output.NewTable(tableWriter{a}, screen, output.Column{}.Styled(output.Faint), output.Column{})
	for _, row := range rows {
		out.Row(row[0], row[1])
	}
	return out.Flush()
}

// tableWriter writes the lines of a table to stdout.
type tableWriter struct{ app *App }

func (w tableWriter) Write(p []byte) (int, error) {
	w.app.clearProgress()
	return w.app.Stdout.Write(p)
}
