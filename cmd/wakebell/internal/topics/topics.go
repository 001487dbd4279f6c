package topics

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsCommand(a *cli.App) *cobra.Command {
	var discover bool
	var page cli.PageFlags
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "List the topics with their counts",
		Long: `Lists the topics that Wakebell scheduled on or handled by name, with the numbers of their
timers, due timers and dead letters, and whether they are paused. With --prefix
it lists only topics with that prefix; names are shown in full. Fault is the
error if a topic cannot be read; the others are listed.

--discover also finds topics that only Python peers use. It scans all keys of
Redis, which takes time proportional to their number.

With -o json each topic is a line with topic, timers, due, dead, paused,
paused_at, paused_by, paused_reason and fault.`,
		Example: `  wakebell topics
  wakebell topics --discover -o json`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&discover, "discover", false, "scan all keys to find topics of Python peers")
	page.Register(cmd, 0)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return withTopics(ctx, a, nil, discover, page.Page(), func(c wakebell.Operator, names topicNames) error { return listTopics(ctx, a, c, names, page) })
	})
	return cmd
}

// topicNames returns the full names of the topics of a command.
type topicNames func(context.Context) ([]string, error)

// withTopics runs fn with an Operator that takes full names and with the names of
// the topics: those named or, by default, those of the registry with the prefix.
// With --remote, names are without the node's prefix.
func withTopics(ctx context.Context, a *cli.App, named []string, discover bool, page wakebelltype.Page, fn func(wakebell.Operator, topicNames) error) error {
	prefix := a.Prefix
	if a.RemoteAddress() == "" {
		a.Prefix = ""
	}
	return a.Ask(ctx, func(c cli.Client) error {
		if len(named) > 0 {
			return fn(c, given(named, prefix))
		}
		return fn(c, func(ctx context.Context) (names []string, err error) {
			for name, err := range c.Topics(ctx, discover, wakebelltype.Page{After: page.After}) {
				if err != nil {
					return nil, err
				}
				if !strings.HasPrefix(name, prefix) {
					continue
				}
				if names = append(names, name); len(names) == page.Limit {
					break
				}
			}
			return names, nil
		})
	})
}

// given returns the names of the command line.
func given(named []string, prefix string) topicNames {
	return func(context.Context) (names []string, err error) {
		for _, topic := range named {
			if topic == "" {
				return nil, cli.Usagef("--topic: empty")
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

func listTopics(ctx context.Context, a *cli.App, c wakebell.Operator, names topicNames, page cli.PageFlags) error {
	found, err := names(ctx)
	if err != nil {
		return err
	}
	list := a.NewListing(page.Limit, output.Text("TOPIC"), output.Numeric("TIMERS"), output.Numeric("DUE"), output.Numeric("DEAD").StyledBy(deadStyle),
		output.Short("PAUSED").StyledBy(output.WarnIfYes), output.Text("FAULT").AsRare().Styled(output.Bad))
	if page.Limit > 0 && len(found) > page.Limit {
		found = found[:page.Limit]
		list.CutAfter(found[page.Limit-1])
	}
	list.FirstColumn(found)
	for part := range slices.Chunk(found, topicsPage) {
		all, err := c.Overview(ctx, part...)
		if err != nil {
			return err
		}
		for _, o := range all {
			t := topicLine{o.Topic, o.Stats.Total, o.Stats.Due, o.Stats.Dead, newPauseLine(o.Control), output.Fault(o.Err)}
			t.Paused = t.Paused || o.Stats.Paused // set even if the other settings could not be read
			err := list.Add(t, t.Topic, output.Number(t.Timers), output.Number(t.Due), output.Number(t.Dead), output.YesNo(t.Paused), t.Fault)
			if err != nil {
				return err
			}
		}
	}
	return list.End()
}

// topicsPage is the number of topics per read, which bounds the memory of a listing.
const topicsPage = 1000
