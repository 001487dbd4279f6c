package topics

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// controls makes a command call change and print the settings that it returns.
func controls(a *cli.App, cmd *cobra.Command, topic *string, change func(context.Context, wakebell.Operator) (wakebelltype.Control, error)) {
	a.TopicFlag(cmd, topic, "`topic` to change")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return a.Ask(ctx, func(c cli.Client) error {
			if cmd.Name() != "resume" { // a topic that can be resumed has a key
				a.WarnUnused(ctx, c, *topic)
			}
			control, err := change(ctx, c)
			if err != nil {
				return err
			}
			return printControl(a, *topic, control)
		})
	})
}

// pauseLine has the JSON fields of a pause.
type pauseLine struct {
	Paused   bool   `json:"paused"`
	PausedAt string `json:"paused_at"`
	PausedBy string `json:"paused_by"`
	Reason   string `json:"paused_reason"`
	// Until is when the pause ends by itself; empty: it does not.
	Until string `json:"paused_until"`
}

func newPauseLine(c wakebelltype.Control) pauseLine {
	return pauseLine{c.Paused, output.Stamp(c.PausedAt), c.PausedBy, c.Reason, output.Stamp(c.PausedUntil)}
}

// overrides returns the settings that are set: by their JSON fields, and as names and
// texts in the order of the table of settings.
func overrides(s wakebelltype.Settings) (fields map[string]any, shown [][2]string) {
	fields = map[string]any{}
	for _, t := range tuning.All {
		value := t.Get(&s)
		if value == 0 {
			continue
		}
		field, text := strings.ReplaceAll(t.Flag, "-", "_"), t.Text(value)
		fields[field] = text
		if n := t.Number(&s); n != nil { // a number in JSON too
			fields[field] = max(*n, 0)
		}
		shown = append(shown, [2]string{t.Flag, text})
	}
	return fields, shown
}

func printControl(a *cli.App, topic string, c wakebelltype.Control) error {
	pause := newPauseLine(c)
	rows := [][2]string{
		{"topic", a.Prefix + topic},
		{"paused", output.YesNo(pause.Paused)},
		{"paused at", a.Screen().Time(c.PausedAt)},
		{"paused by", pause.PausedBy},
		{"reason", pause.Reason},
	}
	if !c.PausedUntil.IsZero() {
		rows = append(rows, [2]string{"until", a.Screen().Time(c.PausedUntil)})
	}
	settings, shown := overrides(c.Settings)
	if !a.WantsJSON() {
		return a.PrintRows(append(rows, shown...))
	}
	return a.PrintJSON(struct {
		Topic string `json:"topic"`
		pauseLine
		Settings map[string]any `json:"settings"`
	}{a.Prefix + topic, pause, settings})
}
