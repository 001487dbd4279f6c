package recurring_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/recurring"
)

// A configuration says what is wrong with its rules before the node connects to Redis.
func TestConfigurationWithRuleThatCannotFireIsInvalid(t *testing.T) {
	t.Parallel()
	validate := func(rule recurring.Rule) error {
		return (&recurring.SchedulerConfig{
			Owner:     "service",
			Schedules: []recurring.Schedule{{Name: "s", Topic: "t", Rule: rule}},
		}).Validate()
	}
	for want, rule := range map[string]recurring.Rule{
		"no date matches": {Cron: "0 0 30 2 *"},
		"Mars/Olympus":    {Cron: "0 0 * * *", Zone: "Mars/Olympus"},
		"61":              {Cron: "61 * * * *"},
		"NEVERLY":         {RRule: "FREQ=NEVERLY"},
		"99":              {Crontab: &recurring.Crontab{Hour: "99"}},
	} {
		err := validate(rule)
		require.ErrorIs(t, err, wakebell.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `schedule 0 ("s")`)
	}
	over := recurring.Rule{Cron: "0 0 29 2 *", Until: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}
	require.NoError(t, validate(over), "a schedule that is over must not stop a node")
}
