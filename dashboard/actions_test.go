package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestTopicIsPausedRetunedResumedAndForgotten(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("mails", "m", time.Hour, "x")
	topic := []string{"topic", "mails"}
	asked, page := s.do("pause", topic, "reason", "bank is closed", "for", "2h")
	require.Contains(t, asked, "1 timer.")
	require.Contains(t, page, "is paused on all nodes")
	require.Contains(t, page, "by local: bank is closed")
	control, err := s.client.Control(t.Context(), "mails")
	require.NoError(t, err)
	require.Equal(t, "local", control.PausedBy)
	require.Equal(t, control.PausedAt.Add(2*time.Hour), control.PausedUntil)

	_, page = s.do("retune", topic, "max_concurrent", "7", "lease_ttl", "45s")
	require.Contains(t, page, "lease-ttl")
	require.Contains(t, page, "45s")
	_, page = s.do("resume", topic)
	require.NotContains(t, page, "bank is closed")
	control, err = s.client.Control(t.Context(), "mails")
	require.NoError(t, err)
	require.False(t, control.Paused)
	require.Equal(t, 7, control.Settings.MaxConcurrent)

	page = s.get("audit", "kind", "topic", "name", s.client.Prefix()+"mails", "by", "local")
	for _, operation := range []string{"topic.pause", "topic.retune", "topic.resume"} {
		require.Contains(t, page, operation)
	}
	asked, page = s.do("cancel-all", topic, "confirm", "mails")
	require.Contains(t, asked, "1 timer")
	require.Contains(t, page, "Cancelled 1 timer.")
	_, page = s.do("forget", topic, "confirm", "mails")
	require.Contains(t, page, "The topic is forgotten.")
	require.Contains(t, s.get("topics"), "There is no topic yet")
}

func TestRefusedFormKeepsWhatWasEntered(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("mails", "m", time.Hour, "x")
	for _, c := range []struct {
		action string
		params []string
		fields []string
		want   []string
	}{
		{"retune", []string{"topic", "mails"}, []string{"lease_ttl", "900h", "max_attempts", "3"}, []string{"lease-ttl", "100ms to 24h", `value="900h"`, `value="3"`}},
		{"cancel-all", []string{"topic", "mails"}, []string{"confirm", "mail"}, []string{"want the name", `value="mail"`}},
		{"schedule", nil, []string{"topic", "mails", "when", "soon", "body", "{", "exists", "keep"}, []string{"soon", "{</textarea>", "selected>keep"}},
		{"schedule", nil, []string{"topic", "mails", "when", "1h", "exists", "keep", "body", "{", "content_type", "application/json"}, []string{"not valid JSON"}},
		{"put-schedule", nil, []string{"name", "n", "topic", "t", "kind", "cron", "rule", "61 * * * *"}, []string{"61 * * * *", "selected>cron"}},
		{"reschedule", []string{"topic", "mails", "id", "m"}, []string{"when", "-1h"}, []string{"want a duration"}},
	} {
		path := s.path("do/"+c.action, c.params...)
		_, csrf := s.question(path)
		a := s.send(http.MethodPost, path, form(csrf, c.fields...))
		require.Equal(t, http.StatusBadRequest, a.status, "%s: %s", c.action, a.body)
		require.Contains(t, a.body, `role="alert"`)
		for _, want := range c.want {
			require.Contains(t, a.body, want, c.action)
		}
	}
	stats, err := s.client.Stats(t.Context(), "mails")
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Total)
}

