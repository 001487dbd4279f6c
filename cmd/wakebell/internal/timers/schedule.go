package timers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/wakebelltype"
)

// scheduleBatch is the number of timers per call.
const scheduleBatch = 1000

type scheduleFlags struct {
	topic, id string
	key       string
	dueFlags
	json          string
	text          string
	hex           string
	file          string
	contentType   string
	headers       []string
	correlationID string
	ifExists      cli.Choice
	debounce      time.Duration
	once          time.Duration
	expireAfter   time.Duration
	after         []string
	count         int
	spacing       time.Duration

	given func(flag string) bool
}

func scheduleCommand(a *cli.App) *cobra.Command {
	f := &scheduleFlags{ifExists: cli.OneOf("replace", "keep", "earliest")}
	cmd := &cobra.Command{
		Use:   "schedule --topic TOPIC",
		Short: "Schedule timers",
		Long: `Schedules a timer and prints its id; with -o json an object with topic, id, due
and outcome (created, replaced, moved, superseded, kept pending, kept running,
kept earlier, already done). Without --in and --at it is due immediately; without
a body flag its body is empty.

With --count N it schedules N timers, in batches of 1,000, and prints one id per
line: new ids or, with --id, ID-0 to ID-<N-1>. With --spacing they are due one
after the other. On an interrupt it finishes the current batch and prints how many
timers are scheduled: those whose ids were printed. After an error, others of the
last batch may be scheduled as well.`,
		Example: `  wakebell schedule --topic invoices --in 72h --json '{"n": 42}'
  wakebell schedule -t invoices --id inv-42 --at 2031-01-02T15:04:05Z --text hello
  wakebell schedule -t mail --file letter.pdf --content-type application/pdf
  wakebell schedule -t reindex --id shop-7 --in 5s --debounce 1m
  wakebell schedule -t reports --id mailed --in 24h --after mail/ann --after mail/bob
  wakebell schedule -t load --count 10000 --spacing 1ms --hex cafe`,
		Args: cli.NoArgs,
	}
	a.TopicFlag(cmd, &f.topic, "`topic` of the timers")
	f.register(cmd)
	a.OutputFlag(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		return a.Ask(ctx, func(c cli.Client) error {
			draft, err := f.drafter(a.Stdin)
			if err != nil {
				return err
			}
			a.WarnUnused(ctx, c, f.topic)
			return scheduleTimers(ctx, a, c, f, draft)
		})
	})
	return cmd
}

