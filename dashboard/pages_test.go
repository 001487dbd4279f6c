package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestEmptyPagesSayWhatToDoNext(t *testing.T) {
	t.Parallel()
	s := open(t)
	for page, want := range map[string]string{
		"": "There is no topic yet", "topics": "There is no topic yet", "dead": "No topic has dead letters",
		"queues": "open one by its name", "schedules": "wakebell schedules put", "gates": "No gate is held",
		"nodes": "No node handles a topic", "jobs": "No job has run", "doctor": "checks:", "search": "Enter the name",
	} {
		require.Contains(t, s.get(page), want, page)
	}
}

func TestTopicShowsItsTimers(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, `{"n":1}`, wakebell.ContentType("application/json"))
	s.schedule("invoices", "inv-2", 2*time.Hour, "x")
	require.Contains(t, s.get(""), "2 pending")
	page := s.get("topics")
	require.Contains(t, page, "invoices")
	page = s.get("topic", "name", "invoices")
	require.Contains(t, page, "inv-1")
	require.Contains(t, page, "2 pending")
	page = s.get("timer", "topic", "invoices", "id", "inv-1")
	require.Contains(t, page, "&#34;n&#34;: 1")
	require.Contains(t, page, "application/json")
	require.NotContains(t, s.get("topics"), "shards")
	_, err := s.client.Divide(t.Context(), "orders", 4)
	require.NoError(t, err)
	s.schedule("orders", "o-1", time.Hour, "x")
	require.Contains(t, s.get("topic", "name", "orders"), "4 shards")
	// The list of topics is remembered for a moment.
	require.Eventually(t, func() bool { return strings.Contains(s.get("topics"), "4 shards") }, patience, 100*time.Millisecond)
}

// The counts and attempts of a node stay on the pages after it has ended, and those of a
// timer after it was handled.
func TestPagesShowWhatHappened(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", 0, "x")
	s.schedule("invoices", "inv-2", 0, "x")
	s.schedule("invoices", "inv-3", time.Hour, "x")
	page := s.get("timer", "topic", "invoices", "id", "inv-1")
	require.Contains(t, page, "No attempt is recorded")
	require.Contains(t, page, "<li>no node handles its topic</li>")
	var failed, handled atomic.Int64
	s.run("invoices", func(_ context.Context, timer wakebell.Timer[[]byte]) error {
		if timer.ID == "inv-1" && timer.Attempt == 1 {
			failed.Add(1)
			return errors.New("smtp <b>refused</b>")
		}
		handled.Add(1)
		return nil
	}, func() bool { return failed.Load() == 1 && handled.Load() == 2 })

	const chart = "Last 6 hours: 2 handled, 1 failed, 0 dead"
	require.Eventually(t, func() bool { return strings.Contains(s.get("topic", "name", "invoices"), chart) }, patience, 100*time.Millisecond, "charts are cached")
	page = s.get("topic", "name", "invoices")
	require.Contains(t, page, "smtp &lt;b&gt;refused&lt;/b&gt;")
	require.Contains(t, page, `class="c-failed"`)
	require.Contains(t, page, "Lateness of the last 6 hours")
	require.Contains(t, page, `class="c-p99"`)
	for _, params := range [][]string{{"topic", "name", "invoices"}, {""}} {
		day := ""
		require.Eventually(t, func() bool { // the overview reads charts meanwhile
			day = s.get(params[0], append(params[1:], "range", "24h")...)
			return strings.Contains(day, "Last 24 hours: 2 handled, 1 failed, 0 dead")
		}, patience, 100*time.Millisecond)
		require.Contains(t, day, "UTC: 2 handled, 1 failed, 0 dead, 3 scheduled</title>", "the values of a bar")
		require.Contains(t, day, "<span>1 d ago</span>", "an axis")
		require.Regexp(t, `<a href="[^"]*range=30d[^"]*">30d</a>`, day)
	}
	require.Contains(t, s.get("topics"), chart)
	require.Eventually(t, func() bool { return strings.Contains(s.get(""), "3 scheduled") }, patience, 100*time.Millisecond)
	page = s.get("timer", "topic", "invoices", "id", "inv-1")
	require.Contains(t, page, "no longer stored")
	require.Contains(t, page, "acked")
	require.Contains(t, page, "retried")
	require.NotContains(t, s.get("timer", "topic", "invoices", "id", "inv-3"), "no longer stored")
	a := s.send(http.MethodGet, s.path("timer", "topic", "invoices", "id", "inv-2"), nil)
	require.Equal(t, http.StatusNotFound, a.status, "its success is not recorded")
}

// The pages of a topic and of all have what is due in the next 24 hours, and what will be late.
func TestPagesShowWhatIsDue(t *testing.T) {
	t.Parallel()
	s := open(t)
	topic := wakebell.NewTopic[[]byte]("invoices")
	require.Eventually(t, func() bool {
		return strings.Contains(s.get("topic", "name", "invoices"), "Nothing is due in the next 24 hours.")
	}, patience, 10*time.Millisecond)
	inMinute := time.Now().Truncate(time.Minute).Add(2*time.Hour + 30*time.Second)
	for i := range 4 {
		s.schedule("orders", fmt.Sprint(i), time.Until(inMinute), "x")
	}
	_, err := s.client.Retune(t.Context(), "orders", wakebelltype.Settings{RateLimit: 1, RatePer: time.Minute, RateBurst: 1})
	require.NoError(t, err)
	require.NoError(t, s.client.Schedules().Put(t.Context(), topic.Recurring("hourly", recurring.Rule{Every: time.Hour}, []byte("x"))))
	for _, page := range []string{s.get("topic", "name", "orders"), s.get("")} {
		require.Contains(t, page, "Next 24 hours")
		require.Regexp(t, "Most in a minute: [45]", page) // a run may be in the same minute
		require.Contains(t, page, "orders will be up to 3 min late")
		require.Contains(t, page, "its rate limit is 1 a minute.")
	}
	require.Regexp(t, `of which <span class="c-runs">2[345] of recurring schedules`, s.get(""))
}

