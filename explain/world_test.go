package explain_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/explain"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

var orders = wakebell.NewTopic[string]("orders")

// causes are those of an explanation, in its order.
func causes(e explain.Explanation) (list []explain.Cause) {
	for _, w := range e.Waits {
		list = append(list, w.Cause)
	}
	return list
}

// TestTimerIsExplained follows timers through a world: each wait has its cause, and each end
// is known.
func TestTimerIsExplained(t *testing.T) {
	t.Parallel()
	var release chan struct{} // of the world
	handle := func(ctx context.Context, timer wakebell.Timer[string]) error {
		switch timer.Body {
		case "fails":
			return errors.New("the bank does not answer")
		case "rejected":
			return wakebell.Reject(errors.New("no such account"))
		case "blocks":
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return nil
	}
	wakebelltest.Run(t, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		release = make(chan struct{})
		ctx, c := t.Context(), w.Client()
		told := func(id string) explain.Explanation {
			t.Helper()
			e, err := explain.Timer(ctx, c, "orders", id)
			require.NoError(t, err)
			require.Empty(t, e.Unread)
			return e
		}
		schedule := func(body, id string, options ...wakebell.ScheduleOption) {
			t.Helper()
			_, err := orders.Schedule(ctx, c, body, append(options, wakebell.ID(id))...)
			require.NoError(t, err)
		}
		require.Contains(t, told("absent").Summary, "is the name right?")

		schedule("", "later", wakebell.In(time.Hour))
		require.Equal(t, []explain.Cause{explain.CauseNotDue, explain.CauseNoNode}, causes(told("later")))
		require.Zero(t, told("later").Earliest, "nodes do not come by themselves")
		require.Equal(t, explain.StateUnknown, told("absent").State)

		w.Start(wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(orders, handle, wakebell.PerKey(1), wakebell.MaxAttempts(2), wakebell.RetryBackoff(time.Minute, time.Minute)),
		}})
		<-time.After(10 * time.Second)
		later := told("later")
		require.Equal(t, []explain.Cause{explain.CauseNotDue}, causes(later))
		require.Equal(t, later.Waits[0].Until, later.Earliest)

		schedule("blocks", "first", wakebell.Key("k"))
		schedule("", "second", wakebell.Key("k"))
		schedule("fails", "unlucky")
		schedule("rejected", "wrong")
		<-time.After(10 * time.Second)
		require.Equal(t, string(wakebell.StateRunning), told("first").State)
		second := told("second")
		require.Equal(t, []explain.Cause{explain.CauseKey}, causes(second))
		require.Contains(t, second.Waits[0].Text, "first runs")
		require.Equal(t, "explain orders first", second.Waits[0].Do)

		unlucky := told("unlucky")
		require.Equal(t, []explain.Cause{explain.CauseRetry}, causes(unlucky))
		require.Contains(t, unlucky.Summary, "the bank does not answer")
		require.Contains(t, unlucky.Past[len(unlucky.Past)-1].Text, "attempt 1 on ")
		require.Equal(t, explain.StateDead, told("wrong").State)
		require.Contains(t, told("wrong").Summary, "no such account")

		_, err := c.Pause(ctx, "orders", "ada", "the bank is down")
		require.NoError(t, err)
		schedule("", "paused")
		<-time.After(10 * time.Second)
		paused := told("paused")
		require.Equal(t, []explain.Cause{explain.CausePaused}, causes(paused)[:1])
		require.Contains(t, paused.Waits[0].Text, "by ada: the bank is down")
		require.Contains(t, paused.Past[len(paused.Past)-1].Text, "pause by ")

		_, err = c.Resume(ctx, "orders")
		require.NoError(t, err)
		close(release)
		<-time.After(5 * time.Minute)
		require.Equal(t, explain.StateUnknown, told("second").State, "it succeeded at once, which is not recorded")
		require.Equal(t, explain.StateDead, told("unlucky").State)
		past := told("unlucky").Past
		require.Contains(t, past[len(past)-2].Text, "made it a dead letter")
		require.Equal(t, "became a dead letter", past[len(past)-1].Text)
	})
}

