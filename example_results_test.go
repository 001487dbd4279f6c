package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Import is the body of a timer that imports rows, from Row on.
type Import struct {
	File string
	Row  int
}

// Imported is its result.
type Imported struct{ Rows int }

var Imports = wakebell.NewTopic[Import]("imports")

// The second attempt resumes where the first one was interrupted, and the client gets what the
// handler returned.
func ExampleHandleResult() {
	const rows = 100
	load := func(ctx context.Context, t wakebell.Timer[Import]) (Imported, error) {
		for row := t.Body.Row; row < rows; row++ {
			if row == 50 && t.Attempt == 1 {
				return Imported{}, errors.New("the connection broke")
			}
			if row%10 == 0 {
				if err := t.Checkpoint(ctx, Import{File: t.Body.File, Row: row}); err != nil {
					return Imported{}, err
				}
				_ = t.Progress(ctx, float64(row)/rows, fmt.Sprint("row ", row)) // it is information alone
			}
		}
		fmt.Println("attempt", t.Attempt, "began at row", t.Body.Row)
		return Imported{Rows: rows}, t.Progress(ctx, 1, "all rows")
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleResult(Imports, load, wakebell.KeepResults(10*time.Minute), wakebell.RetryBackoff(time.Millisecond, time.Second)),
	}}, func(sys *wakebell.System) {
		ctx := context.Background()
		id, err := Imports.Schedule(ctx, sys.Client(), Import{File: "customers.csv"})
		check(err)
		var client wakebell.Waiter = sys.Client()
		ending, err := client.Wait(ctx, "imports", id)
		check(err)
		var result *wakebell.Result = ending.Result
		imported, err := wakebell.ReadResult[Imported](ctx, sys.Client(), "imports", id, result)
		check(err)
		fmt.Println(ending.End == wakebelltype.EndDone, imported.Rows, result.Attempt)

		var report wakebell.Report
		report, err = client.Report(ctx, "imports", id) // also while the timer runs
		check(err)
		fmt.Println(report.Progress.Fraction, report.Progress.Note)
	})
	// Output:
	// attempt 2 began at row 40
	// true 100 2
	// 1 all rows
}

// A handler of a batch gives each timer its result. Wait says how a timer ended.
func ExampleMeta_Result() {
	sum := func(ctx context.Context, batch []wakebell.Timer[Import]) error {
		for _, t := range batch {
			if err := t.Result(ctx, len(t.Body.File)); err != nil {
				return err
			}
		}
		return nil
	}
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.HandleBatch(Imports, sum)}}, func(sys *wakebell.System) {
		ctx := context.Background()
		id, err := Imports.Schedule(ctx, sys.Client(), Import{File: "a.csv"})
		check(err)
		ending, err := sys.Client().Wait(ctx, "imports", id)
		check(err)
		var e wakebell.Ending = ending
		fmt.Println(e.End, string(e.Result.Content.Body))
	})
	// Output: done 5
}
