package wakebelltest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	tasks   = wakebell.NewTopic[string]("tasks") // the body says what becomes of the timer
	reports = wakebell.NewTopic[string]("reports")
)

// joined is a node that handles tasks and reports, and what it has seen.
type joined struct {
	cfg  wakebell.Config
	runs []string            // ids of tasks
	seen map[string][]string // by report: what its handler read of its parts
	at   map[string]time.Time
}

func newJoined() *joined {
	j := &joined{seen: map[string][]string{}, at: map[string]time.Time{}}
	j.cfg.Handlers = []wakebell.Handler{
		wakebell.HandleResult(tasks, func(ctx context.Context, timer wakebell.Timer[string]) (string, error) {
			j.runs = append(j.runs, timer.ID)
			return j.task(ctx, timer)
		}, wakebell.MaxAttempts(3), wakebell.RetryBackoff(time.Second, time.Second), wakebell.MaxConcurrent(1)),
		wakebell.Handle(reports, func(ctx context.Context, timer wakebell.Timer[string]) error {
			j.at[timer.ID] = timer.Delivered
			var err error
			j.seen[timer.ID], err = endings(timer.Parts(ctx))
			return err
		}),
	}
	return j
}

func (j *joined) task(ctx context.Context, timer wakebell.Timer[string]) (string, error) {
	switch timer.Body {
	case "fail":
		return "", errors.New("no luck")
	case "reject":
		return "", wakebell.Reject(errors.New("never"))
	case "panic":
		panic("the task crashes")
	case "snooze":
		if len(j.runs) < 3 {
			return "", wakebell.Snooze(time.Minute)
		}
	case "settle":
		if err := timer.Settle(ctx, nil); err != nil {
			return "", err
		}
		return "", errors.New("after the end")
	case "slow":
		<-time.After(10 * time.Minute)
	}
	return "did " + timer.ID, nil
}

// endings returns the parts of a join as texts.
func endings(parts iter.Seq2[wakebell.PartEnd, error]) (list []string, err error) {
	for p, err := range parts {
		if err != nil {
			return list, err
		}
		text := strings.TrimSpace(fmt.Sprintf("%s/%s %s %s", p.Topic, p.ID, p.End, p.Reason))
		if p.Result != nil {
			text += " " + string(p.Result.Content.Body)
		}
		list = append(list, text)
	}
	return list, nil
}

func task(id, body string, opts ...wakebell.ScheduleOption) wakebell.Draft {
	return tasks.Draft(body, append(opts, wakebell.ID(id))...)
}

func plan(t *testing.T, w *wakebelltest.World, drafts ...wakebell.Draft) {
	t.Helper()
	stored, err := w.Client().Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	for i := range drafts {
		require.Equal(t, drafts[i].ID(), stored[i].ID)
	}
}

func TestJoinIsDueWhenItsPartsHaveEnded(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.RunWith(t, connection.Config{Prefix: "shop:"}, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		began := time.Now()
		plan(t, w, wakebell.Batch(
			task("a", "ok"), task("b", "reject"), task("c", "fail", wakebell.In(30*time.Second)), task("d", "settle"),
		).Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
		w.Advance(20 * time.Second)
		require.Empty(t, j.seen)
		join, err := w.Client().Join(t.Context(), "reports", "r")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Join{Parts: 4, Done: 2, Dead: 1}, join)
		w.Advance(20 * time.Second)
		require.Equal(t, []string{"tasks/a done did a", "tasks/b dead never", "tasks/c dead no luck", "tasks/d done"}, shortened(j.seen["r"]))
		require.WithinDuration(t, began.Add(32*time.Second), j.at["r"], 3*time.Second)
		w.Advance(2 * time.Hour)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("reports", "r").Outcome)
	})
}

// shortened removes what precedes the reasons of rejections.
func shortened(list []string) []string {
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "rejected: ", "")
	}
	return list
}

func TestJoinIsDueAtItsInstantWithWhatHasEnded(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Batch(task("a", "ok"), task("b", "ok", wakebell.In(2*time.Hour))).
			Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
		w.Advance(time.Hour - time.Second)
		require.Empty(t, j.seen)
		w.Advance(5 * time.Second)
		require.Equal(t, []string{"tasks/a done did a", "tasks/b"}, j.seen["r"])
		w.Advance(3 * time.Hour)
		require.Equal(t, wakebelltest.Acked, w.RequireDelivered("reports", "r").Outcome)
	})
}

func TestRetriesAndSnoozesDoNotEndParts(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Batch(task("a", "snooze")).Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
		w.Advance(90 * time.Second)
		require.Empty(t, j.seen)
		w.Advance(time.Minute)
		require.Equal(t, []string{"tasks/a done did a"}, j.seen["r"])
	})
}

