package dashboard

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
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
