package timers

import (
	"bytes"
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/wakebelltype"
)

// shifted is a client with one timer, and a Redis whose clock is not that of the process.
type shifted struct {
	cli.Client
	now, instant time.Time // of Redis, and of the timer
	asked        *wakebell.Filter
}

func (s shifted) Overview(context.Context, ...string) ([]wakebelltype.Overview, error) {
	o := wakebelltype.Overview{Stats: wakebelltype.Stats{Total: 1}}
	if !s.instant.After(s.now) {
		o.Stats.Due, o.Stats.OldestDue, o.Stats.Lag = 1, s.instant, s.now.Sub(s.instant)
	}
	return []wakebelltype.Overview{o}, nil
}

func (s shifted) Throughput(context.Context, string, time.Duration) (wakebelltype.Throughput, error) {
	return wakebelltype.Throughput{Points: []wakebelltype.ThroughputCounts{{At: s.now.Truncate(time.Minute)}}}, nil
}

func (s shifted) List(_ context.Context, _ string, f wakebell.Filter, _ wakebelltype.Page) iter.Seq2[wakebell.Info, error] {
	*s.asked = f
	return func(yield func(wakebell.Info, error) bool) {
		yield(wakebell.Info{ID: "x", State: wakebell.StatePending, Due: s.instant}, nil)
	}
}

// Timers become due by the clock of Redis, even if that of the process is wrong.
func TestLsUsesClockOfRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			wrong, in time.Duration
			state     string
		}{
			{48 * time.Hour, -time.Second, "due"},
			{48 * time.Hour, time.Second, "pending"},
			{-48 * time.Hour, -time.Second, "due"},
			{-48 * time.Hour, time.Second, "pending"},
		} {
			var asked wakebell.Filter
			var out bytes.Buffer
			now := time.Now().Add(c.wrong)
			client := shifted{now: now, instant: now.Add(c.in), asked: &asked}
			f := &lsFlags{topic: "t", dueBefore: "10m"}
			f.register(&cobra.Command{})
			require.NoError(t, listTimers(t.Context(), &cli.App{Stdout: &out, Stderr: &out}, client, f))
			require.WithinDuration(t, now.Add(10*time.Minute), asked.DueBefore, time.Minute)
			require.Contains(t, out.String(), c.state)
		}
	})
}

// The node of a timer that runs is not one that had it before, whose report may live on.
func TestRunningTimerIsShownWithNodeOfItsAttempt(t *testing.T) {
	t.Parallel()
	overview := &wakebelltype.Overview{Reports: []wakebelltype.NodeReport{
		{Node: "a/1", State: wakebelltype.NodeState{Longest: []wakebelltype.LongRun{{ID: "x", Attempt: 2}}}},
	}}
	for attempts, want := range map[int]string{2: "a/1", 3: ""} {
		info := wakebell.Info{ID: "x", State: wakebell.StateRunning, Attempts: attempts}
		line := newTimerLine(info, time.Time{})
		line.runs(info, func() *wakebelltype.Overview { return overview })
		require.Equal(t, want, line.Node)
	}
}
