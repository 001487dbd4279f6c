package main

import (
	"context"
	"slices"
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
full. What cannot be read of a topic is its fault; the others are listed.

--discover also finds topics that only Python peers know. It walks over all
keys of Redis, which takes as long as Redis is large.

With -o json each topic is a line with topic, timers, due, dead, paused,
paused_at, paused_by, paused_reason and fault.`,
		Example: `  wakebell topics
  wakebell topics --discover -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&discover, "discover", false, "walk over all keys to find topics of Python peers")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		return a.withTopics(ctx, nil, discover, func(c wakebell.Operator, names topicNames) error { return a.topics(ctx, c, names) })
	})
	return cmd
}

// topicNames gives the full names of the topics that a command is about.
type topicNames func(context.Context) ([]string, error)

// withTopics runs fn with an Operator that takes full names, and what gives the
// names: those given or, without any, those of the registry that start with
// the prefix. The names of a node are those without its prefix.
func (a *app) withTopics(ctx context.Context, named []string, discover bool, fn func(wakebell.Operator, topicNames) error) error {
	prefix := a.prefix
	if a.remoteAddress() == "" {
		a.prefix = ""
	}
	return a.ask(ctx, func(c asked) error {
		if len(named) > 0 {
			return fn(c, given(named, prefix))
		}
		return fn(c, func(ctx context.Context) (names []string, err error) {
			for name, err := range c.Topics(ctx, discover) {
				if err != nil {
					return nil, err
				}
				if strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return names, nil
		})
	})
}

// given gives the names that a command was told.
func given(named []string, prefix string) topicNames {
	return func(context.Context) (names []string, err error) {
		for _, topic := range named {
			if topic == "" {
				return nil, usagef("--topic: empty")
			}
			names = append(names, prefix+topic)
		}
		return names, nil
	}
}

type topicLine struct {
	Topic  string `json:"topic"`
	Timers int64  `json:"timers"`
	Due    int64  `json:"due"`
	Dead   int64  `json:"dead"`
	pauseLine
	Fault string `json:"fault"`
}

func (a *app) topics(ctx context.Context, c wakebell.Operator, names topicNames) error {
	found, err := names(ctx)
	if err != nil {
		return err
	}
	list := a.newListing(0, "TOPIC", "TIMERS", "DUE", "DEAD", "PAUSED", "FAULT")
	list.firstColumn(found)
	for page := range slices.Chunk(found, topicsPage) {
		all, err := c.Overview(ctx, page...)
		if err != nil {
			return err
		}
		for _, o := range all {
			t := topicLine{o.Topic, o.Stats.Total, o.Stats.Due, o.Stats.Dead, newPauseLine(o.Control), fault(o.Err)}
			t.Paused = t.Paused || o.Stats.Paused // which is read even where the rest of the order is not
			err := list.add(t, t.Topic, number(t.Timers), number(t.Due), number(t.Dead), yesNo(t.Paused), t.Fault)
			if err != nil {
				return err
			}
		}
	}
	return list.end()
}

// topicsPage is after how many topics those are printed: a listing without an
// end is not kept in memory.
const topicsPage = 1000