// TestExpiryIsExplained has a topic with an Expiry on two nodes, and timers with a limit of their
// own.
func TestExpiryIsExplained(t *testing.T) {
	t.Parallel()
	node := func(after time.Duration) wakebell.Config {
		return wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(orders, func(context.Context, wakebell.Timer[string]) error { return wakebell.Snooze(time.Hour) },
				wakebell.Shards(2), wakebell.Expiry(wakebelltype.Expiry{After: after})),
		}}
	}
	wakebelltest.Run(t, node(time.Hour), func(t *testing.T, w *wakebelltest.World) {
		w.Start(node(90 * time.Second))
		at := time.Now().Add(2 * time.Hour)
		schedule := func(id string, options ...wakebell.ScheduleOption) {
			t.Helper()
			_, err := orders.Schedule(t.Context(), w.Client(), "", append(options, wakebell.ID(id))...)
			require.NoError(t, err)
		}
		schedule("plain", wakebell.At(at))
		schedule("own", wakebell.At(at), wakebell.ExpireAfter(10*time.Minute))
		schedule("invalid", wakebell.At(at), wakebell.Header(wakebelltype.ExpiryHeader, "never"))
		schedule("began")
		<-time.After(10 * time.Second)
		for id, limit := range map[string]string{"plain": "1m30s", "own": "10m0s", "invalid": "1m30s"} {
			e, err := explain.Timer(t.Context(), w.Client(), "orders", id)
			require.NoError(t, err)
			require.Contains(t, e.Summary, "; it expires if it does not begin within "+limit+" of "+at.UTC().Format(time.RFC3339))
		}
		e, err := explain.Timer(t.Context(), w.Client(), "orders", "began")
		require.NoError(t, err)
		require.NotContains(t, e.Summary, "expires")
	})
}

// TestLimitsAreExplained has more timers due than the limits of the topic let start.
func TestLimitsAreExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []wakebell.HandlerOption
		key     string
		want    explain.Cause
	}{
		"rate":      {[]wakebell.HandlerOption{wakebell.RateLimit(1, time.Hour, 1)}, "", explain.CauseRate},
		"in flight": {[]wakebell.HandlerOption{wakebell.MaxInFlight(1)}, "", explain.CauseInFlight},
		"key rate":  {[]wakebell.HandlerOption{wakebell.RateLimitByKey(1, time.Hour, 1)}, "k", explain.CauseKeyRate},
		"slots":     {[]wakebell.HandlerOption{wakebell.MaxConcurrent(1)}, "", explain.CauseBehind},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			block := func(ctx context.Context, _ wakebell.Timer[string]) error {
				<-ctx.Done()
				return ctx.Err()
			}
			cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(orders, block, c.options...)}}
			wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
				for _, id := range []string{"a", "b", "c"} {
					options := []wakebell.ScheduleOption{wakebell.ID(id)}
					if c.key != "" {
						options = append(options, wakebell.Key(c.key))
					}
					_, err := orders.Schedule(t.Context(), w.Client(), "", options...)
					require.NoError(t, err)
				}
				<-time.After(2 * time.Minute)
				found := map[explain.Cause]bool{}
				for _, id := range []string{"a", "b", "c"} {
					e, err := explain.Timer(t.Context(), w.Client(), "orders", id)
					require.NoError(t, err)
					for _, cause := range causes(e) {
						found[cause] = true
					}
				}
				require.Contains(t, found, c.want)
			})
		})
	}
}

// TestKeyRunIsExplained has a node lease three timers of a key, whose first one does not end.
func TestKeyRunIsExplained(t *testing.T) {
	t.Parallel()
	block := func(ctx context.Context, _ wakebell.Timer[string]) error {
		<-ctx.Done()
		return ctx.Err()
	}
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(orders, block, wakebell.PerKey(1), wakebell.KeyRun(9))}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		var drafts []wakebell.Draft
		for i, id := range []string{"c", "a", "b"} {
			at := time.Now().Add(time.Duration(i-5) * time.Minute)
			drafts = append(drafts, orders.Draft("", wakebell.ID(id), wakebell.Key("k"), wakebell.At(at)))
		}
		_, err := w.Client().Schedule(t.Context(), drafts...)
		require.NoError(t, err)
		<-time.After(2 * time.Minute)
		first, err := explain.Timer(t.Context(), w.Client(), "orders", "c")
		require.NoError(t, err)
		require.Equal(t, "running", first.State)
		require.Contains(t, first.Summary, "a handler on ")
		require.Empty(t, first.Waits)
		for _, id := range []string{"a", "b"} {
			e, err := explain.Timer(t.Context(), w.Client(), "orders", id)
			require.NoError(t, err)
			require.Equal(t, "running", e.State)
			require.Regexp(t, `^it waits: a node has leased it in the key run of "k", behind c on \S+$`, e.Summary)
			require.Equal(t, "explain orders c", e.Waits[0].Do)
			require.Zero(t, e.Earliest)
		}
	})
}

