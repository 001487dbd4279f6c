package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestPoliciesThroughClient(t *testing.T) {
	t.Parallel()
	c, rdb, name := stacktest.NewClient(t)
	topic := wakebell.NewTopic[string](name)
	later, sooner := wakebell.In(2*time.Hour), wakebell.In(time.Hour)
	drafts := func(body string, when wakebell.ScheduleOption) []wakebell.Draft {
		return []wakebell.Draft{
			topic.Draft(body, when, wakebell.ID("replace")),
			topic.Draft(body, when, wakebell.ID("keep"), wakebell.IfExists(wakebelltype.PolicyKeep)),
			topic.Draft(body, when, wakebell.ID("earliest"), wakebell.IfExists(wakebelltype.PolicyEarliest)),
			topic.Draft(body, wakebell.ID("debounce"), wakebell.Debounce(time.Hour, 3*time.Hour)),
			topic.Draft(body, when, wakebell.ID("once"), wakebell.Once(time.Hour)),
		}
	}
	schedule := func(body string, when wakebell.ScheduleOption) (all []wakebelltype.Scheduled, outcomes []wakebelltype.Outcome) {
		all, err := c.Schedule(t.Context(), drafts(body, when)...)
		require.NoError(t, err)
		for _, s := range all {
			outcomes = append(outcomes, s.Outcome)
		}
		return all, outcomes
	}
	before, outcomes := schedule("1", later)
	created := wakebelltype.OutcomeCreated
	require.Equal(t, []wakebelltype.Outcome{created, created, created, created, created}, outcomes)
	require.Zero(t, before[0].Found)
	_, err := topic.Cancel(t.Context(), c, "once")
	require.NoError(t, err)

	after, outcomes := schedule("2", sooner)
	require.Equal(t, []wakebelltype.Outcome{
		wakebelltype.OutcomeReplaced, wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeReplaced, wakebelltype.OutcomeMoved, wakebelltype.OutcomeAlreadyDone,
	}, outcomes)
	for i := range 4 {
		require.Equal(t, before[i].Due, after[i].Found)
	}
	require.Equal(t, before[4].Due, after[4].Due, "a request that was already done must report the first due instant")
	_, outcomes = schedule("3", later)
	require.Equal(t, wakebelltype.OutcomeKeptEarlier, outcomes[2])
	_, content, err := c.Get(t.Context(), name, "earliest")
	require.NoError(t, err)
	require.Equal(t, "2", string(content.Body))
	require.EqualValues(t, 1, rdb.Exists(t.Context(), "timers_once:"+name+":once").Val())
}

func TestScheduleOptionsThatContradict(t *testing.T) {
	t.Parallel()
	c, _, name := stacktest.NewClient(t)
	topic := wakebell.NewTopic[string](name)
	debounce, hour := wakebell.Debounce(time.Second, time.Minute), time.Hour
	for want, opts := range map[string][]wakebell.ScheduleOption{
		"In, At, Debounce":         {debounce, wakebell.In(hour)},
		"one of them":              {wakebell.In(hour), debounce},
		"want above 0":             {wakebell.Debounce(0, hour)},
		"at least the delay":       {wakebell.Debounce(hour, time.Second)},
		"a policy of its own":      {wakebell.IfExists(wakebelltype.PolicyKeep), debounce},
		"Debounce is the policy":   {debounce, wakebell.IfExists(wakebelltype.PolicyKeep)},
		"IfExists: unknown policy": {wakebell.IfExists(3)},
		"Once: 0s":                 {wakebell.Once(0)},
		"Debounce: without an id":  {debounce},
		"Once: without an id":      {wakebell.Once(hour), wakebell.In(hour)},
	} {
		_, err := topic.Schedule(t.Context(), c, "x", opts...)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

func TestMoveThroughClient(t *testing.T) {
	t.Parallel()
	c, _, name := stacktest.NewClient(t)
	topic := wakebell.NewTopic[string](name)
	_, err := topic.Reschedule(t.Context(), c, "a", wakebell.In(0))
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	found, err := topic.RunNow(t.Context(), c, "a")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	require.Equal(t, wakebelltype.PresenceAbsent, found)

	_, err = topic.Schedule(t.Context(), c, "body", wakebell.ID("a"), wakebell.In(time.Hour))
	require.NoError(t, err)
	at := time.Date(2050, 1, 2, 3, 4, 5, 0, time.UTC)
	moved, err := topic.Reschedule(t.Context(), c, "a", wakebell.At(at))
	require.NoError(t, err)
	require.Equal(t, wakebelltype.OutcomeMoved, moved.Outcome)
	require.Equal(t, at, moved.Due)
	found, err = topic.RunNow(t.Context(), c, "a")
	require.NoError(t, err)
	require.Equal(t, wakebelltype.PresencePending, found)
	info, content, err := c.Get(t.Context(), name, "a")
	require.NoError(t, err)
	require.True(t, info.Due.Before(at))
	require.Equal(t, "body", string(content.Body))

	for _, when := range []wakebell.ScheduleOption{
		wakebell.ID("x"), wakebell.Debounce(1, 1), wakebell.At(time.Time{}),
	} {
		_, err = topic.Reschedule(t.Context(), c, "a", when)
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
}
