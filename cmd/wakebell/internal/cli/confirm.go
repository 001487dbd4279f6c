package cli

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

var errNothingDone = errors.New("nothing was done")

// Confirm asks on a terminal before a destructive operation. sure, from --yes,
// skips the question. It fails without a terminal, on any answer but yes, and on
// the first signal. Commands validate their flags before they ask.
func (a *App) Confirm(sure bool, question func() (string, error)) error {
	if sure {
		return nil
	}
	if !output.IsTerminal(a.Stdin) {
		return Usagef("--yes is required without a terminal")
	}
	text, err := question()
	if err != nil {
		return err
	}
	a.Notef("%s [y/N] ", output.Escape(text))
	answer := make(chan bool, 1)
	go func() { answer <- readYes(a.Stdin) }() // a read that is given up ends with the process
	select {
	case yes := <-answer:
		if !yes {
			return errNothingDone
		}
		return nil
	case <-a.interrupted.Done():
		a.Notef("\n")
		return errNothingDone
	}
}

// readYes reports whether the answer is y or yes, in any case.
func readYes(in io.Reader) bool {
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && answer == "" {
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
