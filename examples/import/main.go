// Import shows a long job as one timer: 10,000 rows, with progress, a checkpoint after each
// page from which the next attempt resumes, and a result that the client waits for.
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
)

// Job is the body of a timer: what has been imported so far.
type Job struct {
	File string
	Row  int // the next one
	Sum  int // of the rows before
}

// Summary is the result.
type Summary struct{ Rows, Sum int }

// Imports is the topic.
var Imports = wakebell.NewTopic[Job]("imports")

const rows, page = 10_000, 1000

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
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleResult(Imports, importer(out), wakebell.RetryBackoff(100*time.Millisecond, time.Minute)),
	}})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	return errors.Join(wait(ctx, sys.Client(), out), sys.Stop())
}

// importer returns the handler. Its first attempt breaks off within the sixth page.
func importer(out *log.Logger) func(context.Context, wakebell.Timer[Job]) (Summary, error) {
	return func(ctx context.Context, t wakebell.Timer[Job]) (Summary, error) {
		job := t.Body
		out.Printf("attempt %d begins at row %d", t.Attempt, job.Row)
		for job.Row < rows {
			for range page {
				if t.Attempt == 1 && job.Row == 5500 {
					return Summary{}, errors.New("the database went away")
				}
				job.Sum += job.Row // in place of a row that is written to a database
				job.Row++
			}
			// The rows of a page are imported twice if the process ends before this line.
			if err := t.Checkpoint(ctx, job); err != nil {
				return Summary{}, err // another attempt has the timer
			}
			if err := t.Progress(ctx, float64(job.Row)/rows, fmt.Sprintf("%d of %d rows", job.Row, rows)); err != nil {
				out.Printf("progress: %v", err) // the import goes on
			}
		}
		return Summary{Rows: job.Row, Sum: job.Sum}, nil
	}
}

// wait schedules the import and waits for its result.
func wait(ctx context.Context, client *wakebell.Client, out *log.Logger) error {
	id, err := Imports.Schedule(ctx, client, Job{File: "customers.csv"}, wakebell.ID("customers"))
	if err != nil {
		return err
	}
	ending, err := client.Wait(ctx, Imports.Name(), id)
	if err != nil {
		return err
	}
	if ending.Result == nil {
		return fmt.Errorf("the import ended: %s %s", ending.End, ending.Reason)
	}
	sum, err := wakebell.ReadResult[Summary](ctx, client, Imports.Name(), id, ending.Result)
	if err != nil {
		return err
	}
	out.Printf("%s by attempt %d: %d rows, sum %d", ending.End, ending.Result.Attempt, sum.Rows, sum.Sum)
	out.Printf("progress: %.0f %%, %s", 100*ending.Progress.Fraction, ending.Progress.Note)
	return nil
}
