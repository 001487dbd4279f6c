package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/recurring"
)

// ForecastCommand returns the command forecast: recurring schedules are a part of it.
func ForecastCommand(a *cli.App) *cobra.Command {
	var o forecast.Options
	cmd := &cobra.Command{
		Use:   "forecast [--topic TOPIC]... [--for DURATION]",
		Short: "Show what will be due, and what will be late",
		Long: `Counts the timers that are stored for the coming time, adds the runs of recurring
schedules, and finds the minute with the most. It warns where a minute has more than
nodes ended in any minute of the last 24 hours, and where the rate limit of a topic
makes timers wait. It looks at up to 1,000 topics, those with the most timers, and
counts up to 100,000 single minutes: a peak that it did not find for certain is marked
with "or more". What is scheduled later, and retries, are not known in advance.

With -o json it is one line with from, step_s (of a bar), at (when each bar begins),
timers and runs (in each bar), overdue, total, peak (at, count, exact), topics (topic,
overdue, total, peak, best, best_at, behind, limit_per_min, and warnings with cause,
from, until and late_s), more (topics that were left out) and unread.`,
		Example: `  wakebell forecast
  wakebell forecast --topic invoices --for 7d -o json | jq .peak`,
		Args: cli.NoArgs,
	}
	a.TopicsFlag(cmd, &o.Topics, "`topic` to forecast (default all)")
	cli.DurationVar(cmd.Flags(), &o.For, "for", 24*time.Hour, "how far to look, 1m to 366d")
	cmd.Flags().IntVar(&o.Bars, "bars", 48, "into how many spans to divide that, 1 to 200")
	a.OutputFlag(cmd)
	return onSchedules(a, cmd, func(ctx context.Context, s recurring.Operator, _ []string) error {
		return a.Ask(ctx, func(c cli.Client) error {
			f, err := forecast.Of(ctx, c, s, o)
			if err != nil {
				return err
			}
			missing := missingTopics(ctx, a, c, o.Topics, f)
			if a.WantsJSON() {
				return errors.Join(a.PrintJSON(newForecastLine(f)), missing)
			}
			return errors.Join(printForecast(a, f), missing)
		})
	})
}

// missingTopics returns an error for the named topics that are not there.
func missingTopics(ctx context.Context, a *cli.App, c cli.Client, named []string, f forecast.Forecast) error {
	var missing []error
	for _, topic := range named {
		if !slices.ContainsFunc(f.Topics, func(t forecast.Topic) bool { return t.Name == topic }) {
			missing = append(missing, a.RequireTopic(ctx, c, topic))
		}
	}
	return errors.Join(missing...)
}

func printForecast(a *cli.App, f forecast.Forecast) error {
	screen := a.Screen()
	rows := [][2]string{
		{"until", screen.Time(f.From.Add(time.Duration(len(f.Bars)) * f.Step))},
		{"overdue", screen.Count(f.Overdue)},
		{"due", screen.Count(f.Total)},
		{"peak", peakText(screen, f.Peak)},
	}
	runs, loads := int64(0), make([]int64, len(f.Bars))
	for i, b := range f.Bars {
		loads[i] = b.Timers + b.Runs
		runs += b.Runs
	}
	if runs > 0 {
		rows[2][1] += fmt.Sprintf(", of which recurring schedules %s", screen.Count(runs))
	}
	rows = append(rows, [2]string{"load", fmt.Sprintf("%s  %s a bar", output.Sparkline(loads, len(loads)), output.Age(f.Step))})
	for _, t := range f.Topics {
		for _, w := range t.Warnings {
			rows = append(rows, [2]string{"warning", warningText(screen, t, w)})
		}
	}
	for _, part := range f.Unread {
		rows = append(rows, [2]string{"not read", part})
	}
	if f.More > 0 {
		rows = append(rows, [2]string{"left out", screen.Count(int64(f.More)) + " topics"})
	}
	if err := a.PrintRows(rows); err != nil || len(f.Topics) == 0 {
		return err
	}
	if err := a.Printf("\n"); err != nil {
		return err
	}
	return printForecastTopics(a, f.Topics)
}

