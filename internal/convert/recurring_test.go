package convert_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
)

// A schedule arrives as it was sent.
func TestSchedulesSurviveTheirMessage(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	headers := map[string]string{"tenant": "a"}
	for name, rule := range map[string]recurring.Rule{
		"every": {Every: time.Microsecond, Relative: true, Headers: headers, MaxRuns: 3, Jitter: time.Minute},
		"cron": {
			Cron: "0 9 * * *", Zone: "Europe/Berlin", SkipGaps: true, Headers: headers, Start: start, Until: start.Add(time.Hour),
			Misfire: recurring.MisfireAll, MisfireLimit: 7, Overlap: recurring.OverlapQueue,
		},
		"crontab": {Crontab: &recurring.Crontab{Minute: "1", Hour: "2", DayOfWeek: "3", DayOfMonth: "4", Month: "5"}, Headers: headers},
		"rrule":   {RRule: "FREQ=DAILY", Headers: headers},
	} {
		want := recurring.Schedule{Name: name, Topic: "t", Rule: rule, Body: []byte{0xff}, ContentType: "x/y"}
		m, err := convert.RecurringMessage(want)
		require.NoError(t, err)
		require.Equal(t, want, convert.Recurring(m))
	}
	celery := recurring.Celery("c", "app.task", recurring.Rule{Every: time.Hour, Headers: headers}, []any{1}, map[string]any{"a": 2}, nil)
	m, err := convert.RecurringMessage(celery)
	require.NoError(t, err)
	require.Equal(t, celery, convert.Recurring(m))
}

func TestInvalidSchedulesHaveNoMessage(t *testing.T) {
	t.Parallel()
	_, err := convert.RecurringMessage(recurring.Schedule{Name: "r", Topic: "t"})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
	require.ErrorIs(t, convert.Recurring(&messages.Recurring{Name: "r"}).Validate(), wakebell.ErrInvalid)
}

func TestStatesSurviveTheirMessage(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, want := range []recurring.State{
		{Name: "broken", Fault: "its key is no hash"},
		{
			Name: "r", Topic: "t", RuleText: "cron 0 9 * * *", Rule: recurring.Rule{Cron: "0 9 * * *", Zone: "UTC", MaxRuns: 2},
			Next: at, LastRun: at.Add(-time.Hour), Runs: 1, Paused: true, Celery: true, Overdue: 90 * time.Second,
		},
	} {
		require.Equal(t, want, convert.RecurringState(convert.RecurringStateMessage(want)))
	}
	require.Equal(t, "a\uFFFD", convert.RecurringStateMessage(recurring.State{Name: "a\xff"}).GetName())
}