func TestTimerIsScheduledEditedMovedRunAndCancelled(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, page := s.do("schedule", nil, "topic", "mails", "id", "a/b?c", "when", "3h", "exists", "replace",
		"body", `{"n":1}`, "content_type", "application/json", "headers", `{"tenant":"x"}`)
	require.Contains(t, page, "created, due in ")
	timer := []string{"topic", "mails", "id", "a/b?c"}
	page = s.get("timer", timer...)
	require.Contains(t, page, "tenant")

	asked, _ := s.do("schedule", timer, "topic", "mails", "id", "a/b?c", "when", "7d", "exists", "replace", "body", `{"n":2}`, "content_type", "application/json")
	require.Contains(t, asked, `{&#34;tenant&#34;:&#34;x&#34;}`)
	_, content, err := s.client.Get(t.Context(), "mails", "a/b?c")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":2}`, string(content.Body))

	_, page = s.do("reschedule", timer, "when", "2099-01-02T03:04:05Z")
	require.Contains(t, page, "2099-01-02 03:04:05")
	asked, page = s.do("run-now", timer)
	require.Contains(t, asked, "1 timer, pending")
	require.Contains(t, page, "The timer is due now.")
	_, page = s.do("cancel", timer)
	require.Contains(t, page, "The timer is cancelled. It was pending.")
	require.Equal(t, http.StatusNotFound, s.send(http.MethodGet, s.path("timer", timer...), nil).status)
}

func TestTimersAreFoundByWhatTheyContain(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("mails", "a", time.Hour, "to the bank")
	s.schedule("mails", "b", time.Hour, "to the shop", wakebell.Header("tenant", "acme bank"))
	s.schedule("mails", "c", time.Hour, "to the shop")
	page := s.get("timers", "topic", "mails", "text", "bank")
	require.Contains(t, page, "id=a&")
	require.Contains(t, page, "id=b&")
	require.NotContains(t, page, "id=c&")
	asked, page := s.do("bulk-cancel", []string{"topic", "mails", "text", "bank"})
	require.Contains(t, asked, "Their headers or bodies contain bank.")
	require.Contains(t, page, "Cancelled 2 timers.")
	require.Contains(t, s.get("audit", "kind", "topic.cancel"), "timers with &#34;bank&#34; in a header or the body")

	hidden := open(t, func(c *dashboard.Config) { c.HidePayloads = true })
	hidden.schedule("mails", "a", time.Hour, "to the bank")
	require.Equal(t, http.StatusForbidden, hidden.send(http.MethodGet, hidden.path("timers", "topic", "mails", "text", "bank"), nil).status)
}

func TestBulkChangesConcernFilteredTimersAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, id := range []string{"a-1", "a-2", "b-1"} {
		s.schedule("mails", id, time.Hour, "x")
	}
	page := s.get("timers", "topic", "mails", "prefix", "a-")
	require.Contains(t, page, "a-2")
	require.NotContains(t, page, "b-1")
	asked, page := s.do("bulk-reschedule", []string{"topic", "mails", "prefix", "a-"}, "when", "2h")
	require.Contains(t, asked, "Reschedule 2 timers")
	require.Contains(t, page, "Rescheduled 2 timers.")
	require.NotContains(t, s.get("timers", "topic", "mails", "within", "24h", "prefix", "x"), "a-1")
	_, page = s.do("bulk-run", []string{"topic", "mails", "prefix", "b-"})
	require.Contains(t, page, "Made due 1 timer.")
	page = s.get("timers", "topic", "mails", "text", "no timer has this")
	require.Contains(t, page, "No timer matches")
	page = s.get("audit", "kind", "topic.reschedule", "by", "local")
	require.Contains(t, page, "timers whose ids begin with &#34;a-&#34;, to: 2h")
	_, page = s.do("bulk-cancel", []string{"topic", "mails", "prefix", "a-"})
	require.Contains(t, page, "Cancelled 2 timers.")
	stats, err := s.client.Stats(t.Context(), "mails")
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Due)
	require.EqualValues(t, 1, stats.Total)
}

