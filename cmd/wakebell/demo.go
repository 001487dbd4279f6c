package main

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
)

const (
	demoLease    = 2 * time.Second
	demoRetry    = time.Second
	demoAttempts = 3
	// demoLimit is when what has not happened by then counts as not happening.
	demoLimit = 40 * time.Second
	// demoLook is how often Redis is asked what became of a timer.
	demoLook = 50 * time.Millisecond
)

func (a *app) demoCommand() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show in a quarter of a minute what timers do",
		Long: `Schedules a handful of timers, handles them and tells what happens: one fires,
one fails and is retried, one crashes its actor and comes back when its lease
ends, one is given up, two are cancelled. It ends with a table, and with 0 if
all went as told.

No Redis is needed: one runs inside the process. With --redis (not
WAKEBELL_REDIS) that one is used, in a topic that is removed afterwards.
Colours are for terminals, and NO_COLOR turns them off.`,
		Example: `  wakebell demo
  wakebell demo --redis redis://127.0.0.1:6379`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "log on stderr what the actors do")
	cmd.RunE = a.does(func(ctx context.Context, _ []string) error {
		if a.redisURL == "" {
			a.redisURL = embeddedRedis
		}
		return a.demo(ctx, verbose)
	})
	return cmd
}

func (a *app) demo(ctx context.Context, verbose bool) (err error) {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	log := slog.New(slog.DiscardHandler)
	if verbose {
		log = newLogger(a.stderr, "text", "debug")
	}
	d := &demo{
		narrator: newNarrator(a.stdout, isTerminal(a.stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"),
		topic:    wakebell.NewTopic[string]("demo-" + uuid.NewString()[:8]),
		records:  map[string]*record{},
		began:    make(chan string, len(story)),
		pace:     max(a.demoPace, 1),
	}
	d.sys, err = wakebell.New(newActorSystem(log), conn.rdb, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(d.topic, d.handle,
			wakebell.LeaseTTL(d.paced(demoLease)), wakebell.MaxAttempts(demoAttempts), wakebell.RetryBackoff(d.paced(demoRetry), time.Minute))},
		Keys: conn.settings.keys, Prefix: conn.settings.prefix, Logger: log,
	})
	if err != nil {
		return err
	}
	d.client = d.sys.Client()
	defer func() {
		err = errors.Join(err, d.client.Forget(context.WithoutCancel(ctx), d.topic.Name()))
	}()
	if conn.embedded() {
		d.tell(plain, "", "A Redis runs inside this process, for as long as the demo does.")
	}
	if err := d.perform(ctx); err != nil {
		return err
	}
	return d.conclude(ctx, a)
}

// perform runs the story until every timer has come to its end.
func (d *demo) perform(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, d.paced(demoLimit))
	defer cancel()
	err := d.play(limited)
	switch {
	case ctx.Err() != nil:
		return errors.New("the demo was interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		d.tell(bad, "", "Not everything happened within %v.", d.paced(demoLimit))
		return nil // conclude says what did not
	default:
		return err
	}
}

// play is perform without what ctx means. It stops the system in any case.
func (d *demo) play(ctx context.Context) (err error) {
	if err := d.schedule(ctx); err != nil {
		return err
	}
	if err := d.sys.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.sys.Stop()) }()
	d.tell(plain, "", "Actors handle them now. A lease lasts %v: after a crash, that is how long a timer waits.", d.paced(demoLease))

	ctx, cancel := context.WithCancel(ctx)
	interfered := make(chan error, 1)
	go func() { interfered <- d.interfere(ctx) }()
	err = d.awaitEnds(ctx)
	cancel() // for an interference that waits for what never came
	if failed := <-interfered; err == nil && !errors.Is(failed, context.Canceled) {
		err = failed
	}
	return err
}

// schedule stores all timers in one round trip.
func (d *demo) schedule(ctx context.Context) error {
	drafts := make([]wakebell.Draft, len(story))
	for i, s := range story {
		drafts[i] = d.topic.Draft(s.plan, wakebell.ID(s.id), wakebell.In(d.paced(s.in)))
	}
	d.begin()
	if _, err := d.client.Schedule(ctx, drafts...); err != nil {
		return err
	}
	for _, s := range story {
		d.records[s.id] = &record{}
		d.tell(news, s.id, "scheduled in %v: %s", d.paced(s.in), s.plan)
	}
	return nil
}

// interfere cancels the two timers that are to be cancelled.
func (d *demo) interfere(ctx context.Context) error {
	for _, s := range story {
		if s.cancel == nil {
			continue
		}
		if err := s.cancel(ctx, d, s.id); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnds waits until Redis has no timer left and the last instant passed.
func (d *demo) awaitEnds(ctx context.Context) error {
	look := time.NewTicker(demoLook)
	defer look.Stop()
	told := false
	for {
		counts, err := d.client.Count(ctx, d.topic.Name())
		if err != nil {
			return err
		}
		if counts.Dead > 0 && !told {
			told = true
			if err := d.findDead(ctx); err != nil {
				return err
			}
		}
		if counts.Total == 0 && d.elapsed() > d.paced(lastInstant())+500*time.Millisecond {
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
	for letter, err := range d.client.DeadLetters(ctx, d.topic.Name(), wakebell.DeadFilter{}) {
		if err != nil {
			return err
		}
		d.end(letter.ID, fmt.Sprintf("failed %d times, is a dead letter", letter.Failures))
		d.tell(bad, letter.ID, "is a dead letter now: %s", letter.Reason)
	}
	return nil
}

// conclude prints what happened to each timer, and fails if it is not what
// was to happen.
func (d *demo) conclude(ctx context.Context, a *app) error {
	var wrong []error
	if err := a.printf("\n"); err != nil {
		return err
	}
	t := newTable(a.stdout, "TIMER", "WHAT HAPPENED", "ATTEMPTS", "LATENESS")
	for _, s := range story {
		r := d.records[s.id]
		late := ""
		if r.attempts > 0 {
			late = fmt.Sprintf("%.1f ms", millis(r.lateness))
		}
		t.row(s.id, r.ending, fmt.Sprint(r.attempts), late)
		if r.ending != s.ending || r.attempts != s.attempts {
			wrong = append(wrong, fmt.Errorf("%s should have %s after %d attempts, but %s after %d",
				s.id, s.ending, s.attempts, r.shown(), r.attempts))
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	counts, err := d.client.Count(ctx, d.topic.Name())
	if err != nil {
		return err
	}
	if counts.Total != 0 {
		wrong = append(wrong, fmt.Errorf("%d timers are left in Redis", counts.Total))
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	d.tell(good, "", "All went as told. Lateness is that of the first attempt, by Redis's clock.")
	return nil
}
