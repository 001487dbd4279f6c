package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleTopic_Schedule() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		id, err := Invoices.Schedule(ctx, c, Invoice{"42", 995}, wakebell.ID("inv-42"), wakebell.In(72*time.Hour))
		fmt.Println(id, err)

		_, err = Invoices.Schedule(ctx, c, Invoice{}, wakebell.ID(""))
		fmt.Println(errors.Is(err, wakebell.ErrInvalid), err)
	})
	// Output:
	// inv-42 <nil>
	// true timer 0: invalid argument: ID: empty; leave it out for a new one
}

func ExampleAt() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		noon := time.Date(2040, 1, 2, 12, 0, 0, 0, time.UTC)
		bill(c, "inv-42", wakebell.At(noon))
		info, _, err := c.Get(ctx, Invoices.Name(), "inv-42")
		check(err)
		fmt.Println(info.Due.UTC())
	})
	// Output: 2040-01-02 12:00:00 +0000 UTC
}

func ExampleIn() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		before := time.Now()
		bill(c, "inv-42", wakebell.In(time.Hour)) // by Redis's clock
		info, _, err := c.Get(ctx, Invoices.Name(), "inv-42")
		check(err)
		fmt.Println(info.Due.Sub(before).Round(time.Minute))
	})
	// Output: 1h0m0s
}

func ExampleClient_Schedule() {
	receipts := wakebell.NewTopic[string]("receipts")
	connect(func(ctx context.Context, c *wakebell.Client) {
		drafts := []wakebell.Draft{ // of several topics, in a round trip for each
			Invoices.Draft(Invoice{"42", 995}, wakebell.ID("inv-42"), wakebell.In(time.Hour)),
			Invoices.Draft(Invoice{"43", 100}, wakebell.ID("inv-43")),
			receipts.Draft("thank you", wakebell.ID("rcp-1")),
		}
		for range 2 {
			stored, err := c.Schedule(ctx, drafts...)
			check(err)
			for _, s := range stored {
				fmt.Println(s.ID, s.Outcome)
			}
		}
	})
	// Output:
	// inv-42 created
	// inv-43 created
	// rcp-1 created
	// inv-42 replaced
	// inv-43 replaced
	// rcp-1 replaced
}

func ExampleDraft_ID() {
	fmt.Println(Invoices.Draft(Invoice{}, wakebell.ID("inv-42")).ID())
	fmt.Println(len(Invoices.Draft(Invoice{}).ID())) // a new one of digits and letters
	// Output:
	// inv-42
	// 22
}

func ExampleHeader() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.Header("x-tenant", "acme"), wakebell.CorrelationID("order-7"))
		_, content, err := c.Get(ctx, Invoices.Name(), "inv-42")
		check(err)
		tenant, ok := content.Headers.Get("x-tenant")
		fmt.Println(tenant, ok, content.Headers.Map())
		fmt.Println(content.CorrelationID)
	})
	// Output:
	// acme true map[x-tenant:acme]
	// order-7
}

func ExampleContentType() {
	pictures := wakebell.NewTopic[[]byte]("pictures") // bytes are stored unchanged
	connect(func(ctx context.Context, c *wakebell.Client) {
		id, err := pictures.Schedule(ctx, c, []byte("\x89PNG"), wakebell.ContentType("image/png"))
		check(err)
		_, content, err := c.Get(ctx, pictures.Name(), id)
		check(err)
		fmt.Printf("%s %q\n", content.ContentType, content.Body)
	})
	// Output: image/png "\x89PNG"
}

func ExampleIfExists() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		put := func(in time.Duration, p wakebelltype.Policy) {
			stored, err := c.Schedule(ctx, Invoices.Draft(Invoice{},
				wakebell.ID("inv-42"), wakebell.In(in), wakebell.IfExists(p)))
			check(err)
			fmt.Println(stored[0].Outcome)
		}
		put(2*time.Hour, wakebelltype.PolicyReplace)
		put(1*time.Hour, wakebelltype.PolicyKeep)
		put(3*time.Hour, wakebelltype.PolicyEarliest)
		put(1*time.Hour, wakebelltype.PolicyEarliest)
	})
	// Output:
	// created
	// kept pending
	// kept earlier
	// replaced
}

