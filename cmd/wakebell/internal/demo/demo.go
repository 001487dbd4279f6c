// Package demo has the command that shows timers at work.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	leaseTTL    = 2 * time.Second
	retryDelay  = time.Second
	maxAttempts = 3
	// timeLimit is the time after which the demo stops waiting.
	timeLimit = 40 * time.Second
	// lookInterval is the interval at which the demo reads the state of its timers.
	lookInterval = 50 * time.Millisecond
)

// Command returns the command demo.
func Command(a *cli.App) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what timers do, in 15 seconds",
		Long: `Schedules six timers, handles them and prints what happens: one fires, one fails
and is retried, one crashes its actor and is redelivered when its lease expires,
one becomes a dead letter, two are cancelled. It ends with a table. The exit code
is 0 if all happened as expected.

It needs no Redis: a server runs inside the process. With --redis (not
WAKEBELL_REDIS) it uses that server, with a topic that it removes afterwards.
Output is coloured on a terminal; NO_COLOR turns colours off.`,
		Example: `  wakebell demo
  wakebell demo --redis redis://127.0.0.1:6379`,
		Args: cli.NoArgs,
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "log the actors' work on stderr")
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if a.RedisURL == "" {
			a.RedisURL = cli.EmbeddedRedis
		}
		return run(ctx, a, verbose, 1)
	})
	return cmd
}

// run slows the demo down by the factor pace.
func run(ctx context.Context, a *cli.App, verbose bool, pace int) (err error) {
	conn, err := a.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	log := slog.New(slog.DiscardHandler)
	if verbose {
		log = cli.NewLogger(a.Stderr, "text", "debug")
	}
	d := &demo{
		narrator: newNarrator(a.Stdout, output.IsTerminal(a.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"),
		topic:    wakebell.NewTopic[string]("demo-" + uuid.NewString()[:8]),
		records:  map[string]*record{},
		began:    make(chan string, len(scenario)),
		pace:     pace,
	}
	settings, err := connection.New(conn.Redis, conn.Config(log))
	if err != nil {
		return err
	}
	d.sys, err = wakebell.New(nil, settings, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(d.topic, d.handle,
			wakebell.LeaseTTL(d.paced(leaseTTL)), wakebell.MaxAttempts(maxAttempts), wakebell.RetryBackoff(d.paced(retryDelay), time.Minute))},
	})
	if err != nil {
		return err
	}
	d.client = d.sys.Client()
	defer func() {
		err = errors.Join(err, d.client.Forget(context.WithoutCancel(ctx), d.topic.Name()))
	}()
	if conn.Embedded() {
		d.tell(plain, "", "Redis runs inside this process until the demo ends.")
	}
	if err := d.perform(ctx); err != nil {
		return err
	}
	return d.conclude(ctx, a)
}

// perform runs the scenario until every timer has ended.
func (d *demo) perform(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.paced(timeLimit))
	defer cancel()
	err := d.play(limited)
	switch {
	case ctx.Err() != nil:
		return errors.New("the demo was interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		d.tell(bad, "", "The scenario did not finish within %v.", d.paced(timeLimit))
		return nil // conclude reports what is missing
	default:
		return err
	}
}

// play runs the scenario and stops the system in any case.
func (d *demo) play(ctx context.Context) (err error) {
	if err := d.schedule(ctx); err != nil {
		return err
	}
	if err := d.sys.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.sys.Stop()) }()
	d.tell(plain, "", "Actors handle the timers. After a crash a timer returns in %v.", d.paced(leaseTTL))

	ctx, cancel := context.WithCancel(ctx)
	interfered := make(chan error, 1)
	go func() { interfered <- d.interfere(ctx) }()
	err = d.awaitEnds(ctx)
	cancel() // ends an interference whose condition never came
	if failed := <-interfered; err == nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	return err
}

// schedule stores all timers in one round trip.
func (d *demo) schedule(ctx context.Context) error {
	drafts := make([]wakebell.Draft, len(scenario))
	for i, s := range scenario {
		drafts[i] = d.topic.Draft(s.plan, wakebell.ID(s.id), wakebell.In(d.paced(s.in)))
	}
	d.begin()
	if _, err := d.client.Schedule(ctx, drafts...); err != nil {
		return err
	}
	for _, s := range scenario {
		d.records[s.id] = &record{}
		d.tell(info, s.id, "scheduled in %v: %s", d.paced(s.in), s.plan)
	}
	return nil
}

// interfere cancels the two timers that the scenario cancels.
func (d *demo) interfere(ctx context.Context) error {
	for _, s := range scenario {
		if s.cancel == nil {
			continue
		}
		if err := s.cancel(ctx, d, s.id); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnds waits until Redis has no timer left and the last due time has passed.
func (d *demo) awaitEnds(ctx context.Context) error {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	reported := false
	for {
		stats, err := d.client.Stats(ctx, d.topic.Name())
		if err != nil {
			return err
		}
		if stats.Dead > 0 && !reported {
			reported = true
			if err := d.findDead(ctx); err != nil {
				return err
			}
		}
		if stats.Total == 0 && d.elapsed() > d.paced(lastInstant())+500*time.Millisecond {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// findDead notes the timers that have become dead letters.
func (d *demo) findDead(ctx context.Context) error {
	for letter, err := range d.client.DeadLetters(ctx, d.topic.Name(), wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		if err != nil {
			return err
		}
		d.end(letter.ID, fmt.Sprintf("failed %d times, is a dead letter", letter.Failures))
		d.tell(bad, letter.ID, "became a dead letter: %s", letter.Reason)
	}
	return nil
}

// conclude prints what happened to each timer, and fails if it differs from the
// scenario.
func (d *demo) conclude(ctx context.Context, a *cli.App) error {
	var wrong []error
	if err := a.Printf("\n"); err != nil {
		return err
	}
	t := output.NewTable(a.Stdout, a.Screen(), output.Text("TIMER"), output.Text("WHAT HAPPENED"), output.Numeric("ATTEMPTS"), output.Short("LATENESS"))
	for _, s := range scenario {
		r := d.records[s.id]
		late := ""
		if r.attempts > 0 {
			late = fmt.Sprintf("%.1f ms", output.Millis(r.lateness))
		}
		t.Row(s.id, r.ending, fmt.Sprint(r.attempts), late)
		if r.ending != s.ending || r.attempts != s.attempts {
			wrong = append(wrong, fmt.Errorf("%s: want %s after %d attempts, got %s after %d",
				s.id, s.ending, s.attempts, r.shown(), r.attempts))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	stats, err := d.client.Stats(ctx, d.topic.Name())
	if err != nil {
		return err
	}
	if stats.Total != 0 {
		wrong = append(wrong, fmt.Errorf("%d timers are left in Redis", stats.Total))
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	d.tell(good, "", "Everything happened as expected. Lateness is that of the first attempt.")
	return nil
}
