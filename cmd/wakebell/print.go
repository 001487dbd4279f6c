package main

import (
	"fmt"
)

func (a *app) wantsJSON() bool { return a.output.value == "json" }

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
