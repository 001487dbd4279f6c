package wakebell_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
)

// Report is what a nightly run asks for.
type Report struct{ Kind string }

var nightly = wakebell.NewTopic[Report]("reports")

func ExampleTopic_Recurring() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		schedules := c.Schedules()
		err := schedules.Put(ctx, nightly.Recurring("sales", recurring.Rule{
			Cron:    "30 2 * * 1-5",
			Zone:    "Europe/Berlin",
			Jitter:  time.Minute,
			Misfire: recurring.MisfireSkip, // after downtime, wait for the next night
			Overlap: recurring.OverlapQueue,
		}, Report{"sales"}))
		if err != nil {
			log.Fatal(err)
		}
		state, err := schedules.Get(ctx, "sales")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(state.Name, "on", state.Topic, "by", state.RuleText)
	})
	// Output: sales on reports by cron 30 2 * * 1-5
}

func ExampleBeat() {
	done := make(chan wakebell.Headers, 1)
	handle := func(_ context.Context, t wakebell.Timer[Report]) error {
		select {
		case done <- t.Headers:
		default:
		}
		return nil
	}
	run(wakebell.Config{
		Handlers: []wakebell.Handler{wakebell.Handle(nightly, handle)},
		Scheduler: &recurring.SchedulerConfig{
			Owner: "reporting",
			Schedules: []recurring.Schedule{
				nightly.Recurring("quick", recurring.Rule{Every: 10 * time.Millisecond}, Report{"load"}),
			},
			OnFire: func(r recurring.Run) { _ = r.Name },
		},
	}, func(*wakebell.System) {
		fmt.Println("run of", (<-done).Map()["wakebell-schedule"])
	})
	// Output: run of quick
}

func ExampleSchedules_RunNow() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		schedules := c.Schedules()
		when := recurring.Rule{
			Crontab: &recurring.Crontab{Minute: "0", Hour: "*/6", DayOfWeek: "mon-fri"},
			Misfire: recurring.MisfireAll, Overlap: recurring.OverlapAllow,
		}
		check(schedules.Put(ctx, nightly.Recurring("sync", when, Report{"sync"})))
		check(schedules.Pause(ctx, "sync")) // no beat fires it
		run, err := schedules.RunNow(ctx, "sync")
		check(err)
		fmt.Println("run", run.Number, "of", run.Name)
		check(schedules.Resume(ctx, "sync"))

		check(schedules.Delete(ctx, "sync"))
		if err := schedules.Delete(ctx, "sync"); errors.Is(err, recurring.ErrNotFound) {
			fmt.Println("it is gone")
		}
	})
	// Output:
	// run 1 of sync
	// it is gone
}

func ExampleSchedules_Preview() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		when := recurring.Rule{RRule: "DTSTART:20990105T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2"}
		check(c.Schedules().Put(ctx, nightly.Recurring("weekly", when, Report{"week"})))
		next, err := c.Schedules().Preview(ctx, "weekly", 5)
		check(err)
		for _, at := range next {
			fmt.Println(at.Format(time.RFC3339))
		}
	})
	// Output:
	// 2099-01-05T09:00:00Z
	// 2099-01-12T09:00:00Z
}

func ExampleSchedules_Backfill() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(c.Schedules().Put(ctx, nightly.Recurring("hourly", recurring.Rule{Cron: "0 * * * *"}, Report{"hour"})))
		from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		n, err := c.Schedules().Backfill(ctx, "hourly", from, from.AddDate(0, 0, 1))
		check(err)
		fmt.Println(n, "runs")
	})
	// Output: 24 runs
}

func ExampleSchedules_List() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(c.Schedules().Put(ctx, nightly.Recurring("hourly", recurring.Rule{Every: time.Hour}, Report{"hour"})))
		for state, err := range c.Schedules().List(ctx) {
			check(err)
			fmt.Println(state.Name, state.RuleText)
		}
	})
	// Output: hourly every 1h0m0s
}

// Celery workers run the task, without a Python beat.
func ExampleCeleryTask() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		r := recurring.Celery("cleanup", "app.tasks.cleanup", recurring.Rule{Every: time.Hour},
			[]any{30}, map[string]any{"dry": true}, map[string]any{"queue": "slow"})
		check(c.Schedules().Put(ctx, r))
		_, err := c.Schedules().RunNow(ctx, "cleanup")
		check(err)
		fmt.Println("sent")
	})
	// Output: sent
}

func ExampleSchedules_Import() {
	connect(func(ctx context.Context, c *wakebell.Client) {
		check(c.Schedules().Put(ctx, nightly.Recurring("hourly", recurring.Rule{Every: time.Hour}, Report{"hour"})))
		dump, err := c.Schedules().Export(ctx, "hourly")
		check(err)
		check(c.Schedules().Delete(ctx, "hourly"))
		check(c.Schedules().Import(ctx, dump))
		state, err := c.Schedules().Get(ctx, "hourly")
		check(err)
		fmt.Println(state.RuleText)
	})
	// Output: every 1h0m0s
}