func printForecastTopics(a *cli.App, topics []forecast.Topic) error {
	screen := a.Screen()
	list := a.NewListing(0,
		output.Text("TOPIC"), output.Numeric("OVERDUE"), output.Numeric("DUE"), output.Numeric("PEAK/MIN"), output.Short("AT"),
		output.Numeric("BEST/MIN"), output.Numeric("LIMIT/MIN").AsRare(), output.Short("LATE").AsRare().Styled(output.Bad),
	)
	for _, t := range topics {
		late, limit, best := "", "", ""
		if len(t.Warnings) > 0 {
			worst := slices.MaxFunc(t.Warnings, func(a, b forecast.Warning) int { return cmp.Compare(a.Late, b.Late) })
			late = output.Age(worst.Late)
		}
		if t.Limit > 0 {
			limit = fmt.Sprintf("%.4g", t.Limit)
		}
		if t.Best > 0 {
			best = screen.Count(t.Best)
		}
		err := list.Add(nil, t.Name, screen.Count(t.Overdue), screen.Count(t.Total), screen.Count(t.Peak.Count), screen.Time(t.Peak.At), best, limit, late)
		if err != nil {
			return err
		}
	}
	return list.End()
}

func peakText(screen output.Screen, p forecast.Peak) string {
	if p.At.IsZero() {
		return "none"
	}
	text := fmt.Sprintf("%s in a minute, %s", screen.Count(p.Count), screen.Time(p.At))
	if !p.Exact {
		text += ", or more"
	}
	return text
}

func warningText(screen output.Screen, t forecast.Topic, w forecast.Warning) string {
	why := fmt.Sprintf("its rate limit is %.4g a minute", t.Limit)
	if w.Cause == forecast.CauseNodes {
		why = fmt.Sprintf("nodes ended at most %s in a minute, %s", screen.Count(t.Best), screen.Time(t.BestAt))
		if !t.Behind {
			why += ", and had no more to do then"
		}
	}
	return fmt.Sprintf("%s: up to %s late, from %s until %s: %s", t.Name, output.Age(w.Late), screen.Time(w.From), screen.Time(w.Until), why)
}

// forecastLine is the JSON line of a forecast.
type forecastLine struct {
	From    string              `json:"from"`
	StepS   float64             `json:"step_s"`
	At      []string            `json:"at"`
	Timers  []int64             `json:"timers"`
	Runs    []int64             `json:"runs"`
	Overdue int64               `json:"overdue"`
	Total   int64               `json:"total"`
	Peak    peakLine            `json:"peak"`
	Topics  []forecastTopicLine `json:"topics"`
	More    int                 `json:"more"`
	Unread  []string            `json:"unread"`
}

type peakLine struct {
	At    string `json:"at"`
	Count int64  `json:"count"`
	Exact bool   `json:"exact"`
}

type forecastTopicLine struct {
	Topic       string        `json:"topic"`
	Overdue     int64         `json:"overdue"`
	Total       int64         `json:"total"`
	Peak        peakLine      `json:"peak"`
	Best        int64         `json:"best"`
	BestAt      string        `json:"best_at"`
	Behind      bool          `json:"behind"`
	LimitPerMin float64       `json:"limit_per_min"`
	Warnings    []warningLine `json:"warnings"`
}

type warningLine struct {
	Cause string  `json:"cause"`
	From  string  `json:"from"`
	Until string  `json:"until"`
	LateS float64 `json:"late_s"`
}

func newPeakLine(p forecast.Peak) peakLine { return peakLine{output.Stamp(p.At), p.Count, p.Exact} }

func newForecastLine(f forecast.Forecast) forecastLine {
	line := forecastLine{
		From: output.Stamp(f.From), StepS: f.Step.Seconds(), Overdue: f.Overdue, Total: f.Total, Peak: newPeakLine(f.Peak),
		Topics: []forecastTopicLine{}, More: f.More, Unread: append([]string{}, f.Unread...),
	}
	for _, b := range f.Bars {
		line.At, line.Timers, line.Runs = append(line.At, output.Stamp(b.At)), append(line.Timers, b.Timers), append(line.Runs, b.Runs)
	}
	for _, t := range f.Topics {
		of := forecastTopicLine{
			Topic: t.Name, Overdue: t.Overdue, Total: t.Total, Peak: newPeakLine(t.Peak), Best: t.Best, BestAt: output.Stamp(t.BestAt),
			Behind: t.Behind, LimitPerMin: t.Limit, Warnings: []warningLine{},
		}
		for _, w := range t.Warnings {
			of.Warnings = append(of.Warnings, warningLine{string(w.Cause), output.Stamp(w.From), output.Stamp(w.Until), w.Late.Seconds()})
		}
		line.Topics = append(line.Topics, of)
	}
	return line
}
