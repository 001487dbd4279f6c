// Command speccheck reads delivery logs of `make faults LOG=dir` from stdin, and looks for
// steps of the specification (docs/spec.md) that explain what happened to each timer. It ends
// with 1 if there are none for one of them.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/wakebell/wakebell/internal/faults"
)

func main() {
	violations, err := check(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "speccheck:", err)
	}
	if err != nil || violations > 0 {
		os.Exit(1)
	}
}

// check prints how the specification explains each log, and returns how many timers it does
// not.
func check(in io.Reader, out io.Writer) (violations int, err error) {
	err = faults.ReadLogs(in, func(scenario string, l *faults.DeliveryLog) {
		e := l.Explain()
		violations += len(e.Violations)
		_, _ = fmt.Fprintf(out, "%s: %d timers explained, %d not, %d undecided, %d skipped\n", scenario, e.Timers, len(e.Violations), e.Undecided, e.Skipped)
		for _, v := range e.Violations[:min(len(e.Violations), 5)] {
			_, _ = fmt.Fprintf(out, "FAIL %s: %s\n", scenario, v)
		}
	})
	return violations, err
}
