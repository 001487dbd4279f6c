// Package recurring stores and inspects recurring schedules: they fire by an
// interval, a cron expression, a crontab of Celery or a rule of RFC 5545. A run
// is a timer on a topic, or a message for Celery workers.
//
// [wakebell.Topic.Recurring] makes a [Schedule] whose runs are timers, [Celery]
// one whose runs are Celery messages, and [Schedules.Put] stores it. Nodes whose
// configuration has a [SchedulerConfig] fire the runs.
//
// Schedules are stored under the keys of RedBeat, so that Python processes can
// read, change and fire them too; docs/schedules.md describes it.
//
// [wakebell.Topic.Recurring]: https://pkg.go.dev/github.com/wakebell/wakebell#Topic.Recurring
package recurring
