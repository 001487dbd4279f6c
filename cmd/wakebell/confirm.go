package main

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

var errNothingDone = errors.New("nothing was done")

// confirm asks on a terminal before what cannot be undone, unless sure says that
// --yes was given. It fails where there is no terminal, where the answer is no,
// and with the first signal. Commands check their flags before they ask.
func (a *app) confirm(sure bool, question func() (string, error)) error {
	if sure {
		return nil
	}
	if !isTerminal(a.stdin) {
		return usagef("it wants --yes where nobody can be asked")
	}
	text, err := question()
	if err != nil {
		return err
	}
	a.notef("%s [y/N] ", escape(text))
	answer := make(chan bool, 1)
	go func() { answer <- readYes(a.stdin) }() // the process ends a read that is given up
	select {
	case yes := <-answer:
		if !yes {
			return errNothingDone
		}
		return nil
	case <-a.interrupted.Done():
		a.notef("\n")
		return errNothingDone
	}
}

// readYes takes y or yes, in any case, for a yes; no answer is a no.
func readYes(in io.Reader) bool {
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && answer == "" {
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
