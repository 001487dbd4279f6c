package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// An error of the store names the operation and the topic once.
func TestErrorsNameTopicOnce(t *testing.T) {
	t.Parallel()
	c, rdb, name := stacktest.NewClient(t)
	require.NoError(t, rdb.Set(t.Context(), "timers_timeline:"+name, "x", 0).Err())
	topic := wakebell.NewTopic[string](name)
	for what, call := range map[string]func() error{
		"schedule on": func() error { _, err := topic.Schedule(t.Context(), c, "x"); return err },
		"cancel on":   func() error { _, err := topic.Cancel(t.Context(), c, "x"); return err },
		"cancel all on": func() error {
			_, err := c.CancelAll(t.Context(), name)
			return err
		},
	} {
		err := call()
		require.ErrorIs(t, err, wakebell.ErrWrongType)
		require.Equal(t, 1, strings.Count(err.Error(), what), err.Error())
	}
}

// Each call of a topic takes the interface Timers. A nil client returns an error and
// does not panic.
func TestTopicCallsWithoutClientAreInvalid(t *testing.T) {
	t.Parallel()
	topic := wakebell.NewTopic[string]("x")
	for name, call := range map[string]func() error{
		"schedule":   func() error { _, err := topic.Schedule(t.Context(), nil, "x"); return err },
		"get":        func() error { _, err := topic.Get(t.Context(), nil, "x"); return err },
		"cancel":     func() error { _, err := topic.Cancel(t.Context(), nil, "x"); return err },
		"reschedule": func() error { _, err := topic.Reschedule(t.Context(), nil, "x", wakebell.In(0)); return err },
		"run now":    func() error { _, err := topic.RunNow(t.Context(), nil, "x"); return err },
	} {
		require.ErrorIs(t, call(), wakebell.ErrInvalid, name)
	}
}

// A timer without an id gets a new one, which is short and needs no quotes in a shell.
func TestTimersWithoutIDsGetNewOnes(t *testing.T) {
	t.Parallel()
	c, _, name := stacktest.NewClient(t)
	drafts := make([]wakebell.Draft, 1000)
	for i := range drafts {
		drafts[i] = wakebell.NewTopic[int](name).Draft(i, wakebell.In(time.Hour))
	}
	scheduled, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range scheduled {
		require.Regexp(t, `^[0-9A-Za-z]{22}$`, s.ID)
		seen[s.ID] = true
	}
	require.Len(t, seen, len(drafts))
}
