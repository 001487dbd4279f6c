package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

func queueCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Publish to, inspect, drain and purge queues",
		Long: `Queues hold messages for immediate delivery. Their keys are those of
redis-message-queue, so that Python programs can publish and consume as well.
wakebell node --queue handles them.`,
		Example: `  wakebell queue publish --queue mail --text hello --dedup-key welcome-42
  wakebell queue stats --queue mail
  wakebell node --queue mail --exec './send.sh'`,
		RunE: missingCommand,
	}
	cmd.AddCommand(queuePublishCommand(a), queueLsCommand(a), queueStatsCommand(a), queueDrainCommand(a),
		queuePurgeCommand(a), queueDeadCommand(a))
	return cmd
}

// queues is the client of a command about queues: of Redis or of a node.
type queues interface {
	queue.Publisher
	queue.Operator
}

// askQueues runs fn with the queues of the node of --remote or, without it, of the
// Redis of --redis.
func askQueues(ctx context.Context, a *app, fn func(queues) error) error {
	if a.remoteAddress() == "" {
		return a.withClient(func(c *wakebell.Client) error { return fn(c.Queues()) })
	}
	return a.withNode(ctx, func(c *remote.Client) error { return fn(c.Queues()) })
}

// queueFlag adds the required flag --queue and the flags of its keys.
func queueFlag(cmd *cobra.Command, q *wakebelltype.QueueKeys) {
	cmd.Flags().StringVar(&q.Name, "queue", "", "the `queue`")
	_ = cmd.MarkFlagRequired("queue") // the flag is there, so this cannot fail
	separatorFlag(cmd, q)
}
