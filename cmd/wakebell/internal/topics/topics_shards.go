package topics

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func topicsShardsCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shards TOPIC [N]",
		Short: "Show or set the number of shards of a topic",
		Long: `Shows the number of shards of a topic. With N, 1 to 256, it gives the topic that
number for all nodes and clients; nodes that handle the topic follow within 2 s. The
topic must have no timers and no dead letters, unless N is its number already; use
reshard otherwise.

For a while after a change, nodes also handle the shards before it, where a client
that has not read the change yet may store timers. Moving says that there may be some.

With -o json: topic, shards, next (the number that a resharding has announced, 0 for
none), before (the number before the last change, 0 if there was none), moving and since (when the last change began or ended, empty if there was none).`,
		Example: `  wakebell topics shards invoices
  wakebell topics shards invoices 16`,
		Args: cobra.RangeArgs(1, 2),
	}
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		ask := func(c cli.Client) (wakebelltype.ShardLayout, error) { return c.Shards(ctx, args[0]) }
		if len(args) > 1 {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return cli.Usagef("shards: %q, want a number", args[1])
			}
			ask = func(c cli.Client) (wakebelltype.ShardLayout, error) { return c.Divide(ctx, args[0], n) }
		}
		return a.Ask(ctx, func(c cli.Client) error {
			l, err := ask(c)
			if err == nil && len(args) == 1 && l.Shards <= 1 && l.Next == 0 && l.Before == 0 {
				err = a.RequireTopic(ctx, c, args[0])
			}
			if err != nil {
				return err
			}
			return printShards(a, args[0], l)
		})
	})
	return cmd
}

type shardsLine struct {
	Topic  string `json:"topic"`
	Shards int    `json:"shards"`
	Next   int    `json:"next"`
	Before int    `json:"before"`
	Moving bool   `json:"moving"`
	Since  string `json:"since"`
}

func newShardsLine(a *cli.App, topic string, l wakebelltype.ShardLayout) shardsLine {
	return shardsLine{a.Prefix + topic, l.Shards, l.Next, l.Before, l.Moving, output.Stamp(l.Since)}
}

func printShards(a *cli.App, topic string, l wakebelltype.ShardLayout) error {
	if a.WantsJSON() {
		return a.PrintJSON(newShardsLine(a, topic, l))
	}
	rows := [][2]string{{"topic", a.Prefix + topic}, {"shards", strconv.Itoa(l.Shards)}}
	if l.Next > 0 {
		rows = append(rows, [2]string{"next", strconv.Itoa(l.Next)})
	}
	if l.Before > 0 {
		rows = append(rows, [2]string{"before", strconv.Itoa(l.Before)}, [2]string{"moving", output.YesNo(l.Moving)}, [2]string{"since", a.Screen().Time(l.Since)})
	}
	return a.PrintRows(rows)
}
