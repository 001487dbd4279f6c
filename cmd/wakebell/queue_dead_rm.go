package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/wakebell/wakebell"
)

func (a *app) queueDeadRmCommand() *cobra.Command {
	f := &letterChoice{}
	cmd := &cobra.Command{
		Use:   "rm --queue QUEUE (ENTRY | --all)",
		Short: "Delete dead letters of a queue",
		Long: `Deletes dead letters and says how many. If ENTRY is absent the exit code is 3.
It asks on a terminal, and wants --yes elsewhere.

With -o json it prints one line with queue and deleted, a number.`,
		Example: `  wakebell queue dead rm --queue mail --all`,
		Args:    cobra.MaximumNArgs(1),
	}
	f.register(cmd)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		if err := f.choose(args); err != nil {
			return err
		}
		return a.ask(ctx, func(c asked) error {
			if err := a.confirmed(ctx, c, f, "Delete"); err != nil {
				return err
			}
			return a.queueDeadRm(ctx, c, f)
		})
	})
	return cmd
}

func (a *app) queueDeadRm(ctx context.Context, c wakebell.QueueOperator, f *letterChoice) error {
	if f.entry == "" {
		n, err := deleteQueueLetters(ctx, c, f.queue)
		if err != nil {
			return err
		}
		return a.printDeleted(f.queue, n)
	}
	l, err := c.QueueLetter(ctx, f.queue, f.entry)
	if err != nil {
		return err
	}
	n, err := c.DeleteQueueLetters(ctx, f.queue, l)
	if err != nil {
		return soFar(err, int64(n), "dead letters were deleted; the same command goes on")
	}
	return a.printDeleted(f.queue, int64(n))
}

// deleteQueueLetters deletes the dead letters that there are when it begins, the
// oldest first, a page at a time.
func deleteQueueLetters(ctx context.Context, c wakebell.QueueOperator, q wakebell.QueueName) (deleted int64, err error) {
	const page = 500
	st, err := c.QueueStats(ctx, q)
	if err != nil {
		return 0, err
	}
	for left := st.Dead; left > 0; {
		letters := make([]wakebell.QueueLetter, 0, page)
		for l, err := range c.QueueLetters(ctx, q, 0) {
			if err != nil {
				return deleted, err
			}
			if letters = append(letters, l); len(letters) == int(min(left, page)) {
				break
			}
		}
		n, err := c.DeleteQueueLetters(ctx, q, letters...)
		deleted += int64(n)
		if err != nil || n == 0 {
			return deleted, err
		}
		left -= int64(len(letters))
	}
	return deleted, nil
}
