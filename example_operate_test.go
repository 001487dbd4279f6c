package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/wakebelltype"
)

func ExampleOperator() {
	// The interface accepts a Client and a remote.Client.
	maintain := func(ctx context.Context, of wakebell.Operator, topic string) error {
		_, err := of.Pause(ctx, topic, "ops", "the database moves")
		return err
	}
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(maintain(ctx, c, Invoices.Name()))
		ordered, err := c.Control(ctx, Invoices.Name())
		check(err)
		fmt.Println(ordered.Paused, ordered.Reason)
	})
	// Output: true the database moves
}

func ExampleClient_Prefix() {
	connect(func(_ context.Context, c *wakebell.Client) {
		fmt.Printf("%q\n", c.Prefix()+Invoices.Name()) // the name in its keys
	})
	// Output: "invoices"
}

func ExampleClient_Audit() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := c.Pause(wakebell.WithCaller(ctx, "ada"), "invoices", "", "the database moves")
		check(err)
		_, err = c.CancelAll(wakebell.WithCaller(ctx, "bob"), "invoices")
		check(err)
		for e, err := range c.Audit(ctx, wakebelltype.AuditFilter{Operation: "topic"}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(e.By, e.Operation, e.Name, e.Count, e.Detail)
		}
	})
	// Output:
	// ada topic.pause invoices 1 reason: the database moves
	// bob topic.cancel_all invoices 0
}

func ExampleClient_History() {
	charge := func(_ context.Context, t wakebell.Timer[Invoice]) error {
		if t.Attempt == 1 {
			return fmt.Errorf("the bank is down: %w", wakebell.RetryIn(time.Millisecond))
		}
		return nil
	}
	record := wakebell.History(wakebelltype.HistoryFailures) // the default
	run(wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(Invoices, charge, record)}}, func(sys *wakebell.System) {
		ctx, c := context.Background(), sys.Client()
		bill(c, "inv-42")
		ended := false
		for !ended {
			filter := wakebelltype.HistoryFilter{ID: "inv-42", Last: 1}
			for a, err := range c.History(ctx, "invoices", filter, wakebelltype.Page{}) {
				check(err)
				ended = a.Final()
			}
		}
		for a, err := range c.History(ctx, "invoices", wakebelltype.HistoryFilter{ID: "inv-42"}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(a.Attempt, a.Outcome, a.Error)
		}
	})
	// Output:
	// 1 retried the bank is down: retry in 1ms
	// 2 acked
}

func ExampleClient_RecordChange() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		found, err := c.Cancel(ctx, "invoices", "inv-42", "inv-43")
		check(err)
		change := wakebelltype.Change{Operation: wakebelltype.AuditTopicCancel, Name: "invoices", Detail: "invoices of a customer who left"}
		for _, presence := range found {
			if presence != wakebelltype.PresenceAbsent {
				change.Count++
			}
		}
		check(c.RecordChange(ctx, change))
		for e, err := range c.Audit(ctx, wakebelltype.AuditFilter{Last: 1}, wakebelltype.Page{}) {
			check(err)
			fmt.Println(e.Operation, e.Name, e.Count, e.Detail)
		}
	})
	// Output: topic.cancel invoices 1 invoices of a customer who left
}

// What is due in each of the next three hours.
func ExampleClient_CountDue() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42", wakebell.In(90*time.Minute))
		counts, err := c.CountDue(ctx, "invoices", time.Now(), time.Hour, 3)
		check(err)
		fmt.Println(counts)
	})
	// Output: [0 1 0]
}

func ExampleClient_AskNodes() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		answers, err := c.AskNodes(ctx, "invoices", "mails")
		var unasked *wakebelltype.UnaskedError // this Redis user has all rights
		if errors.As(err, &unasked) {
			fmt.Println(unasked.Topics, unasked.Err)
			err = nil
		}
		check(err)
		fmt.Println(len(answers), "nodes")
	})
	// Output: 0 nodes
}

func ExampleClient_Throughput() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		bill(c, "inv-42")
		t, err := c.Throughput(ctx, "invoices", 6*time.Hour)
		check(err)
		now := t.Points[len(t.Points)-1]
		fmt.Println(t.Step, len(t.Points), now.Scheduled, now.Handled)
	})
	// Output: 1m0s 360 1 0
}

