package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/wakebelltype"
)

func getCommand(a *cli.App) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "get --topic TOPIC ID",
		Short: "Show a timer with its body",
		Long: `Shows a timer. The exit code is 3 if there is none; if the id is that of one of the
last 1,000 dead letters, the error names its entry. With -o json it is one line
with the fields of ls and, as a node prints them, content_type,
headers, correlation_id, reply_to, encoding, and body or body_base64; progress and
result, as wait prints them; and join, if it waits for other timers: open, parts, and of
those done, dead, cancelled and missing.`,
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
	reportLine
	Join *wakebelltype.Join `json:"join"` // nil: it has none
}

// readJoin sets the join of a timer with these headers, if it has one that can be read.
func (t *wholeTimer) readJoin(ctx context.Context, c cli.Client, topic, id string, headers wakebell.Headers) {
	reads, ok := c.(wakebell.Joiner)
	if _, has := headers.Get(wakebelltype.JoinHeader); !has || !ok {
		return
	}
	if join, err := reads.Join(ctx, topic, id); err == nil {
		t.Join = &join
	}
}

// joinRows describes the join.
func (t *wholeTimer) joinRows() [][2]string {
	j := t.Join
	if j == nil {
		return nil
	}
	said := fmt.Sprintf("%d of %d parts have ended: %d done, %d dead, %d cancelled, %d missing", j.Ended(), j.Parts, j.Done, j.Dead, j.Cancelled, j.Missing)
	if j.Open {
		said += "; open to more"
	}
	return [][2]string{{"join", said}}
}

func showTimer(ctx context.Context, a *cli.App, c cli.Client, topic, id string) error {
	info, inside, err := c.Get(ctx, topic, id)
	switch {
	case errors.Is(err, wakebell.ErrNotFound):
		return elsewhere(ctx, a, c, topic, id, err)
	case err != nil && info.ID == "":
		return err
	}
	unread := err // its content alone is too large
	overview := overviewOf(ctx, c, topic)
	t := wholeTimer{timerLine: newTimerLine(info, dueBy(overview)), Content: output.Content{Headers: map[string]string{}}}
	if unread == nil {
		t.Content = a.Content(ctx, topic, info.ID, inside)
	}
	if report, err := c.Report(ctx, topic, id); err == nil { // an earlier node has none
		t.reportLine = newReportLine(ctx, a, topic, id, report)
	}
	t.readJoin(ctx, c, topic, id, inside.Headers)
	since := t.runs(info, overview)
	if a.WantsJSON() {
		return cmp.Or(a.PrintJSON(t), unread)
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
	if t.Node != "" {
		rows = append(rows, [2]string{"runs on", t.shownNode()}, [2]string{"since", a.Screen().Time(since)})
	}
	if t.Key != "" {
		rows = append(rows, [2]string{"key", t.Key})
	}
	rows = append(rows, t.joinRows()...)
	if unread == nil {
		rows = append(rows, t.Rows()...)
	}
	return cmp.Or(a.PrintRows(append(rows, t.reportRows(a)...)), unread)
}

// deadSought is the number of dead letters among which an absent timer is sought.
const deadSought = 1000

// elsewhere adds to the error of an absent timer its dead letter, if it has one, or that
// its topic is not there.
func elsewhere(ctx context.Context, a *cli.App, c cli.Client, topic, id string, err error) error {
	letters, failed := c.LastDead(ctx, topic, deadSought)
	if failed != nil {
		return err // it is about the timer; the dead letters may be forbidden
	}
	var last *wakebell.DeadLetter
	for i := range letters {
		if letters[i].ID == id {
			last = &letters[i] // the newest is the last
		}
	}
	if last != nil {
		return fmt.Errorf("%w; it is a dead letter since %s: wakebell dead show --topic %s %s",
			err, output.Stamp(last.Died), text.ShellWord(topic), last.Entry)
	}
	if len(letters) == 0 {
		if missing := a.RequireTopic(ctx, c, topic); missing != nil {
			return fmt.Errorf("%w: %w", err, missing)
		}
	}
	return err
}
