package observe_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// line matches the number of the line that panicked.
var line = regexp.MustCompile(`:\d+$`)

// TestHistoryOfTimers delivers timers that succeed, fail, panic and are rejected, under
// each policy, and checks their attempts and the counts of the topic.
func TestHistoryOfTimers(t *testing.T) {
	t.Parallel()
	failures := []string{"flaky 1 retried the bank is down", "bad 1 dead no such account", "crash 1 crashed panic: oops at observe/history_test.go", "flaky 2 acked ", "crash 2 acked "}
	for policy, want := range map[wakebelltype.HistoryPolicy][]string{
		wakebelltype.HistoryOff:      nil,
		wakebelltype.HistoryFailures: failures,
		wakebelltype.HistoryAll:      append([]string{"good 1 acked "}, failures...),
	} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			topic := wakebell.NewTopic[string]("t")
			handle := func(_ context.Context, d wakebell.Timer[string]) error {
				switch {
				case d.ID == "flaky" && d.Attempt == 1:
					return errors.New("the bank is down")
				case d.ID == "bad":
					return wakebell.Reject(errors.New("no such account"))
				case d.ID == "crash" && d.Attempt == 1:
					panic("oops")
				}
				return nil
			}
			cfg := wakebell.Config{Handlers: []wakebell.Handler{
				wakebell.Handle(topic, handle, wakebell.History(policy), wakebell.RetryBackoff(time.Second, time.Second), wakebell.LeaseTTL(10*time.Second)),
			}}
			wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
				for _, id := range []string{"good", "flaky", "bad", "crash"} {
					_, err := topic.Schedule(t.Context(), w.Client(), "", wakebell.ID(id), wakebell.In(time.Second))
					require.NoError(t, err)
				}
				w.Advance(time.Minute)
				var got []string
				for a, err := range w.Client().History(t.Context(), "t", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
					require.NoError(t, err)
					require.NotEmpty(t, a.Node)
					require.WithinDuration(t, time.Now(), a.Started, time.Minute)
					require.Equal(t, a.Outcome == wakebelltype.EventAcked || a.Outcome == wakebelltype.EventDead, a.Final())
					got = append(got, fmt.Sprintf("%s %d %s %s", a.ID, a.Attempt, a.Outcome, line.ReplaceAllString(a.Error, "")))
				}
				require.ElementsMatch(t, want, got)
				sum := wakebelltype.ThroughputCounts{}
				found, err := w.Client().Throughput(t.Context(), "t", time.Hour)
				require.NoError(t, err)
				require.Equal(t, time.Minute, found.Step)
				require.Len(t, found.Points, 60)
				for _, p := range found.Points {
					sum.Scheduled, sum.Handled, sum.Failed, sum.Dead = sum.Scheduled+p.Scheduled, sum.Handled+p.Handled, sum.Failed+p.Failed, sum.Dead+p.Dead
				}
				require.Equal(t, wakebelltype.ThroughputCounts{Scheduled: 4, Handled: 3, Failed: 2, Dead: 1}, sum)
			})
		})
	}
}