// The topic is spread over 16 shards, which a Redis Cluster distributes over its servers.
// Clients need no option: they read the number of shards from Redis.
func ExampleShards() {
	type click struct{ URL string }
	clicks := wakebell.NewTopic[click]("clicks")

	h := wakebell.Handle(clicks, func(ctx context.Context, t wakebell.Timer[click]) error {
		fmt.Println(t.Body.URL)
		return nil
	}, wakebell.Shards(16), wakebell.MaxConcurrent(160))

	show := func(ctx context.Context, client *wakebell.Client) error {
		layout, err := client.Shards(ctx, clicks.Name())
		fmt.Println(layout.Shards, "shards")
		return err
	}
	_, _ = h, show
}

// A topic with timers gets more shards while it is used.
func ExampleClient_Reshard() {
	reshard := func(ctx context.Context, client *wakebell.Client) error {
		for progress, err := range client.Reshard(ctx, "clicks", 16) {
			if err != nil {
				return err
			}
			fmt.Println(progress.Moved, "moved,", progress.Left, "left")
		}
		return nil
	}
	_ = reshard
}

// A client divides a topic that has no timers yet.
func ExampleClient_Divide() {
	divide := func(ctx context.Context, client *wakebell.Client) error {
		layout, err := client.Divide(ctx, "clicks", 16)
		if errors.Is(err, wakebell.ErrInvalid) {
			fmt.Println("it keeps its", layout.Shards, "shards:", err)
		}
		return err
	}
	_ = divide
}

// A topic moves to a Cluster while nodes of both handle it.
func ExampleClient_MoveTopic() {
	move := func(ctx context.Context, from *wakebell.Client) error {
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"a:7000", "b:7000"}})
		defer func() { _ = cluster.Close() }()
		conn, err := connection.New(cluster, connection.Config{})
		if err != nil {
			return err
		}
		to, err := wakebell.NewClient(conn)
		if err != nil {
			return err
		}
		for progress, err := range from.MoveTopic(ctx, "invoices", to, wakebelltype.MoveOptions{}) {
			if err != nil {
				return err // another call continues
			}
			fmt.Println(progress.Moved, "moved,", progress.Left, "left")
		}
		return nil
	}
	_ = move
}

// The target of a move is lost, so what was on its way is put back.
func ExampleClient_AbortMove() {
	abort := func(ctx context.Context, client *wakebell.Client) error {
		back, err := client.AbortMove(ctx, "invoices")
		fmt.Println(back, "put back")
		return err
	}
	_ = abort
}

// A key of a topic was deleted by hand: timers get back what is left of them.
func ExampleClient_Repair() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		_, err := Invoices.Schedule(ctx, c, Invoice{}, wakebell.In(time.Hour))
		check(err)
		would, err := c.Repair(ctx, Invoices.Name(), wakebelltype.RepairOptions{})
		check(err)
		fmt.Println(would.Restored, "to restore,", would.Missing, "without a payload")
		_, err = c.Repair(ctx, Invoices.Name(), wakebelltype.RepairOptions{Apply: true, At: time.Now().Add(time.Hour)})
		check(err)
	})
	// Output: 0 to restore, 0 without a payload
}

// A topic is written to a file, as a backup.
func ExampleClient_ExportTopic() {
	backup := func(ctx context.Context, client *wakebell.Client, file io.Writer) error {
		for progress, err := range client.ExportTopic(ctx, "invoices", file) {
			if err != nil {
				return err // the file is not complete
			}
			fmt.Println(progress.Timers, "of", progress.Total)
		}
		return nil
	}
	_ = backup
}

// What was exported is stored again; timers that exist stay as they are.
func ExampleClient_ImportTopic() {
	restore := func(ctx context.Context, client *wakebell.Client) error {
		file, err := os.Open("invoices.jsonl")
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		var last wakebelltype.Imported
		for progress, err := range client.ImportTopic(ctx, file, wakebelltype.ImportOptions{}) {
			if last = progress; err != nil {
				return fmt.Errorf("stored up to line %d: %w", last.Line, err)
			}
		}
		fmt.Println(last.Stored, "stored,", last.Existed, "existed")
		return nil
	}
	_ = restore
}