func ExampleOnce() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		put := func() wakebelltype.Outcome {
			stored, err := c.Schedule(ctx, Invoices.Draft(Invoice{}, wakebell.ID("inv-42"), wakebell.Once(time.Hour)))
			check(err)
			return stored[0].Outcome
		}
		fmt.Println(put())
		_, err := Invoices.Cancel(ctx, c, "inv-42") // or it was handled or dead-lettered
		check(err)
		fmt.Println(put()) // a late retry
	})
	// Output:
	// created
	// already done
}

func ExampleTopic_Cancel() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		for range 2 {
			was, err := Invoices.Cancel(ctx, c, "inv-42")
			check(err)
			fmt.Println(was)
		}
	})
	// Output:
	// pending
	// absent
}

func ExampleClient_Cancel() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		were, err := c.Cancel(ctx, "invoices", "inv-42", "inv-43")
		check(err)
		for _, was := range were {
			fmt.Println(was)
		}
	})
	// Output:
	// pending
	// absent
}

func ExampleClient_CancelAll() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		bill(c, "inv-43")
		fmt.Println(c.CancelAll(ctx, "invoices"))
	})
	// Output: 2 <nil>
}

func ExampleTopic_Reschedule() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		moved, err := Invoices.Reschedule(ctx, c, "inv-42", wakebell.In(3*time.Hour))
		check(err)
		fmt.Println(moved.Outcome, moved.Due.Sub(moved.Found).Round(time.Minute), "later")
	})
	// Output: moved 2h0m0s later
}

func ExampleClient_Reschedule() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.Reschedule(ctx, "invoices", "inv-42", wakebell.In(time.Hour))
		fmt.Println(errors.Is(err, wakebell.ErrNotFound))
	})
	// Output: true
}

func ExampleTopic_RunNow() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(time.Hour))
		was, err := Invoices.RunNow(ctx, c, "inv-42")
		check(err)
		stats, err := c.Stats(ctx, Invoices.Name())
		check(err)
		fmt.Println(was, "and now due:", stats.Due)
	})
	// Output: pending and now due: 1
}

func ExampleClient_RunNow() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.RunNow(ctx, "invoices", "inv-42")
		fmt.Println(errors.Is(err, wakebell.ErrNotFound))
	})
	// Output: true
}

// Bodies are encrypted in Redis, and plain in the handler. A System decodes with the keys
// that it has, the first of which encrypts.
func ExampleConfig_payloads() {
	today, err := payload.NewKey("2026-11", []byte("32 random bytes, from a keystore"))
	check(err)
	earlier, err := payload.NewKey("2026-05", []byte("the one that was replaced by it."))
	check(err)
	received := make(chan string)
	on := connection.Config{
		Payloads: &payload.Chain{Codecs: []payload.Codec{payload.Compress(1 << 10), payload.Encrypt(today, earlier)}},
	}
	runWith(on, wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(Invoices, func(_ context.Context, t wakebell.Timer[Invoice]) error {
			received <- fmt.Sprint(t.Body.Number, " ", payload.Marked(nil, t.Raw), " ", len(t.Raw))
			return nil
		})},
	}, func(sys *wakebell.System) {
		fmt.Println(sys.Client().Payloads().Limit == wakebell.DefaultPayloadLimit)
		bill(sys.Client(), "inv-42")
		fmt.Println(<-received)
	})
	// Output:
	// true
	// 42 false 71
}

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
		result := ending.Result
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
		e, err := sys.Client().Wait(ctx, "imports", id)
		check(err)
		r, err := sys.Client().Report(ctx, "imports", id)
		check(err)
		fmt.Println(e.End, string(e.Result.Content.Body), string(r.Result.Content.Body))
	})
	// Output: done 5 5
}
