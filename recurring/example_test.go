package recurring_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Report is the body of a nightly run.
type Report struct{ Kind string }

var nightly = wakebell.NewTopic[Report]("reports")

func Example() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		err := schedules.Put(ctx, nightly.Recurring("sales", recurring.Rule{
			Cron:    "30 2 * * 1-5",
			Zone:    "Europe/Berlin",
			Jitter:  time.Minute,
			Misfire: recurring.MisfireSkip, // after downtime, wait for the next night
			Overlap: recurring.OverlapQueue,
		}, Report{"sales"}))
		check(err)
		state, err := schedules.Get(ctx, "sales")
		check(err)
		fmt.Println(state.Name, "on", state.Topic, "by", state.RuleText)
	})
	// Output: sales on reports by cron 30 2 * * 1-5
}

func ExampleSchedulerConfig() {
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
	}, func() {
		fmt.Println("run of", (<-done).Map()["wakebell-schedule"])
	})
	// Output: run of quick
}

func ExampleSchedules_RunNow() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		when := recurring.Rule{
			Crontab: &recurring.Crontab{Minute: "0", Hour: "*/6", DayOfWeek: "mon-fri"},
			Misfire: recurring.MisfireAll, Overlap: recurring.OverlapAllow,
		}
		check(schedules.Put(ctx, nightly.Recurring("sync", when, Report{"sync"})))
		check(schedules.Pause(ctx, "sync")) // the scheduler does not fire it
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
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		when := recurring.Rule{RRule: "DTSTART:20990105T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2"}
		check(schedules.Put(ctx, nightly.Recurring("weekly", when, Report{"week"})))
		next, err := schedules.Preview(ctx, "weekly", 5)
		check(err)
		for _, at := range next {
			fmt.Println(at.Format(time.RFC3339))
		}
	})
	// Output:
	// 2099-01-05T09:00:00Z
	// 2099-01-12T09:00:00Z
}

func ExampleRule_Next() {
	rule := recurring.Rule{Cron: "0 9 * * 1-5", Zone: "Europe/Berlin"}
	next, err := rule.Next(context.Background(), time.Date(2026, 1, 9, 12, 0, 0, 0, time.UTC), 2)
	check(err)
	for _, at := range next {
		fmt.Println(at.Format(time.RFC3339))
	}
	// Output:
	// 2026-01-12T08:00:00Z
	// 2026-01-13T08:00:00Z
}

func ExampleSchedules_Backfill() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		check(schedules.Put(ctx, nightly.Recurring("hourly", recurring.Rule{Cron: "0 * * * *"}, Report{"hour"})))
		from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		n, err := schedules.Backfill(ctx, "hourly", from, from.AddDate(0, 0, 1))
		check(err)
		fmt.Println(n, "runs")
	})
	// Output: 24 runs
}

func ExampleSchedules_Instants() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		check(schedules.Put(ctx, nightly.Recurring("hourly", recurring.Rule{Cron: "0 * * * *"}, Report{"hour"})))
		from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		instants, err := schedules.Instants(ctx, "hourly", from, from.Add(2*time.Hour))
		check(err)
		for _, at := range instants {
			fmt.Println(at.Format(time.RFC3339))
		}
	})
	// Output:
	// 2026-01-05T00:00:00Z
	// 2026-01-05T01:00:00Z
}

func ExampleSchedules_List() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		check(schedules.Put(ctx, nightly.Recurring("hourly", recurring.Rule{Every: time.Hour}, Report{"hour"})))
		for state, err := range schedules.List(ctx, wakebelltype.Page{}) {
			check(err)
			fmt.Println(state.Name, state.RuleText)
		}
	})
	// Output: hourly every 1h0m0s
}

// Celery workers run the task. A Python beat is not needed.
func ExampleCelery() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		r := recurring.Celery("cleanup", "app.tasks.cleanup", recurring.Rule{Every: time.Hour},
			[]any{30}, map[string]any{"dry": true}, map[string]any{"queue": "slow"})
		check(schedules.Put(ctx, r))
		_, err := schedules.RunNow(ctx, "cleanup")
		check(err)
		fmt.Println("sent")
	})
	// Output: sent
}

func ExampleSchedules_Import() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		check(schedules.Put(ctx, nightly.Recurring("hourly", recurring.Rule{Every: time.Hour}, Report{"hour"})))
		dump, err := schedules.Export(ctx, "hourly")
		check(err)
		check(schedules.Delete(ctx, "hourly"))
		check(schedules.Import(ctx, dump))
		state, err := schedules.Get(ctx, "hourly")
		check(err)
		fmt.Println(state.RuleText)
	})
	// Output: every 1h0m0s
}

// A service stores the schedules of its configuration, without a System.
func ExampleSchedules_Reconcile() {
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		hourly := nightly.Recurring("hourly", recurring.Rule{Every: time.Hour}, Report{"hour"})
		daily := nightly.Recurring("daily", recurring.Rule{Cron: "0 3 * * *"}, Report{"day"})
		_, err := schedules.Reconcile(ctx, "reporting", hourly, daily)
		check(err)
		deleted, err := schedules.Reconcile(ctx, "reporting", daily) // with the configuration of the next release
		check(err)
		fmt.Println("deleted", deleted)
	})
	// Output: deleted [hourly]
}

// Schedules need no Client and no System.
func ExampleNew() {
	server := embedded.Start() // yours: redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer server.Close()
	conn, err := connection.New(server.Client(), connection.Config{Prefix: "billing-"})
	check(err)
	schedules, err := recurring.New(conn)
	check(err)
	ctx := context.Background()
	check(schedules.Put(ctx, nightly.Recurring("sales", recurring.Rule{Every: time.Hour}, Report{"sales"})))
	for name, err := range schedules.Names(ctx, wakebelltype.Page{}) {
		check(err)
		fmt.Println(name)
	}
	// Output: sales
}

func ExampleOperator() {
	// The interface accepts Schedules of this process and those of a Client of
	// package remote.
	pauseAll := func(ctx context.Context, of recurring.Operator) {
		for state, err := range of.List(ctx, wakebelltype.Page{}) {
			check(err)
			check(of.Pause(ctx, state.Name))
		}
	}
	connect(func(ctx context.Context, schedules *recurring.Schedules) {
		check(schedules.Put(ctx, nightly.Recurring("hourly", recurring.Rule{Every: time.Hour}, Report{"hour"})))
		pauseAll(ctx, schedules)
		state, err := schedules.Get(ctx, "hourly")
		check(err)
		fmt.Println("paused:", state.Paused)
	})
	// Output: paused: true
}

// A configuration can be checked before it is used.
func ExampleSchedule_Validate() {
	task := recurring.Schedule{
		Name: "cleanup", Topic: "app.tasks.cleanup", Rule: recurring.Rule{Every: time.Hour},
		Celery: &recurring.CeleryTask{Args: []byte(`[30]`)},
	}
	fmt.Println(task.Validate())
	task.Rule.Cron = "0 3 * * *"
	fmt.Println(errors.Is(task.Validate(), wakebell.ErrInvalid))
	scheduler := &recurring.SchedulerConfig{Owner: "reporting", Schedules: []recurring.Schedule{task}}
	fmt.Println(errors.Is(scheduler.Validate(), wakebell.ErrInvalid))
	// Output:
	// <nil>
	// true
	// true
}
