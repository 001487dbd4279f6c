package timers

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func runNowCommand(a *cli.App) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "run-now --topic TOPIC ID...",
		Short: "Make timers due now",
		Long: `Makes timers due now and prints the state of each before: pending, running or
absent. A running timer is not changed. A timer that waits for its next attempt
keeps its attempts. If one is absent, the others are due and the exit code is 3.

With -o json each is a line with topic, id and presence.`,
		Example: `  wakebell run-now --topic invoices inv-42 inv-43`,
		Args:    cobra.MinimumNArgs(1),
	}
	a.TopicFlag(cmd, &topic, "`topic` of the timers")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return runTimersNow(ctx, a, c, topic, args) })
	})
	return cmd
}

// runTimersNow prints what was done also after an error.
func runTimersNow(ctx context.Context, a *cli.App, c wakebell.TimerClient, topic string, ids []string) error {
	absent := 0
	var fault error
	list := a.NewListing(0, output.Text("ID"), output.Short("WAS"))
	for _, id := range ids {
		presence, err := c.RunNow(ctx, topic, id)
		if errors.Is(err, wakebell.ErrNotFound) {
			absent++
			presence, err = wakebelltype.PresenceAbsent, nil
		}
		if err == nil {
			line := presenceLine{a.Prefix + topic, id, presence.String()}
			err = list.Add(line, id, presenceNow(presence))
		}
		if err != nil {
			fault = err
			break
		}
	}
	if err := list.End(); err != nil || fault != nil {
		return errors.Join(fault, err)
	}
	if absent > 0 {
		return fmt.Errorf("%w: %d of %d", wakebell.ErrNotFound, absent, len(ids))
	}
	return nil
}

func presenceNow(p wakebelltype.Presence) string {
	if p == wakebelltype.PresenceRunning {
		return "running: nothing changed"
	}
	return p.String()
}
