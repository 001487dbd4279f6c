package cli

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

// partialError is the error of a command that has done a part of its work.
type partialError struct {
	done string
	err  error
}

func (e partialError) Error() string { return e.done + ": " + e.err.Error() }

func (e partialError) Unwrap() error { return e.err }

// After adds to the error of a command what was done before it.
func After(done string, err error) error { return partialError{done, err} }

// explain returns the text of the error of a command. For a Redis that cannot be reached
// or is of another kind than its URL says, it is about the command and the server, and
// not about the key that was read when it failed.
func (a *App) explain(cmd *cobra.Command, err error) string {
	what := a.serverFault(err)
	if what == "" || strings.Contains(err.Error(), "\n") { // several errors are shown as they are
		return err.Error()
	}
	text := doing(cmd) + ": " + what
	if partial, ok := errors.AsType[partialError](err); ok {
		text = partial.done + ": " + text
	}
	return text
}

// serverFault says why Redis does not serve a command; empty if the error has another
// cause.
func (a *App) serverFault(err error) string {
	w := a.waiting
	if w == nil {
		return ""
	}
	switch {
	case strings.Contains(err.Error(), "cluster support disabled"):
		return w.server() + " is not a Cluster; use redis:// in place of redis+cluster://"
	case redis.HasErrorPrefix(rootOf(err), "MOVED"):
		return w.server() + " is part of a Cluster; use redis+cluster:// in place of redis://"
	}
	_, network := errors.AsType[net.Error](err)
	if !network && !errors.Is(err, wakebell.ErrUnavailable) {
		return ""
	}
	return w.reason(err)
}

// rootOf returns the innermost error.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// doing names a command with its topic or its queue: list "invoices".
func doing(cmd *cobra.Command) string {
	text := pathOf(cmd)
	if text == "ls" {
		text = "list"
	}
	for _, name := range flagsOfNames {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		for _, value := range FlagValues(f) {
			text += fmt.Sprintf(" %q", value)
		}
	}
	return text
}
