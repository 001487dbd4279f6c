package topics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

type tailFlags struct {
	topics []string
	follow bool
	lines  int
}

func tailCommand(a *cli.App) *cobra.Command {
	f := &tailFlags{}
	cmd := &cobra.Command{
		Use:   "tail [--topic TOPIC]... [-f]",
		Short: "Show the last dead letters and the events of topics",
		Long: `Shows the last dead letters of topics, the newest last; without --topic of all that
topics lists, up to 50. With -f it continues with the events of their timers on all
nodes, until it is stopped. Topics that come later are not followed.

  node         a node handles the topic
  delivered    the handler was called
  joined       the handler of a timer with a join begins: all parts have ended, or
               its time-out came first
  acked        the timer was handled
  retried      the handler failed and the timer will be retried
  dead         the timer became a dead letter
  discarded    the timer was rejected, on a node with --discard-rejected
  released     the timer was returned, for example by a draining node
  crashed      the handler panicked; the timer is redelivered after its lease
  superseded, cancelled, lost
               the timer was scheduled again or cancelled, or its lease expired,
               while its handler ran
  breaker      the circuit breaker of a node opened, is half-open or closed
  missed       this many events were dropped: publishing never blocks a node

Nodes publish events only while a tail runs, at most 20,000 per second and node.
The first events of a node that starts later appear within 3 s. Python workers
publish none. Events during a lost connection to Redis are not shown; the loss is
reported on stderr. The events attached and state of Client.Tail are not
printed.

With -o json each is a line with event, at, topic, node, id, attempt and, if the
event has them, lateness_ms, took_ms, retry_in_ms, text (the error or reason,
or the state of a breaker), entry (of the dead letter) and missed.`,
		Example: `  wakebell tail -f
  wakebell tail -t invoices -f -n 0
  wakebell tail -t invoices -f -o json | jq -c 'select(.event == "retried")'`,
		Args: cli.NoArgs,
	}
	flags := cmd.Flags()
	a.TopicsFlag(cmd, &f.topics, "`topic` to watch (default all)")
	flags.BoolVarP(&f.follow, "follow", "f", false, "continue with events as they happen")
	flags.IntVarP(&f.lines, "lines", "n", 10, "dead letters to show first, up to 1,000")
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if f.lines < 0 || f.lines > 1000 {
			return cli.Usagef("--lines: %d is not within 0 and 1000", f.lines)
		}
		if len(f.topics) == 1 {
			return a.Ask(ctx, func(c cli.Client) error { return printTail(ctx, a, c, f.topics[0], f) })
		}
		return withTopics(ctx, a, f.topics, false, wakebelltype.Page{}, func(c cli.Client, names topicNames) error {
			all, err := names(ctx)
			if err != nil {
				return err
			}
			err = printTails(ctx, a, c, all, f)
			for _, topic := range f.topics {
				if !f.follow {
					err = errors.Join(err, a.RequireTopic(ctx, c, topic))
				}
			}
			return err
		})
	})
	return cmd
}

