package timers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

func waitCommand(a *cli.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait TOPIC ID",
		Short: "Wait until a timer has ended, and show its result",
		Long: `Waits until a timer has ended, and prints how, with the progress and the result of its
handler. The exit code is 1 if it is a dead letter, was cancelled, or has not ended
within --timeout, and 3 if nothing is known of it.

With -o json it is one line with topic, id, end (done, dead, cancelled, missing),
reason, progress (fraction, note, at, attempt) and result (content, attempt,
activation, at).`,
		Example: `  wakebell wait imports customers --timeout 10m
  wakebell wait imports customers -o json | jq .result.content.body`,
		Args: cobra.ExactArgs(2),
	}
	cli.DurationVar(cmd.Flags(), &timeout, "timeout", 0, "give up after this `duration`; 0: never")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, args []string) error {
		if timeout < 0 {
			return fmt.Errorf("%w: --timeout: %v, want 0 or more", wakebell.ErrInvalid, timeout)
		}
		return a.Ask(ctx, func(c cli.Client) error { return waitTimer(ctx, a, c, args[0], args[1], timeout) })
	})
	return cmd
}

// errNotEnded is the cause of the end of a wait.
var errNotEnded = errors.New("the timer has not ended within --timeout")

func waitTimer(ctx context.Context, a *cli.App, c cli.Client, topic, id string, timeout time.Duration) error {
	waiting := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, timeout, errNotEnded)
		defer cancel()
	}
	ending, err := c.Wait(waiting, topic, id)
	if err != nil {
		if errors.Is(context.Cause(waiting), errNotEnded) {
			return errNotEnded
		}
		return err
	}
	line := endingLine{
		Topic: topic, ID: id, End: string(ending.End), Reason: ending.Reason,
		reportLine: newReportLine(ctx, a, topic, id, ending.Report),
	}
	if err := line.print(a); err != nil {
		return err
	}
	switch ending.End {
	case wakebelltype.EndDone:
		return nil
	case wakebelltype.EndMissing:
		return cli.NotFoundf("no such timer: nothing says how %q on %q ended", id, topic)
	default:
		return fmt.Errorf("timer %q on %q: %s", id, topic, ending.End)
	}
}

// endingLine is the JSON line of wait.
type endingLine struct {
	Topic  string `json:"topic"`
	ID     string `json:"id"`
	End    string `json:"end"`
	Reason string `json:"reason,omitempty"`
	reportLine
}

func (l *endingLine) print(a *cli.App) error {
	if a.WantsJSON() {
		return a.PrintJSON(l)
	}
	rows := [][2]string{{"topic", l.Topic}, {"id", l.ID}, {"end", l.End}}
	if l.Reason != "" {
		rows = append(rows, [2]string{"reason", l.Reason})
	}
	return a.PrintRows(append(rows, l.reportRows(a)...))
}

// reportLine is what handlers have reported of a timer.
type reportLine struct {
	Progress *progressLine `json:"progress,omitempty"`
	Result   *resultLine   `json:"result,omitempty"`
}

type progressLine struct {
	Fraction float64 `json:"fraction"`
	Note     string  `json:"note"`
	At       string  `json:"at"`
	Attempt  int     `json:"attempt"`

	at time.Time
}

type resultLine struct {
	Content    output.Content `json:"content"`
	Attempt    int            `json:"attempt"`
	Activation string         `json:"activation"`
	At         string         `json:"at"`

	at time.Time
}

func newReportLine(ctx context.Context, a *cli.App, topic, id string, r wakebell.Report) (line reportLine) {
	if p := r.Progress; p != nil {
		line.Progress = &progressLine{Fraction: p.Fraction, Note: p.Note, At: output.Stamp(p.At), Attempt: p.Attempt, at: p.At}
	}
	if of := r.Result; of != nil {
		line.Result = &resultLine{
			Content: a.Content(ctx, topic, id, of.Content), Attempt: of.Attempt, Activation: output.Stamp(of.Activation), At: output.Stamp(of.At), at: of.At,
		}
	}
	return line
}

func (l *reportLine) reportRows(a *cli.App) (rows [][2]string) {
	if p := l.Progress; p != nil {
		shown := strconv.FormatFloat(100*p.Fraction, 'f', 0, 64) + " %"
		if p.Note != "" {
			shown += ", " + p.Note
		}
		rows = append(rows, [2]string{"progress", shown + ", " + a.Screen().Time(p.at)})
	}
	if r := l.Result; r != nil {
		rows = append(rows, [2]string{"result of", "attempt " + strconv.Itoa(r.Attempt) + ", " + a.Screen().Time(r.at)})
		for _, row := range r.Content.Rows() {
			rows = append(rows, [2]string{"result " + row[0], row[1]})
		}
	}
	return rows
}