func (f *scheduleFlags) register(cmd *cobra.Command) {
	f.dueFlags.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "`id` of the timer (default a new one)")
	flags.StringVar(&f.key, "key", "", "`key` of the timer, by which handlers with --per-key order timers (default none)")
	flags.StringVar(&f.json, "json", "", "JSON `body`, sent without whitespace between tokens")
	flags.StringVar(&f.text, "text", "", "text `body`")
	flags.StringVar(&f.hex, "hex", "", "`body` of bytes, in hex")
	flags.StringVar(&f.file, "file", "", "`file` with a body of bytes; - is stdin")
	flags.StringVar(&f.contentType, "content-type", "", "content `type` of --file or --hex (default none)")
	flags.StringArrayVar(&f.headers, "header", nil, "a header, `key=value`; can be repeated")
	flags.StringVar(&f.correlationID, "correlation-id", "", "`id` of the cause of the timer (default its own id)")
	flags.Var(&f.ifExists, "if-exists", "what to do with an existing timer of the same id")
	cli.DurationVar(flags, &f.debounce, "debounce", 0, "postpone a pending timer of the same id by --in, at most to this `limit` after the first; 0s: no limit")
	cli.DurationVar(flags, &f.once, "once", 0, "fire the id only once until this `window` after its due time, however often it is scheduled")
	cli.DurationVar(flags, &f.expireAfter, "expire-after", 0, "handle the timer only if it can begin within this `time` after its instant, 1ms to 365 days (default that of the topic's handler)")
	flags.StringArrayVar(&f.after, "after", nil, "due when this timer has ended, `topic/id`, at the latest at --in or --at, which it needs; can be repeated")
	flags.IntVar(&f.count, "count", 1, "number of timers")
	cli.DurationVar(flags, &f.spacing, "spacing", 0, "time between the due times of successive timers")
	f.given = flags.Changed
	cli.CompleteChoice(cmd, "if-exists", f.ifExists)
	cli.CompleteFiles(cmd, "file")
	cmd.MarkFlagsMutuallyExclusive("json", "text", "hex", "file")
	cmd.MarkFlagsMutuallyExclusive("debounce", "if-exists")
	cmd.MarkFlagsMutuallyExclusive("debounce", "at")
	for _, flag := range []string{"debounce", "if-exists", "once"} {
		cmd.MarkFlagsMutuallyExclusive("after", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("debounce", "spacing")
	cmd.MarkFlagsMutuallyExclusive("content-type", "json")
	cmd.MarkFlagsMutuallyExclusive("content-type", "text")
}

type scheduledLine struct {
	Topic   string `json:"topic"`
	ID      string `json:"id"`
	Due     string `json:"due"`
	Outcome string `json:"outcome"`
}

func scheduleTimers(ctx context.Context, a *cli.App, c wakebell.TimerClient, f *scheduleFlags, draft func(i int) wakebell.Draft) error {
	began := time.Now()
	progress := a.Progress("schedule", int64(f.count))
	// An interrupt does not stop the current batch, so that it is known which timers
	// were stored.
	last, stop := outlasting(ctx)
	defer stop()
	for first := 0; first < f.count; first += scheduleBatch {
		if ctx.Err() != nil {
			return f.unfinished(first, 0, cli.ErrInterrupted)
		}
		drafts := make([]wakebell.Draft, 0, scheduleBatch)
		for i := first; i < min(first+scheduleBatch, f.count); i++ {
			drafts = append(drafts, draft(i))
		}
		scheduled, err := c.Schedule(last, drafts...)
		if printed := printScheduled(a, f.topic, scheduled); printed != nil {
			return errors.Join(err, f.unfinished(first+len(scheduled), 0, printed))
		}
		if err != nil {
			return f.unfinished(first+len(scheduled), len(drafts)-len(scheduled), err)
		}
		progress.Add(int64(len(scheduled)))
	}
	if f.count > 1 {
		a.Summaryf("%s timers are scheduled, in %v", a.Screen().Count(int64(f.count)), output.Took(began))
	}
	return nil
}

// unfinished adds to an error how many of --count timers are stored, and how many
// others may be.
func (f *scheduleFlags) unfinished(stored, unknown int, err error) error {
	if f.count == 1 {
		return err
	}
	ids := func(first, n int) string {
		if !f.given("id") {
			return ""
		}
		return fmt.Sprintf(" (%s-%d to %s-%d)", f.id, first, f.id, first+n-1)
	}
	done := fmt.Sprintf("%d of %d timers are scheduled", stored, f.count)
	if stored > 0 {
		done += ids(0, stored) + ", whose ids were printed"
	}
	if unknown > 0 && !errors.Is(err, wakebell.ErrInvalid) {
		done += fmt.Sprintf("; %d more may be", unknown) + ids(stored, unknown)
	}
	return cli.After(done, err)
}

func printScheduled(a *cli.App, topic string, scheduled []wakebelltype.Scheduled) error {
	var out bytes.Buffer
	for _, s := range scheduled {
		if !a.WantsJSON() {
			id := s.ID
			if output.IsTerminal(a.Stdout) { // a program needs the id as it is
				id = output.Escape(id)
			}
			fmt.Fprintln(&out, id)
			continue
		}
		line, err := output.JSONLine(scheduledLine{a.Prefix + topic, s.ID, output.Stamp(s.Due), s.Outcome.String()})
		if err != nil {
			return err
		}
		out.Write(line)
	}
	return a.Write(out.Bytes())
}
