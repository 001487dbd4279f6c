// Package queues has the commands for queues and their dead letters.
package queues

import (
	"context"
	"fmt"

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

// requireQueue returns an error with exit code 3 if a queue is not there: it is empty and
// not listed. It returns nil if it cannot know, as without the right to list queues.
func requireQueue(ctx context.Context, a *cli.App, c queue.Operator, q wakebelltype.QueueKeys) error {
	st, err := c.Stats(ctx, q)
	if err != nil || st.Pending+st.Processing+st.Completed+st.Failed+st.Dead > 0 {
		return nil
	}
	var names []string // without the prefix, as q has it
	for known, err := range c.List(ctx, wakebelltype.Page{}) {
		if err != nil || known.Keys.Name == q.Name {
			return nil
		}
		names = append(names, known.Keys.Name)
	}
	full := q.Name
	if a.RemoteAddress() == "" {
		full = a.Prefix + q.Name
	}
	text := fmt.Sprintf("queue %q has no messages, and no node handles it", full)
	if near := cli.NearestName(q.Name, names); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return cli.NotFoundf("%s", text)
}
