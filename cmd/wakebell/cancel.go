package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

type cancelFlags struct {
	topic    string
	all, yes bool
}

func cancelCommand(a *app) *cobra.Command {
	f := &cancelFlags{}
	cmd := &cobra.Command{
		Use:   "cancel --topic TOPIC (ID... | --all)",
		Short: "Cancel timers",
		Long: `Cancels timers and prints the state of each before: pending, running (its
handler's context is cancelled) or absent. If one is absent, the others are
cancelled and the exit code is 3. With -o json each is a line with topic, id and
presence.

--all cancels every timer of the topic, running ones included; dead letters
stay. It asks for confirmation on a terminal and requires --yes elsewhere. With
-o json it prints one line with topic and cancelled, a number.`,
		Example: `  wakebell cancel --topic invoices inv-42 inv-43
  wakebell cancel -t invoices --all --yes`,
	}
	a.topicFlag(cmd, &f.topic, "`topic` of the timers")
	cmd.Flags().BoolVar(&f.all, "all", false, "cancel all timers of the topic")
	yesFlag(cmd, &f.yes, "do not ask for confirmation of --all")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		if f.all == (len(args) > 0) {
			return usagef("give either ids or --all")
		}
		if f.all {
			return a.ask(ctx, func(c asked) error { return cancelAll(ctx, a, c, f) })
		}
		return a.ask(ctx, func(c asked) error { return cancelTimers(ctx, a, c, f.topic, args) })
	})
	return cmd
}

type presenceLine struct {
	Topic    string `json:"topic"`
	ID       string `json:"id"`
	Presence string `json:"presence"`
}

func cancelTimers(ctx context.Context, a *app, c wakebell.TimerClient, topic string, ids []string) error {
	presences, err := c.Cancel(ctx, topic, ids...)
	if err != nil {
		return err
	}
	absent := 0
	list := a.newListing(0, "ID", "WAS")
	for i, presence := range presences {
		if presence == wakebelltype.PresenceAbsent {
			absent++
		}
		line := presenceLine{a.prefix + topic, ids[i], presence.String()}
		if err := list.add(line, line.ID, line.Presence); err != nil {
			return err
		}
	}
	if err := list.end(); err != nil {
		return err
	}
	if absent > 0 {
		return fmt.Errorf("%w: %d of %d", wakebell.ErrNotFound, absent, len(ids))
	}
	return nil
}

func cancelAll(ctx context.Context, a *app, c wakebell.Operator, f *cancelFlags) error {
	err := a.confirm(f.yes, func() (string, error) {
		stats, err := c.Stats(ctx, f.topic)
		return fmt.Sprintf("Cancel all %d timers of %s?", stats.Total, a.prefix+f.topic), err
	})
	if err != nil {
		return err
	}
	n, err := c.CancelAll(ctx, f.topic)
	if err != nil {
		return soFar(err, n, "timers were cancelled, and possibly more")
	}
	if a.wantsJSON() {
		return a.printJSON(struct {
			Topic     string `json:"topic"`
			Cancelled int64  `json:"cancelled"`
		}{a.prefix + f.topic, n})
	}
	return a.printf("cancelled %d\n", n)
}
