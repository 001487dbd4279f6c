package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) queueDeadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters of a queue, redrive and delete them",
		Long: `Dead letters are messages that were given up: rejected, delivered too often, or
unreadable. Of those that Python consumers gave up only the body is known.`,
		Example: `  wakebell queue dead ls --queue mail
  wakebell queue dead redrive --queue mail --all --yes`,
		RunE: missingCommand,
	}
	cmd.AddCommand(a.queueDeadLsCommand(), a.queueDeadShowCommand(), a.queueDeadRedriveCommand(), a.queueDeadRmCommand())
	return cmd
}

type queueDeadLine struct {
	Queue      string `json:"queue"`
	Entry      string `json:"entry"`
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	Deliveries int    `json:"deliveries"`
	Died       string `json:"died"`
	content
}

func (a *app) queueDeadLine(q wakebell.QueueName, l wakebell.QueueLetter) queueDeadLine {
	return queueDeadLine{a.prefix + q.Name, l.Entry, l.ID, l.Reason, l.Deliveries, stamp(l.At), payload(l.Payload)}
}

func (a *app) queueDeadLsCommand() *cobra.Command {
	var q wakebell.QueueName
	var limit int
	cmd := &cobra.Command{
		Use:   "ls --queue QUEUE",
		Short: "List the dead letters of a queue, oldest first",
		Long: `Lists the dead letters of a queue, oldest first.

With -o json each is a line with queue, entry, id, reason, deliveries, died (the
last four empty of what Python gave up) and, as a node prints them, content_type,
headers, correlation_id, reply_to, and body or body_base64.`,
		Example: `  wakebell queue dead ls --queue mail --limit 0 -o json | jq -r .reason`,
		Args:    cobra.NoArgs,
	}
	queueFlag(cmd, &q)
	limitFlag(cmd, &limit)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		if limit < 0 {
			return usagef("--limit: %d is negative", limit)
		}
		return a.ask(ctx, func(c asked) error {
			list := a.newListing(limit, "ENTRY", "ID", "DIED", "DELIVERIES", "REASON")
			for l, err := range c.QueueLetters(ctx, q, 0) {
				if err != nil {
					return err
				}
				if list.full() {
					break
				}
				line := a.queueDeadLine(q, l)
				if err := list.add(line, l.Entry, l.ID, line.Died, strconv.Itoa(l.Deliveries), l.Reason); err != nil {
					return err
				}
			}
			return list.end()
		})
	})
	return cmd
}

func (a *app) queueDeadShowCommand() *cobra.Command {
	var q wakebell.QueueName
	cmd := &cobra.Command{
		Use:   "show --queue QUEUE ENTRY",
		Short: "Show a dead letter with its body",
		Long: `Shows all of a dead letter, which ls names by its entry; 3 is the exit code when
there is none. With -o json it is one line with the fields of queue dead ls.`,
		Example: `  wakebell queue dead show --queue mail 6b3f… -o json | jq .body`,
		Args:    cobra.ExactArgs(1),
	}
	queueFlag(cmd, &q)
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.ask(ctx, func(c asked) error {
			l, err := c.QueueLetter(ctx, q, args[0])
			if err != nil {
				return err
			}
			d := a.queueDeadLine(q, l)
			if a.wantsJSON() {
				return a.printJSON(d)
			}
			return a.printRows([][2]string{
				{"queue", d.Queue},
				{"entry", d.Entry},
				{"id", d.ID},
				{"reason", d.Reason},
				{"deliveries", strconv.Itoa(d.Deliveries)},
				{"died", d.Died},
				{"body", d.shown()},
			})
		})
	})
	return cmd
}

// letterChoice is what a command that changes dead letters of a queue is given:
// one entry, or all.
type letterChoice struct {
	queue    wakebell.QueueName
	all, yes bool
	entry    string
}

func (f *letterChoice) register(cmd *cobra.Command) {
	queueFlag(cmd, &f.queue)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the queue")
	yesFlag(cmd, &f.yes, "do not ask")
}

