package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
)

func getCommand(a *app) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "get --topic TOPIC ID",
		Short: "Show a timer with its body",
		Long: `Shows a timer. The exit code is 3 if there is none. With -o json it is one line
with the fields of ls and, as a node prints them, content_type,
headers, correlation_id, reply_to, and body or body_base64.`,
		Example: `  wakebell get --topic invoices inv-42
  wakebell get -t invoices inv-42 -o json | jq .body`,
		Args: cobra.ExactArgs(1),
	}
	a.topicFlag(cmd, &topic, "`topic` of the timer")
	a.outputFlag(cmd)
	cmd.RunE = a.does(func(ctx context.Context, args []string) error {
		return a.ask(ctx, func(c asked) error { return showTimer(ctx, a, c, topic, args[0]) })
	})
	return cmd
}

// wholeTimer is the JSON line of get: a timer with its content.
type wholeTimer struct {
	timerLine
	content
}

func showTimer(ctx context.Context, a *app, c wakebell.TimerClient, topic, id string) error {
	info, inside, err := c.Get(ctx, topic, id)
	if err != nil {
		return err
	}
	t := wholeTimer{newTimerLine(info), newContent(inside)}
	if a.wantsJSON() {
		return a.printJSON(t)
	}
	rows := [][2]string{
		{"topic", t.Topic},
		{"id", t.ID},
		{"state", t.State},
		{"due", t.Due},
		{"activation", t.Activation},
		{"attempts", strconv.Itoa(t.Attempts)},
		{"failures", strconv.Itoa(t.Failures)},
		{"last error", t.LastError},
	}
	return a.printRows(append(rows, t.rows()...))
}
