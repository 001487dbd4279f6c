package main

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/wakebelltype"
)

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	redisURL string
	tls      tlsFlags
	remote   remoteFlags
	prefix   string
	keys     wakebelltype.Keys
	celery   bool          // runs of Python's schedules are Celery messages
	turnTTL  time.Duration // of gate hold at a node; 0: the default
	output   choice

	// began is set when a command's own code runs. Errors before that are usage
	// errors: an unknown command or flag, a missing argument.
	began bool

	// interrupted ends with the first signal, or with the context of run.
	interrupted context.Context

	// forced ends with the second signal. It kills the processes that children
	// counts.
	forced   context.Context
	children sync.WaitGroup
}

// does wraps a command's own code as a RunE.
func (a *app) does(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return fn(cmd.Context(), args)
	}
}
