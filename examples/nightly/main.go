// Nightly starts a chain every night: extract, load, report. The run of a recurring schedule
// schedules the three steps at once; each but the first is due when the one before it has
// ended, and reads its result. Node and beat are one program here.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The topics: the runs, and the steps.
var (
	Runs    = wakebell.NewTopic[string]("nightly")
	Extract = wakebell.NewTopic[string]("nightly.extract")
	Load    = wakebell.NewTopic[string]("nightly.load")
	Report  = wakebell.NewTopic[string]("nightly.report")
)

// Rows is the result of a step.
type Rows struct{ Count int }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rdb, done := tryout.Redis() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer done()
	if err := run(ctx, rdb, log.New(os.Stdout, "", 0)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, rdb *redis.Client, out *log.Logger) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(conn)
	if err != nil {
		return err
	}
	n := nightly{client, out, done}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers: []wakebell.Handler{
			wakebell.Handle(Runs, n.begin), wakebell.HandleResult(Extract, n.extract),
			wakebell.HandleResult(Load, n.load), wakebell.Handle(Report, n.report),
		},
		Scheduler: &recurring.SchedulerConfig{},
	})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	// Every night would be Cron: "30 2 * * *", Zone: "Europe/Berlin".
	when := recurring.Rule{Every: 100 * time.Millisecond, MaxRuns: 1}
	if err := client.Schedules().Put(ctx, Runs.Recurring("nightly", when, "sales")); err != nil {
		return errors.Join(err, sys.Stop())
	}
	<-ctx.Done()
	return sys.Stop()
}

// nightly is what the handlers have.
type nightly struct {
	client *wakebell.Client
	out    *log.Logger
	done   func()
}

// begin schedules the chain. The ids are derived from the run: if begin is repeated after a
// crash, it replaces the steps and adds none.
func (n nightly) begin(ctx context.Context, t wakebell.Timer[string]) error {
	n.out.Printf("run: extract, load and report %s", t.Body)
	_, err := n.client.Schedule(ctx, wakebell.Chain(
		Extract.Draft(t.Body, wakebell.ID(t.ID)),
		Load.Draft(t.Body, wakebell.ID(t.ID), wakebell.In(time.Hour)), // the time-out of the step before
		Report.Draft(t.Body, wakebell.ID(t.ID), wakebell.In(2*time.Hour)),
	)...)
	return err
}

func (n nightly) extract(_ context.Context, t wakebell.Timer[string]) (Rows, error) {
	n.out.Printf("extract, attempt %d", t.Attempt)
	if t.Attempt == 1 { // retries are part of the step; the next one waits for its end
		return Rows{}, wakebell.RetryIn(50 * time.Millisecond)
	}
	return Rows{Count: 1200}, nil
}

func (n nightly) load(ctx context.Context, t wakebell.Timer[string]) (Rows, error) {
	rows, err := n.before(ctx, t.Meta)
	if err != nil {
		return Rows{}, err
	}
	n.out.Printf("load %d rows", rows.Count)
	return rows, nil
}

func (n nightly) report(ctx context.Context, t wakebell.Timer[string]) error {
	rows, err := n.before(ctx, t.Meta)
	if err != nil {
		return err
	}
	n.out.Printf("report %s: %d rows were loaded", t.Body, rows.Count)
	n.done()
	return nil
}

// before returns the result of the step before. If that failed or is late, this one is a dead
// letter, and so are those after it.
func (n nightly) before(ctx context.Context, t wakebell.Meta) (rows Rows, err error) {
	for p, err := range t.Parts(ctx) {
		if err != nil {
			return rows, err
		}
		if p.End != wakebelltype.EndDone {
			return rows, wakebell.Reject(fmt.Errorf("%s is %q: %s", p.Topic, p.End, p.Reason))
		}
		if rows, err = wakebell.ReadResult[Rows](ctx, n.client, p.Topic, p.ID, p.Result); err != nil {
			return rows, err
		}
	}
	return rows, nil
}