// TestHistoryOfQueues checks the attempts and the counts of a queue, also with errors
// that are final, and that a topic of the same name has none of them.
func TestHistoryOfQueues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		option wakebell.QueueHandlerOption
		want   []string
		counts wakebelltype.ThroughputCounts
	}{
		"failures": {
			wakebell.History(wakebelltype.HistoryFailures),
			[]string{"flaky 1 retried the bank is down", "bad 1 dead no such account", "flaky 2 acked "},
			wakebelltype.ThroughputCounts{Scheduled: 3, Handled: 2, Failed: 1, Dead: 1},
		},
		"off": {wakebell.History(wakebelltype.HistoryOff), nil, wakebelltype.ThroughputCounts{Scheduled: 3, Handled: 2, Failed: 1, Dead: 1}},
		"errors are final": {
			wakebell.ErrorsAreFinal(),
			[]string{"flaky 1 discarded the bank is down", "bad 1 dead no such account"},
			wakebelltype.ThroughputCounts{Scheduled: 3, Handled: 1, Failed: 1, Dead: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mail := queue.New[string]("mail")
			bodies := map[string]string{} // by id
			handle := func(_ context.Context, d wakebell.Timer[string]) error {
				bodies[d.ID] = d.Body
				switch {
				case d.Body == "flaky" && d.Attempt == 1:
					return errors.New("the bank is down")
				case d.Body == "bad":
					return wakebell.Reject(errors.New("no such account"))
				}
				return nil
			}
			cfg := wakebell.Config{Handlers: []wakebell.Handler{
				wakebell.HandleQueue(mail, handle, wakebell.MaxConcurrent(1), wakebell.RetryBackoff(time.Second, time.Second), c.option),
			}}
			wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, cfg, func(t *testing.T, w *wakebelltest.World) {
				queues := w.Client().Queues()
				_, err := mail.PublishAll(t.Context(), queues, "good", "flaky", "bad")
				require.NoError(t, err)
				w.Advance(time.Minute)
				var got []string
				for a, err := range queues.History(t.Context(), mail.Keys(), wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
					require.NoError(t, err)
					require.NotEmpty(t, a.Node)
					got = append(got, fmt.Sprintf("%s %d %s %s", bodies[a.ID], a.Attempt, a.Outcome, a.Error))
				}
				require.ElementsMatch(t, c.want, got)
				counts := func(found wakebelltype.Throughput, err error) (sum wakebelltype.ThroughputCounts) {
					require.NoError(t, err)
					for _, p := range found.Points {
						sum.Scheduled, sum.Handled, sum.Failed, sum.Dead = sum.Scheduled+p.Scheduled, sum.Handled+p.Handled, sum.Failed+p.Failed, sum.Dead+p.Dead
					}
					return sum
				}
				require.Equal(t, c.counts, counts(queues.Throughput(t.Context(), mail.Keys(), time.Hour)))
				require.Zero(t, counts(w.Client().Throughput(t.Context(), mail.Name(), time.Hour)))
				for a, err := range w.Client().History(t.Context(), mail.Name(), wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
					require.FailNow(t, "an attempt of a topic", "%v %v", a, err)
				}
				_, err = queues.PurgeKept(t.Context(), mail.Keys())
				require.NoError(t, err)
				require.Zero(t, counts(queues.Throughput(t.Context(), mail.Keys(), time.Hour)))
			})
		})
	}
}

