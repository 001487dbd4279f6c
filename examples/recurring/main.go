// Recurring stores a recurring schedule, pauses it, and fires it once by hand. Node and
// beat are one program here; any number of each may run.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/examples/tryout"
	"github.com/wakebell/wakebell/recurring"
)

// Reports is the topic of the runs.
var Reports = wakebell.NewTopic[string]("reports")

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
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	handled := make(chan struct{})
	report := func(ctx context.Context, t wakebell.Timer[string]) error {
		out.Printf("run %s of %s: %s", t.Headers.Map()["wakebell-run"], t.Headers.Map()["wakebell-schedule"], t.Body)
		select {
		case handled <- struct{}{}:
		case <-ctx.Done():
		}
		return nil
	}
	conn, err := connection.New(rdb, connection.Config{})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, conn, wakebell.Config{
		Handlers:  []wakebell.Handler{wakebell.Handle(Reports, report, wakebell.MaxConcurrent(1))},
		Scheduler: &recurring.SchedulerConfig{},
	})
	if err != nil {
		return err
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	if err := demonstrate(ctx, sys.Client().Schedules(), out, handled); err != nil {
		return err
	}
	return sys.Stop()
}

func demonstrate(ctx context.Context, s *recurring.Schedules, out *log.Logger, handled <-chan struct{}) error {
	// Every night would be Cron: "30 2 * * *", Zone: "Europe/Berlin".
	when := recurring.Rule{Every: 200 * time.Millisecond, MaxRuns: 3}
	if err := s.Put(ctx, Reports.Recurring("sales", when, "sales of the day")); err != nil {
		return err
	}
	<-handled
	<-handled
	<-handled
	out.Print("that was the last by itself")
	if err := s.Pause(ctx, "sales"); err != nil {
		return err
	}
	if _, err := s.RunNow(ctx, "sales"); err != nil {
		return err
	}
	<-handled
	return s.Delete(ctx, "sales")
}
