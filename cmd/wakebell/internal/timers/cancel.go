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

type cancelFlags struct {
	topic string
	all   bool
	bulkFlags
}

func cancelCommand(a *cli.App) *cobra.Command {
	f := &cancelFlags{}
	cmd := &cobra.Command{
		Use:   "cancel --topic TOPIC (ID... | --all | --search TEXT)",
		Short: "Cancel timers",
		Long: `Cancels timers and prints the state of each before: pending, running (its
handler's context is cancelled) or absent. If one is absent, the others are
cancelled and the exit code is 3. With -o json each is a line with topic, id and
presence.

--all cancels every timer of the topic, running ones included; dead letters
stay. It asks for confirmation on a terminal and requires --yes elsewhere. With
-o json it prints one line with topic and cancelled, a number.

--search cancels the timers that ls --search lists, after the same question.
--dry-run lists them, as ls does, and cancels none.`,
		Example: `  wakebell cancel --topic invoices inv-42 inv-43
  wakebell cancel -t invoices --all --yes
  wakebell cancel -t invoices --search inv-2031- --dry-run`,
	}
	a.TopicFlag(cmd, &f.topic, "`topic` of the timers")
	cmd.Flags().BoolVar(&f.all, "all", false, "cancel all timers of the topic")
	f.register(cmd, "do not ask for confirmation of --all and --search")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		searches, err := f.searches()
		switch {
		case err != nil:
			return err
		case searches && (f.all || len(args) > 0):
			return cli.Usagef("give one of ids, --all and --search")
		case searches:
			return a.Ask(ctx, func(c cli.Client) error { return cancelFound(ctx, a, c, f) })
		case f.all == (len(args) > 0):
			return cli.Usagef("give either ids or --all, or --search")
		}
		if f.all {
			return a.Ask(ctx, func(c cli.Client) error { return cancelAll(ctx, a, c, f) })
		}
		return a.Ask(ctx, func(c cli.Client) error { return cancelTimers(ctx, a, c, f.topic, args) })
	})
	return cmd
}

type presenceLine struct {
	Topic    string `json:"topic"`
	ID       string `json:"id"`
	Presence string `json:"presence"`
}

func cancelTimers(ctx context.Context, a *cli.App, c client, topic string, ids []string) error {
	presences, err := c.Cancel(ctx, topic, ids...)
	if err != nil {
		return err
	}
	var found []string
	for i, presence := range presences {
		if presence != wakebelltype.PresenceAbsent {
			found = append(found, ids[i])
		}
	}
	record(ctx, a, c, wakebelltype.Change{
		Operation: wakebelltype.AuditTopicCancel, Name: topic, Count: int64(len(found)), Detail: named(found),
	}, nil)
	list := newPresenceList(a, topic)
	for i, presence := range presences {
		if err := list.add(ids[i], presence, presence.String()); err != nil {
			return err
		}
	}
	if err := list.End(); err != nil {
		return err
	}
	if absent := len(ids) - len(found); absent > 0 {
		return fmt.Errorf("%w: %d of %d", wakebell.ErrNotFound, absent, len(ids))
	}
	return nil
}

// cancelFound cancels the timers of a search.
func cancelFound(ctx context.Context, a *cli.App, c client, f *cancelFlags) error {
	list := newPresenceList(a, f.topic)
	change := func(ctx context.Context, ids []string) (cancelled int, err error) {
		presences, err := c.Cancel(ctx, f.topic, ids...)
		for i, presence := range presences {
			if presence == wakebelltype.PresenceAbsent { // handled or cancelled since the search
				continue
			}
			cancelled++
			err = errors.Join(err, list.add(ids[i], presence, presence.String()))
		}
		return cancelled, err
	}
	b := bulk{verb: "cancel", done: "cancelled", topic: f.topic, operation: wakebelltype.AuditTopicCancel, change: change}
	err := b.run(ctx, a, c, &f.bulkFlags)
	return errors.Join(err, list.End())
}

// presenceList is a listing of what was found of timers that a command changed.
type presenceList struct {
	*cli.Listing
	topic string
}

func newPresenceList(a *cli.App, topic string) presenceList {
	return presenceList{a.NewListing(0, output.Text("ID"), output.Short("WAS")), a.Prefix + topic}
}

func (l presenceList) add(id string, presence wakebelltype.Presence, shown string) error {
	return l.Add(presenceLine{l.topic, id, presence.String()}, id, shown)
}

func cancelAll(ctx context.Context, a *cli.App, c wakebell.Operator, f *cancelFlags) error {
	err := a.Confirm(f.yes, func() (string, error) {
		stats, err := c.Stats(ctx, f.topic)
		return fmt.Sprintf("Cancel all %d timers of %s?", stats.Total, a.Prefix+f.topic), err
	})
	if err != nil {
		return err
	}
	stop := a.Follow(ctx, "cancel", func(ctx context.Context) (int64, error) {
		stats, err := c.Stats(ctx, f.topic)
		return stats.Total, err
	})
	n, err := c.CancelAll(ctx, f.topic)
	stop()
	if err != nil {
		return cli.SoFar(err, n, "timers were cancelled, and possibly more")
	}
	if a.WantsJSON() {
		return a.PrintJSON(struct {
			Topic     string `json:"topic"`
			Cancelled int64  `json:"cancelled"`
		}{a.Prefix + f.topic, n})
	}
	return a.Printf("cancelled %d\n", n)
}