func TestExpiredPartEndsAsDead(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Batch(task("a", "slow"), task("b", "ok", wakebell.In(time.Second), wakebell.ExpireAfter(time.Minute))).
			Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
		w.Advance(11 * time.Minute)
		require.Equal(t, []string{"a"}, j.runs)
		require.Equal(t, []string{"tasks/a done did a", "tasks/b dead expired: it could begin 9m59s after its instant, limit 1m0s"}, j.seen["r"])
	})
}

// TestPartThatEndsInDrainIsNoted stops the node of a part whose handler does not heed its context:
// its success counts, and the join has it.
func TestPartThatEndsInDrainIsNoted(t *testing.T) {
	t.Parallel()
	stubborn := wakebell.NewTopic[string]("stubborn")
	cfg := wakebell.Config{DrainTimeout: time.Second, Handlers: []wakebell.Handler{
		wakebell.Handle(stubborn, func(context.Context, wakebell.Timer[string]) error {
			<-time.After(2500 * time.Millisecond)
			return nil
		}),
	}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Batch(stubborn.Draft("", wakebell.ID("a"))).Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
		w.Advance(time.Second)
		require.NoError(t, w.Nodes()[0].Stop())
		ends, err := endings(w.Client().Parts(t.Context(), "reports", "r", wakebelltype.Page{}))
		require.NoError(t, err)
		require.Equal(t, []string{"stubborn/a done"}, ends)
		require.Empty(t, w.Upcoming("stubborn"))
	})
}

func TestChainRunsOneAfterAnother(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Chain(
			task("a", "slow"), task("b", "slow", wakebell.In(3*time.Hour)), task("c", "ok", wakebell.In(3*time.Hour)),
			reports.Draft("", wakebell.ID("r"), wakebell.In(3*time.Hour)),
		)...)
		w.Advance(9 * time.Minute)
		require.Equal(t, []string{"a"}, j.runs)
		w.Advance(10 * time.Minute)
		require.Equal(t, []string{"a", "b"}, j.runs)
		w.Advance(10 * time.Minute)
		require.Equal(t, []string{"a", "b", "c"}, j.runs)
		require.Equal(t, []string{"tasks/c done did c"}, j.seen["r"])
	})
}

func TestPartsAreAddedUntilJoinIsClosed(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		c, part := w.Client(), wakebell.PartOf("reports", "r")
		_, err := c.Schedule(t.Context(), task("early", "ok", part))
		require.ErrorIs(t, err, wakebell.ErrNotFound)
		plan(t, w, reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.AfterOpen()))
		plan(t, w, task("a", "ok", part), task("b", "reject", part))
		plan(t, w, task("plain", "ok", wakebell.In(5*time.Minute)))
		require.NoError(t, c.AddParts(t.Context(), "reports", "r", wakebelltype.Part{Topic: "tasks", ID: "plain"}))
		w.Advance(6 * time.Minute)
		require.Empty(t, j.seen)
		require.ErrorIs(t, c.CloseJoin(t.Context(), "reports", "other"), wakebell.ErrNotFound)
		require.NoError(t, c.CloseJoin(t.Context(), "reports", "r"))
		w.Advance(time.Second)
		require.Equal(t, []string{"tasks/a done did a", "tasks/b dead never", "tasks/plain done did plain"}, shortened(j.seen["r"]))
		_, err = c.Schedule(t.Context(), task("late", "ok", part))
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "is closed")
		_, err = tasks.Get(t.Context(), c, "late")
		require.ErrorIs(t, err, wakebell.ErrNotFound)
	})
}

// TestJoinOfTimersThatWereScheduledBefore has parts that wait, that have ended with a result or
// a dead letter, and one that never was.
func TestJoinOfTimersThatWereScheduledBefore(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, task("done", "ok"), task("dead", "reject"), task("waits", "ok", wakebell.In(5*time.Minute)))
		w.Advance(10 * time.Second)
		var parts []wakebelltype.Part
		for _, id := range []string{"done", "dead", "waits", "never"} {
			parts = append(parts, wakebelltype.Part{Topic: "tasks", ID: id})
		}
		plan(t, w, reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.After(parts...)))
		w.Advance(4 * time.Minute)
		require.Empty(t, j.seen)
		w.Advance(55 * time.Second)
		require.Equal(t, []string{"tasks/done done did done", "tasks/dead dead never", "tasks/waits done did waits", "tasks/never missing"}, shortened(j.seen["r"]))
	})
}