// The page of a recurring schedule has the attempts of its runs, and no others of its
// topic.
func TestScheduleShowsWhatItsRunsDid(t *testing.T) {
	t.Parallel()
	s := open(t)
	topic := wakebell.NewTopic[[]byte]("reports")
	require.NoError(t, s.client.Schedules().Put(t.Context(), topic.Recurring("nightly", recurring.Rule{Cron: "0 3 * * *"}, []byte("x"))))
	_, err := s.client.Schedules().RunNow(t.Context(), "nightly")
	require.NoError(t, err)
	s.schedule("reports", "another", 0, "x")
	var dead atomic.Int64
	s.run("reports", func(context.Context, wakebell.Timer[[]byte]) error {
		dead.Add(1)
		return wakebell.Reject(errors.New("no disk"))
	}, func() bool { return dead.Load() == 2 })
	page := s.get("schedule", "name", "nightly")
	require.Contains(t, page, "no disk")
	require.Contains(t, page, "nightly@")
	require.NotContains(t, page, "another")
	require.Contains(t, s.get("topic", "name", "reports"), "another")
}

func TestHowLongGateWasHeldIsShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	turn, err := s.gates.Acquire(t.Context(), "deploy")
	require.NoError(t, err)
	page := s.get("gate", "name", "deploy")
	require.Contains(t, page, "<dt>Since</dt>")
	require.Contains(t, page, "No turn ended in the last 7 days")
	require.NoError(t, turn.Release(t.Context()))
	require.Eventually(t, func() bool {
		return strings.Contains(s.get("gate", "name", "deploy"), `<meter min="0" max="1" value="1">`)
	}, patience, 100*time.Millisecond)
}

func TestQueueShowsWhatHappened(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := queue.New[string]("mails")
	_, err := q.Publish(t.Context(), s.client.Queues(), "x")
	require.NoError(t, err)
	page := s.get("queue", "name", "mails")
	require.Contains(t, page, "1 message published")
	require.Contains(t, page, "No attempt is recorded")
}

// A message without a lease, which a dead consumer with AtMostOnce leaves, is counted and listed.
func TestMessagesWithoutLeaseAreShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	q := queue.New[string]("mails")
	_, err := q.Publish(t.Context(), s.client.Queues(), "orphan of a consumer")
	require.NoError(t, err)
	require.NotContains(t, s.get("queue", "name", "mails"), "held without a lease")
	name := s.client.Prefix() + "mails"
	require.NoError(t, redistest.Shared(t).LMove(t.Context(), name+"::pending", name+"::processing", "right", "left").Err())
	require.Contains(t, s.get("queue", "name", "mails"), "<b>1</b> <span>held without a lease</span>")
	page := s.get("queue", "name", "mails", "show", "running")
	require.Contains(t, page, "0 deliveries, held without a lease")
	require.Contains(t, page, "orphan of a consumer")
}

// An open circuit breaker is shown without the answer of its node.
func TestOpenBreakerIsShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	require.NotContains(t, s.get("topic", "name", "invoices"), "breaker")
	report, err := json.Marshal(wakebelltype.NodeState{
		Breaker: "open", BreakerSince: time.Now(), BreakerUntil: time.Now().Add(time.Minute), BreakerReason: "smtp <b>refused</b>",
	})
	require.NoError(t, err)
	key := "timers_reports:" + s.client.Prefix() + "invoices"
	require.NoError(t, redistest.Shared(t).HSet(t.Context(), key, "web/1/x", "9e9 "+string(report)).Err())
	require.Eventually(t, func() bool { return strings.Contains(s.get("topics"), "breaker open on 1 node<") }, patience, 100*time.Millisecond)
	page := s.get("topic", "name", "invoices")
	require.Contains(t, page, "Circuit breaker open on web/1 since")
	require.Contains(t, page, "smtp &lt;b&gt;refused&lt;/b&gt;")
}

// Due timers without a node are red on the overview and in the list, until the topic is paused.
func TestTopicWithoutNodeIsShown(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("invoices", "inv-1", time.Hour, "x")
	past := float64(time.Now().Add(-time.Hour).Unix())
	timeline := "timers_timeline:" + s.client.Prefix() + "invoices"
	require.NoError(t, redistest.Shared(t).Do(t.Context(), "ZADD", timeline, "XX", past, "inv-1").Err())
	require.Contains(t, s.get(""), "1 topic with due timers and no node")
	require.Contains(t, s.get("topics"), `<span class="tag t-bad">no node</span>`)
	_, err := s.client.Pause(t.Context(), "invoices", "ops", "planned")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return !strings.Contains(s.get("topics"), "no node<") && !strings.Contains(s.get(""), "due timers and no node")
	}, patience, 100*time.Millisecond, "a pause is meant")
}
