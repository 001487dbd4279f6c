package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// recordLimit bounds the entry of a change in the audit, which is written after an
// interrupt too.
const recordLimit = 5 * time.Second

// client changes timers and records what a command changed.
type client interface {
	wakebell.TimerClient
	overviews
	RecordChange(ctx context.Context, c wakebelltype.Change) error
}

// record writes the entry of what a command changed. The calls of a principal without
// the right to operate are those of a program, which have no entry.
func record(ctx context.Context, a *cli.App, c client, change wakebelltype.Change, fault error) {
	if change.Count == 0 {
		return
	}
	if fault != nil {
		change.Error = fault.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	err := c.RecordChange(ctx, change)
	if err != nil && !errors.Is(err, wakebell.ErrForbidden) && !errors.Is(err, remote.ErrDenied) {
		a.Notef("wakebell: the audit has no entry of this: %s\n", output.Escape(output.Fault(err)))
	}
}

// maxNamed is the number of ids that an entry of the audit names.
const maxNamed = 10

// named describes timers by their ids.
func named(ids []string) string {
	text := "ids: " + strings.Join(ids[:min(len(ids), maxNamed)], " ")
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
