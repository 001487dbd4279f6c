package timers

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// counting schedules batches until it is stopped or fails.
type counting struct {
	wakebell.TimerClient
	calls int
	after func(call int) error
	ctx   context.Context // of the last call
}

func (c *counting) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebelltype.Scheduled, error) {
	c.calls++
	c.ctx = ctx
	if err := c.after(c.calls); err != nil {
		return nil, err
	}
	return make([]wakebelltype.Scheduled, len(drafts)), ctx.Err()
}

func countingFlags(given ...string) *scheduleFlags {
	f := &scheduleFlags{topic: "t", id: "load", count: 5500, ifExists: cli.OneOf("replace")}
	f.given = func(flag string) bool { return flag == "count" || strings.Contains(strings.Join(given, " "), flag) }
	return f
}

// After an interrupt, schedule waits for the batch in flight and reports how many
// timers were stored.
func TestInterruptedScheduleReportsItsProgress(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"id":  "3000 of 5500 timers are scheduled (load-0 to load-2999), whose ids were printed: interrupted",
		"own": "3000 of 5500 timers are scheduled, whose ids were printed: interrupted",
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		var out bytes.Buffer
		a := &cli.App{Stdout: &out}
		c := &counting{after: func(call int) error {
			if call == 3 {
				interrupt()
			}
			return nil
		}}
		err := scheduleTimers(ctx, a, c, countingFlags(name), draftOf(t, countingFlags(name)))
		require.EqualError(t, err, says)
		require.Equal(t, 3, c.calls)
		require.Equal(t, 3000, strings.Count(out.String(), "\n"))
	}
}

// A step that hangs ends soon after an interrupt.
func TestStepThatHangsIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		a := &cli.App{Stdout: &bytes.Buffer{}}
		c := &counting{}
		c.after = func(call int) error {
			if call < 2 {
				return nil
			}
			interrupt()
			<-c.ctx.Done()
			return c.ctx.Err()
		}
		began := time.Now()
		err := scheduleTimers(ctx, a, c, countingFlags("id"), draftOf(t, countingFlags("id")))
		require.ErrorContains(t, err, "1000 of 5500 timers are scheduled (load-0 to load-999), whose ids were printed; 1000 more may be (load-1000 to load-1999)")
		require.Equal(t, finishLimit, time.Since(began))
	})
}

func draftOf(t *testing.T, f *scheduleFlags) func(int) wakebell.Draft {
	t.Helper()
	draft, err := f.drafter(strings.NewReader(""))
	require.NoError(t, err)
	return draft
}