func (f *letterChoice) choose(args []string) error {
	if f.all == (len(args) == 1) {
		return usagef("give one of an entry and --all")
	}
	if len(args) == 1 {
		if f.entry = args[0]; f.entry == "" {
			return usagef("the entry is empty")
		}
	}
	return nil
}

// confirmed asks, unless it is about one letter and nothing is lost.
func (a *app) confirmed(ctx context.Context, c wakebell.QueueOperator, f *letterChoice, verb string) error {
	return a.confirm(f.yes, func() (string, error) {
		if f.entry != "" {
			return fmt.Sprintf("%s a dead letter of %s?", verb, a.prefix+f.queue.Name), nil
		}
		st, err := c.QueueStats(ctx, f.queue)
		return fmt.Sprintf("%s %d dead letters of %s?", verb, st.Dead, a.prefix+f.queue.Name), err
	})
}

// maxWindow is the longest window of wakebell.Window.
const maxWindow = 100 * 365 * 24 * time.Hour

type queueRedriveFlags struct {
	letterChoice
	key    string
	window time.Duration
}

func (a *app) queueDeadRedriveCommand() *cobra.Command {
	f := &queueRedriveFlags{}
	cmd := &cobra.Command{
		Use:   "redrive --queue QUEUE (ENTRY | --all)",
		Short: "Make messages of dead letters again",
		Long: `Publishes dead letters again, with fresh ids, and deletes them, each in one
step; says how many. With --dedup-key the message of ENTRY gets that key for
--window. If another message has the key, the letter stays. If ENTRY is absent
the exit code is 3. --all asks on a terminal, and wants --yes elsewhere.

With -o json it prints one line with queue and redriven, a number.`,
		Example: `  wakebell queue dead redrive --queue mail --all --yes`,
		Args:    cobra.MaximumNArgs(1),
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.key, "dedup-key", "", "deduplication `key` of the new message")
	cmd.Flags().DurationVar(&f.window, "window", time.Hour, "how long the key suppresses")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		if err := f.choose(args); err != nil {
			return err
		}
		if f.all && f.key != "" {
			return usagef("--dedup-key: it is for one ENTRY")
		}
		if f.window < time.Millisecond || f.window > maxWindow {
			return usagef("--window: %v, want 1ms to 100 years", f.window)
		}
		return a.ask(ctx, func(c asked) error { return a.queueRedrive(ctx, c, f) })
	})
	return cmd
}

func (a *app) queueRedrive(ctx context.Context, c wakebell.QueueOperator, f *queueRedriveFlags) error {
	var n int64
	q := wakebell.NewQueue[[]byte](f.queue.Name, append(queueOptions(f.queue), wakebell.Window(f.window))...)
	how := q.RedriveKeys()
	if f.entry == "" {
		if err := a.confirmed(ctx, c, &f.letterChoice, "Redrive"); err != nil {
			return err
		}
		var err error
		if n, err = wakebell.RedriveQueue(ctx, c, f.queue, how); err != nil {
			return soFar(err, n, "dead letters were redriven; the same command goes on")
		}
	} else {
		l, err := c.QueueLetter(ctx, f.queue, f.entry)
		if err != nil {
			return err
		}
		how.Key = func(wakebell.QueueLetter) string { return f.key }
		outcome, _, err := c.RedriveQueueLetter(ctx, f.queue, l, how)
		switch {
		case err != nil:
			return err
		case outcome == wakebell.LetterAbsent:
			return fmt.Errorf("%w: dead letter %q", wakebell.ErrNotFound, f.entry)
		case outcome == wakebell.LetterDuplicate:
			a.notef("wakebell: another message has the deduplication key; the letter stays\n")
		default:
			n = 1
		}
	}
	if a.wantsJSON() {
		return a.printJSON(struct {
			Queue    string `json:"queue"`
			Redriven int64  `json:"redriven"`
		}{a.prefix + f.queue.Name, n})
	}
	return a.printf("redriven %d\n", n)
}

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