// A filter that leaves out no timer asks for as much as "cancel all".
func TestFilterOfAllTimersAsksForName(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, id := range []string{"a-1", "a-2"} {
		s.schedule("mails", id, time.Hour, "x")
	}
	for _, filter := range [][]string{{"prefix", "a"}, {}, {"text", "x"}} {
		path := s.path("do/bulk-cancel", append([]string{"topic", "mails"}, filter...)...)
		asked, csrf := s.question(path)
		require.Contains(t, asked, "these are all of the topic")
		require.Contains(t, asked, "Type the name to confirm.")
		require.Equal(t, http.StatusBadRequest, s.send(http.MethodPost, path, form(csrf)).status, filter)
	}
	asked, _ := s.do("bulk-run", []string{"topic", "mails", "prefix", "a"})
	require.NotContains(t, asked, "confirm")
	asked, _ = s.question(s.path("do/bulk-cancel", "topic", "mails", "prefix", "a-1"))
	require.NotContains(t, asked, "confirm")
	asked, _ = s.question(s.path("do/bulk-cancel", "topic", "empty"))
	require.NotContains(t, asked, "confirm")
	_, page := s.do("bulk-cancel", []string{"topic", "mails", "prefix", "a"}, "confirm", "mails")
	require.Contains(t, page, "Cancelled 2 timers.")
}

// The form for the settings of all nodes has what applies now: the settings, and the options of
// the nodes that they replace.
func TestRetuneShowsPresentValues(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, err := s.client.Retune(t.Context(), "mails", wakebelltype.Settings{MaxConcurrent: 2})
	require.NoError(t, err)
	asked := ""
	s.run("mails", func(context.Context, wakebell.Timer[[]byte]) error { return nil }, func() bool {
		asked, _ = s.question(s.path("do/retune", "topic", "mails"))
		return strings.Contains(asked, "Option of the nodes: 7")
	}, wakebell.MaxConcurrent(7), wakebell.RateLimit(3, time.Minute, 1))
	require.Contains(t, asked, `name="max_concurrent" value="2"`)
	require.Contains(t, asked, "Option of the nodes: off")
}

// Dead letters whose reasons differ by ids and numbers are a group, of which a link shows all.
func TestDeadLettersAreGroupedByWhatReasonsHaveInCommon(t *testing.T) {
	t.Parallel()
	s := open(t)
	reasons := map[string]string{"other": "no such user"}
	for i := range 600 {
		reasons[fmt.Sprint(i)] = fmt.Sprintf(`user "u-%d" has no card %d`, i, i)
	}
	s.kill("mails", reasons)
	page := s.get("dead", "topic", "mails", "longer", "1") // however slow the machine is
	require.Contains(t, page, "Of 601 dead letters, 601 are grouped here")
	require.Regexp(t, `<td class="n">600</td><th scope="row" class="long"><a href="[^"]*reason=has[^"]*">user … has no card …<`, page)
	require.Contains(t, s.get("dead", "topic", "mails", "reason", "has no card"), "has no card")
	require.NotContains(t, s.get("dead", "topic", "mails", "reason", "has no card"), "no such user")
}

func TestDeadLettersAreFilteredExportedRedrivenAndDeleted(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.kill("mails", map[string]string{"a": "card declined 17", "b": "card declined 18", "c": "no such user"})
	require.Contains(t, s.get("dead"), "mails")
	page := s.get("dead", "topic", "mails")
	require.Contains(t, page, "3 dead letters")
	require.Contains(t, page, "no such user")
	page = s.get("dead", "topic", "mails", "prefix", "card declined ")
	require.NotContains(t, page, "no such user")

	export := s.get("export/dead", "topic", "mails", "reason", "declined")
	require.Len(t, strings.Split(strings.TrimSpace(export), "\n"), 2)
	require.Contains(t, export, `"reason":"card declined 17"`)

	letters, err := s.client.LastDead(t.Context(), "mails", 1)
	require.NoError(t, err)
	require.Contains(t, s.get("letter", "topic", "mails", "entry", letters[0].Entry), "Dead letter of")

	asked, page := s.do("redrive", []string{"topic", "mails", "reason", "declined"}, "rate", "1000", "in", "1h")
	require.Contains(t, asked, "2 dead letters that the filter selects.")
	require.Contains(t, page, "Redrove 2 dead letters.")
	asked, page = s.do("delete-dead", []string{"topic", "mails"}, "confirm", "mails")
	require.Contains(t, asked, "All 1 dead letter of the topic.")
	require.Contains(t, page, "Deleted 1 dead letter.")
	stats, err := s.client.Stats(t.Context(), "mails")
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Pending)
	require.Zero(t, stats.Dead)
}

