package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Publish to queues, look at them, drain and purge them",
		Long: `Queues hold messages for now. Their keys are those of redis-message-queue, so
that Python publishes to them and consumes from them; wakebell node --queue
handles them.`,
		Example: `  wakebell queue publish --queue mail --text hello --dedup-key welcome-42
  wakebell queue stats --queue mail
  wakebell node --queue mail --exec './send.sh'`,
		RunE: missingCommand,
	}
	cmd.AddCommand(a.queuePublishCommand(), a.queueLsCommand(), a.queueStatsCommand(), a.queueDrainCommand(),
		a.queuePurgeCommand(), a.queueDeadCommand())
	return cmd
}

// queueFlag gives a command the queue that it is about.
func queueFlag(cmd *cobra.Command, q *wakebell.QueueName) {
	cmd.Flags().StringVar(&q.Name, "queue", "", "the `queue`")
	_ = cmd.MarkFlagRequired("queue") // the flag is there, so this cannot fail
	separatorFlag(cmd, q)
}

func separatorFlag(cmd *cobra.Command, q *wakebell.QueueName) {
	cmd.Flags().StringVar(&q.Separator, "separator", "::", "`text` between a queue's name and what a key is for")
	cmd.Flags().StringVar(&q.DeadLetters, "dead-letter-key", "", "`key` of the dead letters (default the queue, the separator, dlq)")
}

// payload is the content of a message, whose kind only its bytes tell.
func payload(body []byte) content {
	c := wakebell.Content{Body: body}
	switch {
	case !utf8.Valid(body):
	case json.Valid(body):
		c.ContentType = "application/json"
	default:
		c.ContentType = "text/plain"
	}
	return newContent(c)
}

type queueStatsLine struct {
	Queue      string `json:"queue"`
	Pending    int64  `json:"pending"`
	Processing int64  `json:"processing"`
	Ended      int64  `json:"ended"`
	Unleased   int64  `json:"unleased"`
	Completed  int64  `json:"completed"`
	Failed     int64  `json:"failed"`
	Dead       int64  `json:"dead"`
	Oldest     string `json:"oldest"`
}

func (a *app) queueStatsCommand() *cobra.Command {
	var q wakebell.QueueName
	cmd := &cobra.Command{
		Use:   "stats --queue QUEUE",
		Short: "Show a queue in numbers",
		Long: `Shows a queue in numbers. With -o json one line with queue; pending, that wait;
processing, that a consumer holds or that wait for their next attempt; of these
ended, whose lease is over, and unleased, that are delivered at most once;
completed and failed, whose payloads are kept; dead letters as dead; and oldest,
when the next one was published, if its id tells.`,
		Example: `  wakebell queue stats --queue mail
  wakebell queue stats --queue mail -o json | jq .pending`,
		Args: cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return a.ask(ctx, func(c asked) error {
			st, err := c.QueueStats(ctx, q)
			if err != nil {
				return err
			}
			return a.printQueueStats(q, st)
		})
	})
	return cmd
}

func (a *app) printQueueStats(q wakebell.QueueName, st wakebell.QueueStats) error {
	line := queueStatsLine{
		a.prefix + q.Name, st.Pending, st.Processing, st.Ended, st.Unleased, st.Completed, st.Failed, st.Dead, stamp(st.Oldest),
	}
	if a.wantsJSON() {
		return a.printJSON(line)
	}
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	return a.printRows([][2]string{
		{"queue", line.Queue},
		{"pending", n(st.Pending)},
		{"processing", n(st.Processing)},
		{"ended", n(st.Ended)},
		{"unleased", n(st.Unleased)},
		{"completed", n(st.Completed)},
		{"failed", n(st.Failed)},
		{"dead", n(st.Dead)},
		{"oldest", line.Oldest},
	})
}

func (a *app) queueDrainCommand() *cobra.Command {
	var q wakebell.QueueName
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain --queue QUEUE",
		Short: "Wait until a queue is empty",
		Long: `Waits until nothing waits in the queue and nobody holds a message of it: stop
the publishers, and let consumers run. When --timeout is over the exit code is 1.
It prints what is left; with -o json as queue stats does.`,
		Example: `  wakebell queue drain --queue mail --timeout 10m`,
		Args:    cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0: until it is empty")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		if timeout < 0 {
			return usagef("--timeout: %v is negative", timeout)
		}
		return a.ask(ctx, func(c asked) error {
			if timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the queue is not empty after %v", timeout))
				defer stop()
			}
			st, err := wakebell.DrainQueue(ctx, c, q)
			return errors.Join(err, a.printQueueStats(q, st))
		})
	})
	return cmd
}

func (a *app) queuePurgeCommand() *cobra.Command {
	var q wakebell.QueueName
	var running, kept, yes bool
	cmd := &cobra.Command{
		Use:   "purge --queue QUEUE",
		Short: "Delete the messages of a queue",
		Long: `Deletes the messages that wait and says how many; dead letters stay. With
--running those that consumers hold go too, with --kept the payloads that are
kept of completed and failed ones. It asks on a terminal, and wants --yes
elsewhere.

With -o json it prints one line with queue and deleted, a number.`,
		Example: `  wakebell queue purge --queue mail
  wakebell queue purge --queue mail --running --kept --yes`,
		Args: cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	cmd.Flags().BoolVar(&running, "running", false, "messages that consumers hold, too")
	cmd.Flags().BoolVar(&kept, "kept", false, "payloads of completed and failed messages, too")
	yesFlag(cmd, &yes, "do not ask")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return a.ask(ctx, func(c asked) error {
			err := a.confirm(yes, func() (string, error) {
				st, err := c.QueueStats(ctx, q)
				return fmt.Sprintf("Delete %d messages of %s that wait?", st.Pending, a.prefix+q.Name), err
			})
			if err != nil {
				return err
			}
			n, err := c.PurgeQueue(ctx, q, running)
			if err == nil && kept {
				var more int64
				more, err = c.PurgeQueueKept(ctx, q)
				n += more
			}
			return errors.Join(err, a.printDeleted(q, n))
		})
	})
	return cmd
}

func (a *app) printDeleted(q wakebell.QueueName, n int64) error {
	if a.wantsJSON() {
		return a.printJSON(struct {
			Queue   string `json:"queue"`
			Deleted int64  `json:"deleted"`
		}{a.prefix + q.Name, n})
	}
	return a.printf("deleted %d\n", n)
}
