// Package cli has what the commands of wakebell share: a run of the program with
// its exit codes, flags, the connection to Redis or to a node, and printing.
package cli

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

// App is one run of the program.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	RedisURL string // of --redis; empty: of the environment
	Prefix   string // of the names of topics
	Keys     wakebelltype.Keys
	Celery   bool           // runs of Python's schedules are Celery messages
	Zone     *time.Location // of crontabs without one; nil: UTC
	TurnTTL  time.Duration  // of gate hold at a node; 0: the default

	payloadKeys string         // of --payload-keys; empty: of the environment
	payloads    *payload.Chain // that decodes what is shown; nil before a connection
	encrypts    bool           // it has keys

	tls    tlsFlags
	remote remoteFlags
	output Choice
	color  Choice
	times  Choice

	notes    io.Writer                       // stderr as it was given, to see whether it is a terminal
	progress atomic.Pointer[output.Progress] // of the command; nil: none
	waiting  *waiting                        // of the connection to Redis; nil before it

	// began is set when a command's own code runs. Errors before that are usage
	// errors: an unknown command or flag, a missing argument.
	began bool

	// interrupted ends with the first signal, or with the context of Run.
	interrupted context.Context

	// forced ends with the second signal. It kills the processes that children
	// counts.
	forced   context.Context
	children sync.WaitGroup
}

// Does wraps a command's own code as a RunE.
func (a *App) Does(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return fn(cmd.Context(), args)
	}
}
