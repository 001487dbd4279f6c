package queues

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// removedLine is the JSON line of queue rm.
type removedLine struct {
	Queue   string `json:"queue"`
	Removed bool   `json:"removed"`
	Use     string `json:"use"`
}

func rmCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	cmd := &cobra.Command{
		Use:   "rm --queue QUEUE",
		Short: "Remove an unused queue from the list",
		Long: `Removes a queue from the list of queues. A queue with messages, dead letters or kept
payloads stays, and so does one that a node handles: the exit code is 1 then. It is 3
if the queue is not listed. Consumers in Python are not seen. A queue that is
published to again is listed again within a minute.

With -o json it prints one line with queue, removed and use (what uses the queue).`,
		Example: `  wakebell queue rm --queue mial`,
		Args:    cli.NoArgs,
	}
	nameFlag(cmd, &q)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return ask(ctx, a, func(c client) error { return remove(ctx, a, c, q) })
	})
	return cmd
}

func remove(ctx context.Context, a *cli.App, c client, q wakebelltype.QueueKeys) error {
	r, err := c.Remove(ctx, q)
	if err != nil {
		return err
	}
	line := removedLine{a.Prefix + q.Name, r.Existed && r.Use == "", r.Use}
	switch {
	case a.WantsJSON():
		err = a.PrintJSON(line)
	case line.Removed:
		err = a.Printf("removed %s\n", line.Queue)
	}
	switch {
	case err != nil:
		return err
	case r.Use != "":
		return fmt.Errorf("queue %q is in use by %s and stays", line.Queue, r.Use)
	case !r.Existed:
		return cli.NotFoundf("queue not found: %q", line.Queue)
	default:
		return nil
	}
}
