package queues

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

func drainCommand(a *cli.App) *cobra.Command {
	var q wakebelltype.QueueKeys
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain --queue QUEUE",
		Short: "Wait until a queue is empty",
		Long: `Waits until the queue has no pending messages and no consumer holds one. Stop the
publishers first, and keep the consumers running. The exit code is 1 if --timeout
expires. It prints what is left; with -o json as queue stats does.`,
		Example: `  wakebell queue drain --queue mail --timeout 10m`,
		Args:    cli.NoArgs,
	}
	nameFlag(cmd, &q)
	cli.DurationVar(cmd.Flags(), &timeout, "timeout", 0, "how long to wait; 0: no limit")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if timeout < 0 {
			return cli.Usagef("--timeout: %v is negative", timeout)
		}
		return ask(ctx, a, func(c client) error {
			if timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the queue is not empty after %v", timeout))
				defer stop()
			}
			stop := followStats(ctx, a, c, "drain", q, func(st wakebelltype.QueueStats) int64 { return st.Pending + st.Processing })
			st, err := queue.Drain(ctx, c, q)
			stop()
			return errors.Join(err, printStats(a, q, st, nil))
		})
	})
	return cmd
}
