package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func (a *app) topicsCommand() *cobra.Command {
	var discover bool
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the topics with their counts",
		Long: `Lists the topics on which Wakebell scheduled or which a node handled, with the
number of their timers, of those due, and of their dead letters, and whether
they are paused. With --prefix only those that start so; the names are shown in
full.

--discover also finds topics that only Python peers know. It walks over all
keys of Redis, which takes as long as Redis is large.

With -o json each topic is a line with topic, timers, due, dead, paused,
paused_at, paused_by and paused_reason.`,
		Example: `  wakebell topics
  wakebell topics --discover -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&discover, "discover", false, "walk over all keys to find topics of Python peers")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		prefix := a.prefix
		a.prefix = "" // the names of topics are full ones
		return a.withClient(func(c *wakebell.Client) error { return a.topics(ctx, c, prefix, discover) })
	})
	return cmd
}

type topicLine struct {
	Topic  string `json:"topic"`
	Timers int64  `json:"timers"`
	Due    int64  `json:"due"`
	Dead   int64  `json:"dead"`
	pauseLine
}

func (a *app) topics(ctx context.Context, c *wakebell.Client, prefix string, discover bool) error {
	var names []string
	for name, err := range c.Topics(ctx, discover) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list := a.newListing(0, "TOPIC", "TIMERS", "DUE", "DEAD", "PAUSED")
	for _, name := range names {
		counts, err := c.Count(ctx, name)
		if err != nil {
			return err
		}
		control, err := c.Control(ctx, name)
		if err != nil {
			return err
		}
		line := topicLine{name, counts.Total, counts.Due, counts.Dead, newPauseLine(control)}
		err = list.add(line, name, number(line.Timers), number(line.Due), number(line.Dead), yesNo(line.Paused))
		if err != nil {
			return err
		}
	}
	return list.end()
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