// TestRecordsOfRemovedQueue checks that what is written after the removal of a handler
// is still that of its queue.
func TestRecordsOfRemovedQueue(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	mail := queue.New[string](redistest.Name(t))
	handled := make(chan struct{}, 1)
	sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.HandleQueue(mail, func(context.Context, wakebell.Timer[string]) error { handled <- struct{}{}; return nil }, wakebell.History(wakebelltype.HistoryAll)),
	}})
	require.NoError(t, sys.Start(t.Context()))
	queues := sys.Client().Queues()
	_, err := mail.Publish(t.Context(), queues, "x")
	require.NoError(t, err)
	<-handled
	require.NoError(t, sys.Remove(mail.Name()))
	require.NoError(t, sys.Stop())
	found := 0
	require.Eventually(t, func() bool {
		for a, err := range queues.History(t.Context(), mail.Keys(), wakebelltype.HistoryFilter{Last: 1}, wakebelltype.Page{}) {
			require.NoError(t, err)
			require.Equal(t, wakebelltype.EventAcked, a.Outcome)
			found++
		}
		return found > 0
	}, stacktest.Patience, time.Millisecond)
	require.Zero(t, rdb.Exists(t.Context(), "timers_history:"+mail.Name(), "timers_counts:"+mail.Name()).Val())
	for _, f := range []wakebelltype.HistoryFilter{{Last: 1001}, {Last: -1}} {
		for _, err := range queues.History(t.Context(), mail.Keys(), f, wakebelltype.Page{}) {
			require.ErrorIs(t, err, wakebell.ErrInvalid)
		}
	}
	for _, err := range queues.History(t.Context(), mail.Keys(), wakebelltype.HistoryFilter{Last: 1}, wakebelltype.Page{After: "1-1/0"}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
	_, err = queues.Throughput(t.Context(), mail.Keys(), time.Second)
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// A history and counts that cannot be written do not delay a delivery.
func TestDeliveriesDoNotDependOnRecords(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	topic := wakebell.NewTopic[string](redistest.Name(t))
	for _, key := range []string{"timers_history:", "timers_counts:"} {
		require.NoError(t, rdb.Set(t.Context(), key+topic.Name(), "x", 0).Err())
	}
	sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.History(wakebelltype.HistoryAll)),
	}})
	require.NoError(t, sys.Start(t.Context()))
	for range 3 {
		_, err := topic.Schedule(t.Context(), sys.Client(), "x")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return sys.Counters()[topic.Name()].Acked == 3 }, stacktest.Patience, time.Millisecond)
	require.NoError(t, sys.Stop())

	c := sys.Client()
	for _, f := range []wakebelltype.HistoryFilter{{}, {Last: 1}} {
		for _, err := range c.History(t.Context(), topic.Name(), f, wakebelltype.Page{}) {
			require.ErrorIs(t, err, wakebell.ErrWrongType)
		}
	}
	for _, err := range c.History(t.Context(), "", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
		require.ErrorIs(t, err, wakebell.ErrInvalid)
	}
	_, err := wakebell.New(stacktest.ActorSystem(), conntest.New(t, rdb, connection.Config{}), wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(topic, func(context.Context, wakebell.Timer[string]) error { return nil }, wakebell.History(9)),
	}})
	require.ErrorIs(t, err, wakebell.ErrInvalid)
}

// slowly passes the exchanges that settle on late, as a Redis that stalls.
type slowly struct {
	poller.Source
	by time.Duration
}

func (s *slowly) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	if len(r.Settle) > 0 {
		<-time.After(s.by)
	}
	return s.Source.Exchange(ctx, r)
}

// TestHistorySaysWhenHandlersBegan checks that attempts which Redis confirms late, as after an
// outage, have the instants at which their handlers began.
func TestHistorySaysWhenHandlersBegan(t *testing.T) {
	t.Parallel()
	stacktest.Virtually(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		topic := wakebell.NewTopic[string]("t")
		sys := stacktest.Build(t, rdb, wakebell.Config{Handlers: []wakebell.Handler{
			wakebell.Handle(topic, func(_ context.Context, timer wakebell.Timer[string]) error {
				<-time.After(time.Second)
				if timer.ID == "bad" {
					return wakebell.Reject(errors.New("no such account"))
				}
				return nil
			}, wakebell.History(wakebelltype.HistoryAll), wakebell.LeaseTTL(5*time.Minute)),
		}})
		testhook.Hook(sys, testhook.Hooks{Source: func(s poller.Source) poller.Source { return &slowly{s, 40 * time.Second} }})
		stacktest.Launch(t, sys)
		began := time.Now()
		stacktest.ScheduleAll(t, sys.Client(), topic, []string{"good", "bad"})
		<-time.After(3 * time.Minute)
		outcomes := map[string]wakebelltype.EventKind{}
		for a, err := range sys.Client().History(t.Context(), "t", wakebelltype.HistoryFilter{}, wakebelltype.Page{}) {
			require.NoError(t, err)
			outcomes[a.ID] = a.Outcome
			require.WithinDuration(t, began, a.Started, time.Second, a.ID)
			require.Equal(t, time.Second, a.Took.Round(100*time.Millisecond), a.ID)
		}
		require.Equal(t, map[string]wakebelltype.EventKind{"good": wakebelltype.EventAcked, "bad": wakebelltype.EventDead}, outcomes)
	})
}
