// Package queues has the commands for queues and their dead letters.
package queues

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Command returns the command queue.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Publish to, inspect, drain and purge queues",
		Long: `Queues hold messages for immediate delivery. Their keys are those of
redis-message-queue, so that Python programs can publish and consume as well.
wakebell node --queue handles them.`,
		Example: `  wakebell queue publish --queue mail --text hello --dedup-key welcome-42
  wakebell queue stats --queue mail --since 6h
  wakebell node --queue mail --exec './send.sh'`,
		RunE: cli.MissingCommand,
	}
	cmd.AddCommand(publishCommand(a), lsCommand(a), statsCommand(a), historyCommand(a),
		drainCommand(a), purgeCommand(a), rmCommand(a), deadCommand(a))
	return cmd
}

// client is the client of a command about queues: of Redis or of a node.
type client interface {
	queue.Publisher
	queue.Operator
}

// ask runs fn with the queues of the node of --remote or, without it, of the
// Redis of --redis.
func ask(ctx context.Context, a *cli.App, fn func(client) error) error {
	if a.RemoteAddress() == "" {
		return a.WithClient(func(c *wakebell.Client) error { return fn(c.Queues()) })
	}
	return a.WithNode(ctx, func(c *remote.Client) error { return fn(c.Queues()) })
}

// nameFlag adds the required flag --queue and the flags of its keys.
func nameFlag(cmd *cobra.Command, q *wakebelltype.QueueKeys) {
	cmd.Flags().StringVar(&q.Name, "queue", "", "the `queue`")
	_ = cmd.MarkFlagRequired("queue") // the flag is there, so this cannot fail
	cli.SeparatorFlag(cmd, q)
}
