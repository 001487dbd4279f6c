package timers

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
)

func getCommand(a *cli.App) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "get --topic TOPIC ID",
		Short: "Show a timer with its body",
		Long: `Shows a timer. The exit code is 3 if there is none. With -o json it is one line
with the fields of ls and, as a node prints them, content_type,
headers, correlation_id, reply_to, encoding, and body or body_base64.`,
		Example: `  wakebell get --topic invoices inv-42
  wakebell get -t invoices inv-42 -o json | jq .body`,
		Args: cobra.ExactArgs(1),
	}
	a.TopicFlag(cmd, &topic, "`topic` of the timer")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		return a.Ask(ctx, func(c cli.Client) error { return showTimer(ctx, a, c, topic, args[0]) })
	})
	return cmd
}

// wholeTimer is the JSON line of get: a timer with its content.
type wholeTimer struct {
	timerLine
	output.Content
}

func showTimer(ctx context.Context, a *cli.App, c wakebell.TimerClient, topic, id string) error {
	info, inside, err := c.Get(ctx, topic, id)
	if err != nil {
		return err
	}
	t := wholeTimer{newTimerLine(info), a.Content(ctx, topic, info.ID, inside)}
	if a.WantsJSON() {
		return a.PrintJSON(t)
	}
	rows := [][2]string{
		{"topic", t.Topic},
		{"id", t.ID},
		{"state", t.shownState()},
		{"due", a.Screen().Time(info.Due)},
		{"activation", a.Screen().Time(info.Activation)},
		{"attempts", strconv.Itoa(t.Attempts)},
		{"failures", strconv.Itoa(t.Failures)},
		{"last error", t.LastError},
	}
	if t.Key != "" {
		rows = append(rows, [2]string{"key", t.Key})
	}
	return a.PrintRows(append(rows, t.Rows()...))
}