func printTail(ctx context.Context, a *cli.App, c wakebell.Operator, topic string, f *tailFlags) error {
	if !f.follow {
		shown, err := tailDead(ctx, a, c, topic, f.lines)
		if err != nil || len(shown) > 0 {
			return err
		}
		return a.RequireTopic(ctx, c, topic)
	}
	a.WarnUnused(ctx, c, topic)
	var shown map[string]bool // nil until subscribed, so that no event is missed in between
	for e, err := range c.Tail(ctx, topic) {
		switch {
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			return nil // a signal
		case err != nil:
			return err
		case e.Kind == wakebelltype.EventAttached && shown == nil:
			if shown, err = tailDead(ctx, a, c, topic, f.lines); err != nil {
				return err
			}
		case e.Kind == wakebelltype.EventAttached:
			a.Notef("wakebell: the connection was lost; events during the loss are not shown\n")
		case e.Kind == wakebelltype.EventDead && shown[e.Entry], e.Kind == wakebelltype.EventState:
		default:
			if err := printEvent(a, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// tailDead prints the last dead letters and returns their entries.
func tailDead(ctx context.Context, a *cli.App, c wakebell.Operator, topic string, lines int) (shown map[string]bool, err error) {
	shown = map[string]bool{}
	if lines == 0 {
		return shown, nil
	}
	deadLetters, err := c.LastDead(ctx, topic, lines)
	for _, d := range deadLetters {
		shown[d.Entry] = true
		if err := printEvent(a, deadEvent(d)); err != nil {
			return nil, err
		}
	}
	return shown, err
}

// deadEvent is a dead letter as the event of its death.
func deadEvent(d wakebell.DeadLetter) wakebelltype.Event {
	return wakebelltype.Event{
		Kind: wakebelltype.EventDead, Topic: d.Topic, At: d.Died, ID: d.ID, Attempt: d.Attempts, Text: d.Reason, Entry: d.Entry,
	}
}

type eventLine struct {
	Event      string   `json:"event"`
	At         string   `json:"at"`
	Topic      string   `json:"topic"`
	Node       string   `json:"node"`
	ID         string   `json:"id"`
	Attempt    int      `json:"attempt"`
	LatenessMS *float64 `json:"lateness_ms,omitempty"`
	TookMS     *float64 `json:"took_ms,omitempty"`
	RetryInMS  *float64 `json:"retry_in_ms,omitempty"`
	Text       string   `json:"text,omitempty"`
	Entry      string   `json:"entry,omitempty"`
	Missed     int      `json:"missed,omitempty"`
}

func printEvent(a *cli.App, e wakebelltype.Event) error {
	if !a.WantsJSON() {
		return a.Printf("%s\n", eventText(e, ""))
	}
	line := eventLine{
		Event: string(e.Kind), At: output.Stamp(e.At), Topic: e.Topic, Node: e.Node, ID: e.ID, Attempt: e.Attempt,
		Text: e.Text, Entry: e.Entry, Missed: e.Missed,
	}
	set := func(field **float64, d time.Duration, kinds ...wakebelltype.EventKind) {
		for _, kind := range kinds {
			if e.Kind == kind || d != 0 {
				ms := output.Millis(d)
				*field = &ms
			}
		}
	}
	set(&line.LatenessMS, e.Lateness, wakebelltype.EventDelivered)
	set(&line.TookMS, e.Took, wakebelltype.EventAcked, wakebelltype.EventRetried, wakebelltype.EventDiscarded, wakebelltype.EventCrashed,
		wakebelltype.EventSnoozed)
	set(&line.RetryInMS, e.RetryIn, wakebelltype.EventRetried, wakebelltype.EventSnoozed)
	return a.PrintJSON(line)
}

// eventText formats an event for the table output, with the topic unless it is empty.
func eventText(e wakebelltype.Event, topic string) string {
	at := "-"
	if !e.At.IsZero() {
		at = e.At.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	var facts []string
	fact := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if e.Attempt > 0 {
		fact("attempt %d", e.Attempt)
	}
	if e.Kind == wakebelltype.EventDelivered {
		fact("%v late", e.Lateness.Round(100*time.Microsecond))
	}
	if e.Took > 0 {
		fact("took %v", e.Took.Round(100*time.Microsecond))
	}
	if e.Kind == wakebelltype.EventRetried || e.Kind == wakebelltype.EventSnoozed {
		fact("again in %v", e.RetryIn.Round(time.Millisecond))
	}
	if e.Missed > 0 {
		fact("%d events", e.Missed)
	}
	if e.Entry != "" {
		fact("entry %s", e.Entry)
	}
	if e.Node != "" {
		fact("on %s", e.Node)
	}
	text := strings.Join(facts, ", ")
	if e.Text != "" {
		text += ": " + e.Text
	}
	id := e.ID
	if id == "" {
		id = "-"
	}
	if topic != "" {
		id = topic + "  " + id
	}
	return output.Escape(fmt.Sprintf("%-24s  %-10s  %s  %s", at, e.Kind, id, text))
}