// TestScheduleIsExplained has a schedule wait, become overdue without a beat, and be paused.
func TestScheduleIsExplained(t *testing.T) {
	t.Parallel()
	conn := connection.Config{Prefix: "eu."} // the audit has it, and the caller does not
	wakebelltest.RunWith(t, conn, wakebell.Config{}, func(t *testing.T, w *wakebelltest.World) {
		ctx, s := t.Context(), w.Client().Schedules()
		told := func() explain.Explanation {
			e, err := explain.Schedule(ctx, s, w.Client(), "nightly")
			require.NoError(t, err)
			require.Empty(t, e.Unread)
			return e
		}
		require.NoError(t, s.Put(ctx, orders.Recurring("nightly", recurring.Rule{Every: time.Hour}, "")))
		require.Equal(t, []explain.Cause{explain.CauseNotDue, explain.CauseNoNode}, causes(told()))
		<-time.After(3 * time.Hour)
		late := told()
		require.Equal(t, explain.StateOverdue, late.State)
		require.Equal(t, []explain.Cause{explain.CauseNoBeat, explain.CauseNoNode}, causes(late))
		require.NoError(t, s.Pause(ctx, "nightly"))
		paused := told()
		require.Equal(t, explain.StatePaused, paused.State)
		require.Contains(t, paused.Past[len(paused.Past)-1].Text, "pause by ")
		_, err := explain.Schedule(ctx, s, w.Client(), "absent")
		require.ErrorIs(t, err, recurring.ErrNotFound)
	})
}

// TestDeadNodeIsExplained crashes one of several nodes while it has a timer: no node that lives
// extends its lease.
func TestDeadNodeIsExplained(t *testing.T) {
	t.Parallel()
	var release chan struct{} // of the world
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(orders, func(context.Context, wakebell.Timer[string]) error {
		<-release
		return nil
	})}}
	wakebelltest.Run(t, cfg, func(t *testing.T, w *wakebelltest.World) {
		release = make(chan struct{})
		defer close(release)
		ctx, c := t.Context(), w.Client()
		told := func() explain.Explanation {
			t.Helper()
			e, err := explain.Timer(ctx, c, "orders", "x")
			require.NoError(t, err)
			require.Empty(t, e.Unread)
			return e
		}
		_, err := orders.Schedule(ctx, c, "", wakebell.ID("x"))
		require.NoError(t, err)
		for range 2 {
			<-time.After(5 * time.Second)
			w.Start(cfg)
		}
		for range 20 { // the node extends the lease
			<-time.After(3 * time.Second)
			require.Empty(t, told().Waits)
		}
		w.Nodes()[0].Crash()
		<-time.After(18 * time.Second)
		e := told()
		require.Equal(t, []explain.Cause{explain.CauseNoNode}, causes(e))
		require.Contains(t, e.Summary, "it waits: ")
		require.Contains(t, e.Summary, "gone")
		require.Contains(t, e.Summary, "; the lease expires at ")
		<-time.After(20 * time.Second)
		require.Empty(t, told().Waits, "another node has it")
	})
}

// TestJoinIsExplained has a join with parts that end one by one, and one that is late.
func TestJoinIsExplained(t *testing.T) {
	t.Parallel()
	conn := connection.Config{Prefix: "eu."}
	handle := func(context.Context, wakebell.Timer[string]) error { return nil }
	cfg := wakebell.Config{Handlers: []wakebell.Handler{wakebell.Handle(orders, handle)}}
	wakebelltest.RunWith(t, conn, cfg, func(t *testing.T, w *wakebelltest.World) {
		ctx, c := t.Context(), w.Client()
		told := func(topic, id string) explain.Explanation {
			t.Helper()
			e, err := explain.Timer(ctx, c, topic, id)
			require.NoError(t, err)
			require.Empty(t, e.Unread)
			return e
		}
		reports := wakebell.NewTopic[string]("reports") // without a node
		_, err := c.Schedule(ctx, wakebell.Batch(
			orders.Draft("", wakebell.ID("a"), wakebell.In(time.Minute)), orders.Draft("", wakebell.ID("b"), wakebell.In(3*time.Hour)),
		).Then(reports.Draft("", wakebell.ID("r"), wakebell.In(time.Hour), wakebell.AfterOpen()))...)
		require.NoError(t, err)
		require.Contains(t, told("reports", "r").Summary, "its join is open to more parts, and 2 of 2 have not ended: a of orders (pending), b of orders (pending)")
		require.Contains(t, told("orders", "a").Summary, "a join waits for it: r of reports")
		others, err := explain.Timer(ctx, struct{ explain.Client }{c}, "reports", "r")
		require.NoError(t, err)
		require.Equal(t, []string{"its join: this client reads no joins"}, others.Unread)
		require.NoError(t, c.CloseJoin(ctx, "reports", "r"))
		<-time.After(2 * time.Minute)
		e := told("reports", "r")
		require.Equal(t, []explain.Cause{explain.CauseJoin, explain.CauseNotDue}, causes(e)[:2])
		require.Equal(t, "its join waits for 1 of 2 parts: b of orders (pending)", e.Waits[0].Text)
		require.Zero(t, e.Earliest)
		<-time.After(time.Hour)
		require.Contains(t, told("reports", "r").Summary, "the time-out of its join came first: 1 of 2 parts have not ended")
	})
}