func TestLongRedriveIsJobThatCanBeStopped(t *testing.T) {
	t.Parallel()
	s := open(t)
	reasons := map[string]string{}
	for _, id := range strings.Split("abcdefghijklmnop", "") {
		reasons[id] = "no"
	}
	s.kill("mails", reasons)
	_, page := s.do("redrive", []string{"topic", "mails"}, "rate", "1")
	require.Contains(t, page, "<progress max=\"16\"")
	require.Contains(t, s.get("jobs"), "Redrive dead letters of mails")
	s.do("stop-job", []string{"id", "1"})
	require.Eventually(t, func() bool { return strings.Contains(s.get("job", "id", "1"), "stopped") }, patience, 20*time.Millisecond)
	stats, err := s.client.Stats(t.Context(), "mails")
	require.NoError(t, err)
	require.Positive(t, stats.Dead)
}

func TestQueueIsPublishedToPeekedAndPurged(t *testing.T) {
	t.Parallel()
	s := open(t, queueNames("jobs"))
	name := []string{"name", "jobs"}
	_, page := s.do("publish", name, "body", `{"n":1}`, "encoding", "text", "key", "k")
	require.Contains(t, page, "The message is published")
	_, page = s.do("publish", name, "body", `{"n":1}`, "encoding", "text", "key", "k")
	require.Contains(t, page, "Nothing was published")
	page = s.get("queue", name...)
	require.Contains(t, page, "&#34;n&#34;: 1")
	require.Contains(t, s.get("queues"), "jobs")
	asked, page := s.do("purge", name, "confirm", "jobs")
	require.Contains(t, asked, "1 message that wait")
	require.Contains(t, page, "Deleted 1 message.")
	stats, err := s.client.Queues().Stats(t.Context(), queue.New[string]("jobs").Keys())
	require.NoError(t, err)
	require.Zero(t, stats.Pending)
}

var bodyField = regexp.MustCompile(`"body":"[^"]+"`)

func TestScheduleIsStoredPreviewedPausedRunAndDeleted(t *testing.T) {
	t.Parallel()
	s := open(t)
	fields := []string{"name", "nightly", "topic", "reports", "kind", "cron", "rule", "30 2 * * *", "zone", "Europe/Berlin", "misfire", "skip", "overlap", "queue", "body", `{"n":1}`}
	path := s.path("do/put-schedule")
	_, csrf := s.question(path)
	preview := s.send(http.MethodPost, path, form(csrf, append(fields, "again", "1")...))
	require.Equal(t, http.StatusOK, preview.status)
	require.Equal(t, 5, strings.Count(preview.body, "02:30:00 CE"))
	require.Contains(t, preview.body, `value="nightly"`)
	_, err := s.client.Schedules().Get(t.Context(), "nightly")
	require.ErrorIs(t, err, wakebell.ErrNotFound)

	_, page := s.do("put-schedule", nil, fields...)
	require.Contains(t, page, "The schedule is stored.")
	require.Contains(t, page, "Europe/Berlin")
	require.Contains(t, s.get("schedules"), "nightly")
	name := []string{"name", "nightly"}
	_, page = s.do("pause-schedule", name)
	require.Contains(t, page, "It is paused.")
	_, page = s.do("resume-schedule", name)
	require.NotContains(t, page, "It is paused.")
	_, page = s.do("run-schedule", name)
	require.Contains(t, page, "Run 1 is fired.")
	period := []string{"from", "2026-01-01T00:00:00Z", "to", "2026-01-04T00:00:00Z"}
	asking := s.path("do/backfill", name...)
	_, csrf = s.question(asking)
	require.Contains(t, s.send(http.MethodPost, asking, form(csrf, period...)).body, "Fire 3 runs", "it asks with the count")
	other := form(csrf, append(period, "fire-4", "1")...)
	require.Contains(t, s.send(http.MethodPost, asking, other).body, "Fire 3 runs", "the count of another period does not count")
	none := s.send(http.MethodPost, asking, form(csrf, "from", "2026-01-01T00:00:00Z", "to", "2026-01-01T00:00:01Z"))
	require.Contains(t, none.body, "No run is due within the period.")
	_, page = s.do("backfill", name, append(period, "fire-3", "1")...)
	require.Contains(t, page, "Fired 3 runs.")
	state, err := s.client.Schedules().Get(t.Context(), "nightly")
	require.NoError(t, err)
	require.Equal(t, recurring.OverlapQueue, state.Rule.Overlap)
	before, err := s.client.Schedules().Export(t.Context(), "nightly")
	require.NoError(t, err)
	_, page = s.do("put-schedule", name, "name", "nightly", "topic", "reports", "kind", "cron", "rule", "30 3 * * *", "misfire", "once", "overlap", "allow")
	require.Contains(t, page, "cron 30 3 * * *")
	after, err := s.client.Schedules().Export(t.Context(), "nightly")
	require.NoError(t, err)
	require.Contains(t, string(before.Wakebell), bodyField.FindString(string(after.Wakebell)), "an edit keeps the body")
	require.NotEmpty(t, bodyField.FindString(string(after.Wakebell)))
	_, page = s.do("delete-schedule", name)
	require.Contains(t, page, "The schedule is deleted.")
}