// TestPartThatIsKeptEndsAsDone has parts that the call finds instead of storing them: two that
// wait, and one that was done before.
func TestPartThatIsKeptEndsAsDone(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		parts := []wakebell.Draft{
			task("keep", "ok", wakebell.In(3*time.Minute), wakebell.IfExists(wakebelltype.PolicyKeep)),
			task("earliest", "ok", wakebell.In(3*time.Minute), wakebell.IfExists(wakebelltype.PolicyEarliest)),
			task("once", "ok", wakebell.Once(time.Hour)),
		}
		plan(t, w, parts...)
		w.Advance(time.Minute)
		for i, report := range []string{"r", "again"} {
			drafts := wakebell.Batch(parts...).Then(reports.Draft("", wakebell.ID(report), wakebell.In(time.Hour)))
			drafts[1] = task("earliest", "ok", wakebell.In(time.Hour), wakebell.IfExists(wakebelltype.PolicyEarliest))
			for range 2 { // a call may be repeated
				stored, err := w.Client().Schedule(t.Context(), drafts...)
				require.NoError(t, err)
				require.Equal(t, []wakebelltype.Outcome{
					wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptEarlier, wakebelltype.OutcomeAlreadyDone,
				}, []wakebelltype.Outcome{stored[0].Outcome, stored[1].Outcome, stored[2].Outcome}, i)
			}
		}
		w.Advance(2*time.Minute + 10*time.Second)
		want := []string{"tasks/keep done did keep", "tasks/earliest done did earliest", "tasks/once done did once"}
		require.Equal(t, want, j.seen["r"])
		require.Equal(t, want, j.seen["again"])
	})
}

// TestAuditFindsEndsThatNoNodeHasNoted has a part that is cancelled, and one that panics at its
// last attempt.
func TestAuditFindsEndsThatNoNodeHasNoted(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Batch(task("a", "ok", wakebell.In(time.Hour)), task("b", "panic")).
			Then(reports.Draft("", wakebell.ID("r"), wakebell.In(10*time.Hour)))...)
		w.Advance(5 * time.Minute)
		require.Empty(t, j.seen)
		_, err := tasks.Cancel(t.Context(), w.Client(), "a")
		require.NoError(t, err)
		w.Advance(15 * time.Minute)
		require.Len(t, j.seen["r"], 2)
		require.Equal(t, "tasks/a cancelled", j.seen["r"][0])
		require.Contains(t, j.seen["r"][1], "tasks/b dead panic: the task crashes")
	})
}

func TestCancelJoinCancelsPartsThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	j := newJoined()
	wakebelltest.Run(t, j.cfg, func(t *testing.T, w *wakebelltest.World) {
		c := w.Client()
		plan(t, w, wakebell.Batch(task("a", "ok"), task("b", "ok", wakebell.In(time.Hour)), task("c", "ok", wakebell.In(time.Hour))).
			Then(reports.Draft("", wakebell.ID("r"), wakebell.In(10*time.Hour)))...)
		w.Advance(time.Minute)
		n, err := c.CancelJoin(t.Context(), "reports", "r")
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		w.Advance(11 * time.Hour)
		require.Equal(t, []string{"a"}, j.runs)
		require.Empty(t, j.seen)
		_, err = c.Join(t.Context(), "reports", "r")
		require.ErrorIs(t, err, wakebell.ErrNotFound)
	})
}

// TestJoinWhoseTimerWaitsForRetryIsRunOnce checks that audits do not cut the backoff of a timer
// short whose parts have ended.
func TestJoinWhoseTimerWaitsForRetryIsRunOnce(t *testing.T) {
	t.Parallel()
	runs := 0
	cfg := newJoined().cfg
	cfg.Handlers[1] = wakebell.Handle(reports, func(context.Context, wakebell.Timer[string]) error {
		runs++
		return wakebell.RetryIn(5 * time.Hour)
	})
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		plan(t, w, wakebell.Batch(task("a", "ok")).Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour)))...)
		w.Advance(4 * time.Hour)
		require.Equal(t, 1, runs)
		w.Advance(2 * time.Hour)
		require.Equal(t, 2, runs)
	})
}

func TestJoinsRefuseWhatCannotBe(t *testing.T) {
	t.Parallel()
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		itself := wakebell.After(wakebelltype.Part{Topic: "reports", ID: "r"})
		many := wakebell.After(make([]wakebelltype.Part, 100_001)...)
		in, id := wakebell.In(time.Hour), wakebell.ID("r")
		for text, d := range map[string]wakebell.Draft{
			"it needs In or At":       reports.Draft("", id, wakebell.After()),
			"would wait for itself":   reports.Draft("", id, in, itself),
			"100001 parts, at most":   reports.Draft("", id, in, many),
			"excludes Debounce":       reports.Draft("", id, in, wakebell.Once(time.Hour), wakebell.After()),
			"topic: empty":            reports.Draft("", id, in, wakebell.After(wakebelltype.Part{ID: "a"})),
			"id: 0 bytes":             reports.Draft("", id, in, wakebell.After(wakebelltype.Part{Topic: "tasks"})),
			"has the form of a shard": reports.Draft("", id, wakebell.PartOf("reports~2~1", "x")),
		} {
			_, err := w.Client().Schedule(t.Context(), d)
			require.ErrorIs(t, err, wakebell.ErrInvalid, text)
			require.ErrorContains(t, err, text)
		}
		_, err := w.Client().Schedule(t.Context(), wakebell.Chain(task("a", "ok"), task("b", "ok"))...)
		require.ErrorContains(t, err, "it needs In or At")
	})
}
