package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/dashboard/internal/joined"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	mails   = wakebell.NewTopic[[]byte]("mails")
	reports = wakebell.NewTopic[[]byte]("reports")
)

// join schedules the timer r of reports, which is due when parts of mails have ended.
func (s *site) join(parts int, options ...wakebell.ScheduleOption) {
	s.t.Helper()
	drafts := make([]wakebell.Draft, parts)
	for i := range drafts {
		drafts[i] = mails.Draft(nil, wakebell.ID(fmt.Sprintf("m-%03d", i)), wakebell.In(time.Hour))
	}
	drafts = wakebell.Batch(drafts...).Then(reports.Draft(nil, append(options, wakebell.ID("r"), wakebell.In(2*time.Hour))...))
	_, err := s.client.Schedule(s.t.Context(), drafts...)
	require.NoError(s.t, err)
}

var squares = regexp.MustCompile(`<a href="([^"]+)" tabindex="-1"><rect class="s-([^"]+)"`)

func TestJoinIsShownWithItsParts(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.join(4)
	report := []string{"topic", "reports", "id", "r"}
	page := s.get("timer", report...)
	require.Contains(t, page, "4 parts, of which 0 ended: 0 done, 0 dead, 0 cancelled, 0 missing")
	require.Contains(t, page, "closed</span> it is due when all parts have ended")
	require.Contains(t, s.get("timer", "topic", "mails", "id", "m-001"), "of reports: 0 of 4 parts ended")

	for _, id := range []string{"m-000", "m-001"} {
		_, err := s.client.RunNow(t.Context(), "mails", id)
		require.NoError(t, err)
	}
	s.run("mails", func(_ context.Context, timer wakebell.Timer[[]byte]) error {
		if timer.ID == "m-001" {
			return wakebell.Reject(errors.New("no such <b>address</b>"))
		}
		return nil
	}, func() bool {
		join, err := s.client.Join(t.Context(), "reports", "r")
		return err == nil && join.Ended() == 2
	})
	_, err := s.client.Cancel(t.Context(), "mails", "m-002")
	require.NoError(t, err)
	page = s.get("timer", report...)
	require.Contains(t, page, "4 parts, of which 2 ended: 1 done, 1 dead")
	require.Contains(t, page, "no such &lt;b&gt;address&lt;/b&gt;")
	var states []string
	for i, found := range squares.FindAllStringSubmatch(page, -1) {
		states = append(states, found[2])
		require.Contains(t, found[1], fmt.Sprintf("id=m-%03d", i))
	}
	require.Equal(t, []string{"done", "dead", "gone", "pending"}, states)
}

func TestJoinIsShownAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.join(1)
	_, err := s.client.RunNow(t.Context(), "mails", "m-000")
	require.NoError(t, err)
	ok := func(context.Context, wakebell.Timer[[]byte]) error { return nil }
	due := func() bool {
		info, _, err := s.client.Get(t.Context(), "reports", "r")
		return err == nil && info.IsDue(time.Now().Add(time.Minute))
	}
	s.run("mails", ok, due)
	s.run("reports", ok, func() bool {
		_, _, err := s.client.Get(t.Context(), "reports", "r")
		return errors.Is(err, wakebell.ErrNotFound)
	})
	page := s.get("timer", "topic", "reports", "id", "r")
	require.Contains(t, page, "no longer stored")
	require.Contains(t, page, "1 part, of which 1 ended: 1 done")
	require.NotContains(t, page, "do/cancel-join")
}

func TestPartsOfLargeJoinAreOnPages(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.join(2*joined.MaxParts + 1)
	page, seen := s.get("timer", "topic", "reports", "id", "r"), 0
	require.Contains(t, page, "101 more parts on other pages.")
	for {
		found := squares.FindAllString(page, -1)
		require.LessOrEqual(t, len(found), joined.MaxParts)
		seen += len(found)
		next := nextPage(page)
		if next == "" {
			break
		}
		page = s.send(http.MethodGet, next, nil).body
		require.Contains(t, page, "First page")
	}
	require.Equal(t, 2*joined.MaxParts+1, seen)
}

func TestJoinIsClosedAndCancelled(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.join(2, wakebell.AfterOpen())
	report := []string{"topic", "reports", "id", "r"}
	page := s.get("timer", report...)
	require.Contains(t, page, ">open</span>")
	require.Contains(t, page, "do/close-join?")
	asked, page := s.do("close-join", report)
	require.Contains(t, asked, "The join has 2 parts, of which 2 have not ended.")
	require.Contains(t, page, "The join is closed.")
	require.NotContains(t, page, "do/close-join?")
	join, err := s.client.Join(t.Context(), "reports", "r")
	require.NoError(t, err)
	require.False(t, join.Open)

	_, page = s.do("cancel-join", report)
	require.Contains(t, page, "The join is cancelled, with 2 parts.")
	_, _, err = s.client.Get(t.Context(), "mails", "m-000")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
	audit := s.get("audit", "kind", "topic", "name", s.client.Prefix()+"reports")
	require.Contains(t, audit, "ids: r, join closed")
	require.Contains(t, audit, "ids: r, join with 2 parts")
}

// Viewers see joins, and change none; nor does a request without the token of the form.
func TestJoinsAreChangedByOperatorsAlone(t *testing.T) {
	t.Parallel()
	viewer, operator := open(t, func(c *dashboard.Config) { c.Writable = false }), open(t)
	for _, s := range []*site{viewer, operator} {
		s.join(1, wakebell.AfterOpen())
		for _, action := range []string{"close-join", "cancel-join"} {
			require.Equal(t, s == operator, strings.Contains(s.get("timer", "topic", "reports", "id", "r"), action+"?"))
			a := s.send(http.MethodPost, s.path("do/"+action, "topic", "reports", "id", "r"), url.Values{})
			require.Equal(t, http.StatusForbidden, a.status, a.body)
		}
		join, err := s.client.Join(t.Context(), "reports", "r")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.Join{Open: true, Parts: 1}, join)
	}
}

// Operators without joins, as those of a node, say so.
func TestJoinsAreNotReadByOthers(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.join(1)
	s.serve(dashboard.Operators{Timers: struct{ dashboard.Timers }{s.client}})
	require.Contains(t, s.get("timer", "topic", "reports", "id", "r"), "A dashboard on Redis itself shows them.")
	require.NotContains(t, s.get("timer", "topic", "mails", "id", "m-000"), "Joins that wait for it")
	require.Equal(t, http.StatusNotFound, s.send(http.MethodGet, s.path("do/cancel-join", "topic", "reports", "id", "r"), nil).status)
}
