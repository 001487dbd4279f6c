package dashboard

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// oneSchedule has one schedule, with the state that a clock other than the dashboard's gave it.
type oneSchedule struct {
	recurring.Operator
	state recurring.State
}

func (o *oneSchedule) Get(context.Context, string) (recurring.State, error) { return o.state, nil }

func (*oneSchedule) Preview(context.Context, string, int) ([]time.Time, error) { return nil, nil }

func (o *oneSchedule) List(context.Context, wakebelltype.Page) iter.Seq2[recurring.State, error] {
	return func(yield func(recurring.State, error) bool) { yield(o.state, nil) }
}

// The list and the page of a schedule say that no beat fires it, for any clock of the
// dashboard's host.
func TestOverdueScheduleIsShownByClockOfRedis(t *testing.T) {
	t.Parallel()
	for _, state := range []recurring.State{
		{Name: "late", Celery: true, Next: time.Now().Add(time.Hour), Overdue: 90 * time.Second},
		{Name: "early", Celery: true, Next: time.Now().Add(-time.Hour)},
		{Name: "just", Celery: true, Next: time.Now().Add(-time.Hour), Overdue: time.Minute},
	} {
		schedules := &oneSchedule{state: state}
		d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: &hanging{}, Schedules: schedules}, Config{})
		require.NoError(t, err)
		t.Cleanup(d.Close)
		for _, page := range []string{"/schedules", "/schedule?name=" + state.Name} {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+page, http.NoBody)
			r.RemoteAddr = "127.0.0.1:1234"
			d.ServeHTTP(w, r)
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			if state.Name == "late" {
				require.Contains(t, w.Body.String(), "due for 1m30s, and no beat has fired it", page)
			} else {
				require.NotContains(t, w.Body.String(), "no beat has fired it", page)
			}
		}
	}
}

// Timers are due by the clock of Redis, for any clock of the dashboard's host.
func TestTimersAreDueByClockOfRedis(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{-48 * time.Hour, 48 * time.Hour} {
		rdb, server := redistest.Embedded(t)
		now := time.Now().Add(wrong)
		server.SetTime(now)
		client, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
		require.NoError(t, err)
		for id, in := range map[string]time.Duration{"late": -time.Second, "soon": 30 * time.Minute} {
			_, err := wakebell.NewTopic[string]("mails").Schedule(t.Context(), client, "", wakebell.ID(id), wakebell.At(now.Add(in)))
			require.NoError(t, err)
		}
		d, err := New(conntest.WithoutRedis(t, connection.Config{}), Operators{Timers: client}, Config{Writable: true})
		require.NoError(t, err)
		t.Cleanup(d.Close)
		for _, page := range []string{"/timers?topic=mails", "/timers?topic=mails&within=1h"} {
			_, body := load(t, d, page)
			require.Equal(t, 1, strings.Count(body, ">due</span>"), page)
			require.Equal(t, 1, strings.Count(body, ">pending</span>"), page)
		}
		for page, want := range map[string]string{
			"/timer?topic=mails&id=late": ">due</span>", "/timer?topic=mails&id=soon": ">pending</span>",
			"/do/cancel?topic=mails&id=late": "1 timer, due,", "/do/cancel?topic=mails&id=soon": "1 timer, pending,",
			"/do/bulk-run?topic=mails&within=1h": "2 timers.", "/do/bulk-run?topic=mails&within=1m": "1 timer.",
		} {
			_, body := load(t, d, page)
			require.Contains(t, body, want, page)
		}
	}
}

// An open page loads anew when a schedule becomes overdue, and not because it stays so.
func TestScheduleThatStaysOverdueDoesNotChangeItsPage(t *testing.T) {
	t.Parallel()
	at := func(overdue time.Duration) string {
		text, err := markSchedules([]recurring.State{{Name: "late", Overdue: overdue}}, nil)
		require.NoError(t, err)
		return text
	}
	require.Equal(t, at(time.Second), at(time.Minute))
	require.NotEqual(t, at(time.Minute), at(2*time.Minute))
	require.Equal(t, at(2*time.Minute), at(time.Hour))
}
