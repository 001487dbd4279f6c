package timers

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

func runNowCommand(a *cli.App) *cobra.Command {
	var topic string
	f := &bulkFlags{}
	cmd := &cobra.Command{
		Use:   "run-now --topic TOPIC (ID... | --search TEXT)",
		Short: "Make timers due now",
		Long: `Makes timers due now and prints the state of each before: pending, running or
absent. A running timer is not changed. A timer that waits for its next attempt
keeps its attempts. If one is absent, the others are due and the exit code is 3.

--search makes the timers due that ls --search lists. It asks for confirmation on a
terminal and requires --yes elsewhere. --dry-run lists them, as ls does, and
changes none.

With -o json each is a line with topic, id and presence.`,
		Example: `  wakebell run-now --topic invoices inv-42 inv-43
  wakebell run-now -t invoices --search inv-2031- --dry-run`,
	}
	a.TopicFlag(cmd, &topic, "`topic` of the timers")
	a.OutputFlag(cmd)
	f.register(cmd, "do not ask for confirmation of --search")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("search") {
			return cli.NoArgs(cmd, args)
		}
		return cobra.MinimumNArgs(1)(cmd, args)
	}
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		searches, err := f.searches()
		if err != nil {
			return err
		}
		if searches {
			return a.Ask(ctx, func(c cli.Client) error { return runFoundNow(ctx, a, c, topic, f) })
		}
		return a.Ask(ctx, func(c cli.Client) error { return runTimersNow(ctx, a, c, topic, args) })
	})
	return cmd
}

// runFoundNow makes the timers of a search due.
func runFoundNow(ctx context.Context, a *cli.App, c client, topic string, f *bulkFlags) error {
	list := newPresenceList(a, topic)
	change := func(ctx context.Context, ids []string) (int, error) {
		running := 0 // not changed
		found, err := each(ids, func(id string) (wakebelltype.Presence, error) {
			return c.RunNow(ctx, topic, id)
		}, func(id string, presence wakebelltype.Presence) error {
			if presence == wakebelltype.PresenceRunning {
				running++
			}
			return list.add(id, presence, presenceNow(presence))
		})
		return found - running, err
	}
	b := bulk{verb: "run", done: "made due", topic: topic, operation: wakebelltype.AuditTopicRunNow, change: change}
	err := b.run(ctx, a, c, f)
	return errors.Join(err, list.End())
}

// runTimersNow prints what was done also after an error.
func runTimersNow(ctx context.Context, a *cli.App, c client, topic string, ids []string) error {
	absent := 0
	var fault error
	var found []string
	list := newPresenceList(a, topic)
	for _, id := range ids {
		presence, err := c.RunNow(ctx, topic, id)
		if errors.Is(err, wakebell.ErrNotFound) {
			absent++
			presence, err = wakebelltype.PresenceAbsent, nil
		} else if err == nil && presence != wakebelltype.PresenceRunning {
			found = append(found, id)
		}
		if err == nil {
			err = list.add(id, presence, presenceNow(presence))
		}
		if err != nil {
			fault = err
			break
		}
	}
	record(ctx, a, c, wakebelltype.Change{
		Operation: wakebelltype.AuditTopicRunNow, Name: topic, Count: int64(len(found)), Detail: named(found),
	}, fault)
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