func TestGateIsReleasedRepairedAndRemoved(t *testing.T) {
	t.Parallel()
	s := open(t)
	turn, err := s.gates.Acquire(t.Context(), "deploy")
	require.NoError(t, err)
	require.NoError(t, turn.Guard(t.Context(), "db"))
	require.Contains(t, s.get("gates"), "deploy")
	name := []string{"name", "deploy"}
	require.Contains(t, s.get("gate", name...), "db")
	asked, page := s.do("release-gate", name, "fence", itoa(turn.Fence()))
	require.Contains(t, asked, "1 turn: ")
	require.Contains(t, page, "The turn is taken away.")
	_, page = s.do("repair-gate", name, "floor", "0")
	require.Contains(t, page, "The next tokens are above")
	_, page = s.do("remove-gate", name)
	require.Contains(t, page, "The gate is removed.")
}

func TestSearchGoesToWhatHasName(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.schedule("mails", "id-7", time.Hour, "x")
	require.NoError(t, s.client.Schedules().Put(t.Context(), wakebell.NewTopic[string]("t").Recurring("nightly", recurring.Rule{Cron: "0 0 * * *"}, "")))
	for text, want := range map[string]string{
		"mails": s.path("topic", "name", "mails"), "id-7": s.path("timer", "topic", "mails", "id", "id-7"),
		"mails id-7": s.path("timer", "topic", "mails", "id", "id-7"), "nightly": s.path("schedule", "name", "nightly"),
	} {
		a := s.send(http.MethodGet, s.path("search", "q", text), nil)
		require.Equal(t, http.StatusSeeOther, a.status, "%s: %s", text, a.body)
		require.Equal(t, want, a.header.Get("Location"), text)
	}
	require.Contains(t, s.get("search", "q", "nothing"), "Nothing is called")
}

func TestListsArePagedByCursor(t *testing.T) {
	t.Parallel()
	s := open(t)
	drafts := make([]wakebell.Draft, 120)
	for i := range drafts {
		drafts[i] = wakebell.NewTopic[string]("many").Draft("x", wakebell.ID("id-"+itoa(uint64(1000+i))), wakebell.In(time.Hour+time.Duration(i)*time.Second))
	}
	_, err := s.client.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	seen, page := 0, s.path("timers", "topic", "many")
	for range 3 {
		body := s.send(http.MethodGet, page, nil).body
		seen += strings.Count(body, `scope="row"`)
		page = nextPage(body)
	}
	require.Equal(t, 120, seen)
	require.Empty(t, page)
}
