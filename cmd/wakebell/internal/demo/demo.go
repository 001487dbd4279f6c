// Package demo shows timers at work. It needs few packages, so that the first program that
// a newcomer compiles is a small one.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
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

// Settings say where the demo runs.
type Settings struct {
	// Redis is the server, of which the demo uses one topic that it removes afterwards.
	Redis redis.UniversalClient
	// Embedded says that the server ends with the demo.
	Embedded bool
	// Connection configures the connection to the server.
	Connection connection.Config
	// Out receives what happens and the table, which is laid out for Screen.
	Out    io.Writer
	Screen output.Screen
}

// Run performs the scenario. It fails if anything happens that was not to be expected.
func Run(ctx context.Context, s Settings) error { return run(ctx, s, 1) }

// run slows the demo down by the factor pace.
func run(ctx context.Context, s Settings, pace int) (err error) {
	d := &demo{
		narrator: newNarrator(s.Out, output.IsTerminal(s.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"),
		topic:    wakebell.NewTopic[string]("demo-" + uuid.NewString()[:8]),
		records:  map[string]*record{},
		began:    make(chan string, len(scenario)),
		pace:     pace,
	}
	conn, err := connection.New(s.Redis, s.Connection)
	if err != nil {
		return err
	}
	d.sys, err = wakebell.New(nil, conn, wakebell.Config{
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
	if s.Embedded {
		d.tell(plain, "", "Redis runs inside this process until the demo ends.")
	}
	if err := d.perform(ctx); err != nil {
		return err
	}
	return d.conclude(ctx, s.Out, s.Screen)
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
func (d *demo) conclude(ctx context.Context, out io.Writer, screen output.Screen) error {
	var wrong []error
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	t := output.NewTable(out, screen, output.Text("TIMER"), output.Text("WHAT HAPPENED"), output.Numeric("ATTEMPTS"), output.Short("LATENESS"))
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
