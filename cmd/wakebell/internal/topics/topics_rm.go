package topics

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

type removedLine struct {
	Topic   string `json:"topic"`
	Removed bool   `json:"removed"`
	Use     string `json:"use"`
}

func topicsRmCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm TOPIC...",
		Short: "Remove unused topics from the list",
		Long: `Removes topics from the list of topics. A topic with timers, dead letters, a pause
or overridden settings stays, and so does one that a node handles: the exit code is
1 then, and the others are removed. It is 3 if a topic is not listed. Python
workers are not seen. A topic that is scheduled on again is listed again within a
minute.

With -o json each is a line with topic, removed and use (what uses the topic).`,
		Example: `  wakebell topics rm invocies`,
		Args:    cobra.MinimumNArgs(1),
	}
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return removeTopics(ctx, a, c, args) })
	})
	return cmd
}

func removeTopics(ctx context.Context, a *cli.App, c cli.Client, names []string) error {
	used, absent := 0, 0
	list := a.NewListing(0, output.Text("TOPIC"), output.Short("REMOVED"), output.Text("USED BY"))
	var fault error
	for _, topic := range names {
		r, err := c.RemoveTopic(ctx, topic)
		if err != nil {
			fault = err
			break
		}
		switch {
		case r.Use != "":
			used++
		case !r.Existed:
			absent++
		}
		line := removedLine{a.Prefix + topic, r.Existed && r.Use == "", r.Use}
		if fault = list.Add(line, line.Topic, output.YesNo(line.Removed), line.Use); fault != nil {
			break
		}
	}
	switch err := errors.Join(fault, list.End()); {
	case err != nil:
		return err
	case used > 0:
		return fmt.Errorf("%d of %d topics are in use and stay", used, len(names))
	case absent > 0:
		return cli.NotFoundf("topic not found: %d of %d", absent, len(names))
	default:
		return nil
	}
}
