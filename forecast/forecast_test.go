package forecast_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/forecast"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// stored is a Redis that has timers at some instants, by topic, and counts what is asked.
type stored struct {
	timers  map[string][]time.Time
	best    map[string]int64 // handled in a minute
	limit   wakebelltype.Settings
	counted int
}

func (s *stored) Topics(context.Context, bool, wakebelltype.Page) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name := range s.timers {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (s *stored) Overview(_ context.Context, topics ...string) (all []wakebelltype.Overview, err error) {
	for _, name := range topics {
		o := wakebelltype.Overview{Topic: name, Stats: wakebelltype.Stats{Total: int64(len(s.timers[name]))}}
		o.Control.Settings = s.limit
		if name == "broken" {
			o.Err = errors.New("a key of another type")
		}
		all = append(all, o)
	}
	return all, nil
}

func (s *stored) CountDue(_ context.Context, topic string, from time.Time, step time.Duration, n int) ([]int64, error) {
	if n < 1 || n > 1500 {
		return nil, fmt.Errorf("%w: %d steps", wakebelltype.ErrInvalid, n)
	}
	counts := make([]int64, n)
	s.counted += n
	for _, at := range s.timers[topic] {
		if i := int(at.Sub(from) / step); !at.Before(from) && i < n {
			counts[i]++
		}
	}
	return counts, nil
}

func (s *stored) Throughput(_ context.Context, topic string, since time.Duration) (t wakebelltype.Throughput, err error) {
	t = wakebelltype.Throughput{Step: time.Minute, Points: []wakebelltype.ThroughputCounts{{At: time.Now()}}}
	if n := s.best[topic]; n > 0 && since > time.Minute {
		t.Points = append([]wakebelltype.ThroughputCounts{{Handled: n}, {Handled: 1}}, t.Points...)
	}
	return t, nil
}

// TestForecastCountsEverything compares a forecast with what counts timer by timer.
func TestForecastCountsEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now().Truncate(time.Minute)
		span := rapid.SampledFrom([]time.Duration{time.Minute, 7 * time.Minute, 25 * time.Hour, 90 * 24 * time.Hour}).Draw(t, "for")
		o := forecast.Options{For: span, Bars: rapid.IntRange(1, 200).Draw(t, "bars")}
		s := &stored{timers: map[string][]time.Time{}}
		minutes := rapid.SliceOfN(rapid.IntRange(-2, int(span/time.Minute)), 0, 30)
		for _, name := range []string{"a", "b"} {
			for _, minute := range minutes.Draw(t, name) {
				for range rapid.IntRange(1, 4).Draw(t, "timers") {
					s.timers[name] = append(s.timers[name], now.Add(time.Duration(minute)*time.Minute+time.Second))
				}
			}
		}
		f, err := forecast.Of(context.Background(), s, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		end, wanted := f.From.Add(time.Duration(len(f.Bars))*f.Step), f.From.Add(span)
		if len(f.Bars) > o.Bars || end.Before(wanted) || end.Sub(wanted) >= f.Step {
			t.Fatalf("%d bars of %v for %v", len(f.Bars), f.Step, span)
		}
		var overdue, total, highest int64
		perMinute := map[time.Time]int64{}
		for _, all := range s.timers {
			for _, at := range all {
				switch {
				case at.Before(f.From):
					overdue++
				case at.Before(end):
					total++
					perMinute[at.Truncate(time.Minute).UTC()]++
				}
			}
		}
		for _, n := range perMinute {
			highest = max(highest, n)
		}
		var sum int64
		for _, topic := range f.Topics {
			sum += topic.Total
		}
		if f.Overdue != overdue || f.Total != total || sum != total {
			t.Fatalf("overdue %d, total %d and %d, want %d and %d", f.Overdue, f.Total, sum, overdue, total)
		}
		if p := f.Peak; p.Exact && (p.Count != highest || perMinute[p.At] != highest) || !p.Exact && span < 30*24*time.Hour {
			t.Fatalf("peak %+v, want %d", p, highest)
		}
	})
}

// TestForecastIsBounded forecasts a year of more topics than minutes may be counted for.
func TestForecastIsBounded(t *testing.T) {
	t.Parallel()
	s := &stored{timers: map[string][]time.Time{"broken": nil}}
	for i := range 1200 {
		name := fmt.Sprint(i)
		for day := range 1 + i%2 {
			s.timers[name] = append(s.timers[name], time.Now().Add(time.Duration(1+day)*24*time.Hour))
		}
	}
	f, err := forecast.Of(t.Context(), s, nil, forecast.Options{For: 365 * 24 * time.Hour})
	require.NoError(t, err)
	require.Len(t, f.Topics, 100)
	require.Equal(t, 1100, f.More)
	require.Equal(t, []string{"broken: a key of another type"}, f.Unread)
	require.False(t, f.Peak.Exact)
	require.LessOrEqual(t, s.counted, 1000*49+100_000)
	require.EqualValues(t, 600*2+400, f.Total)
}

// TestForecastWarns has a minute with more than was handled in one, or than a limit allows.
func TestForecastWarns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		midnight := time.Now().Truncate(time.Minute).Add(time.Hour).UTC()
		burst := make([]time.Time, 1000)
		for i := range burst {
			burst[i] = midnight
		}
		of := func(s *stored) []forecast.Warning {
			t.Helper()
			s.timers = map[string][]time.Time{"a": burst}
			f, err := forecast.Of(t.Context(), s, nil, forecast.Options{})
			require.NoError(t, err)
			return f.Topics[0].Warnings
		}
		require.Empty(t, of(&stored{}), "nothing is known")
		require.Empty(t, of(&stored{best: map[string]int64{"a": 1000}}))
		require.Empty(t, of(&stored{best: map[string]int64{"a": 600}}), "less than a minute")
		require.Equal(t, []forecast.Warning{
			{Cause: forecast.CauseNodes, From: midnight, Until: midnight.Add(9 * time.Minute), Late: 9 * time.Minute},
		}, of(&stored{best: map[string]int64{"a": 100}}))
		limited := of(&stored{limit: wakebelltype.Settings{RateLimit: 1, RatePer: time.Hour}})
		require.Len(t, limited, 1)
		require.Equal(t, forecast.CauseRate, limited[0].Cause)
		require.InDelta(t, 1000, limited[0].Late.Hours(), 2)
		require.True(t, limited[0].Until.After(midnight.Add(900*time.Hour)), "after the window")
	})
}

// TestForecastWarnsOfBacklog has more timers that are overdue than the topic handles in the span.
func TestForecastWarnsOfBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Truncate(time.Minute).UTC()
		late := make([]time.Time, 3000)
		for i := range late {
			late[i] = now.Add(-time.Hour)
		}
		for cause, s := range map[forecast.Cause]*stored{
			forecast.CauseNodes: {best: map[string]int64{"a": 2}},
			forecast.CauseRate:  {limit: wakebelltype.Settings{RateLimit: 2, RatePer: time.Minute}},
		} {
			s.timers = map[string][]time.Time{"a": late, "b": late[:2]}
			f, err := forecast.Of(t.Context(), s, nil, forecast.Options{})
			require.NoError(t, err)
			require.EqualValues(t, 3000, f.Topics[0].Overdue)
			require.Equal(t, []forecast.Warning{
				{Cause: cause, From: now, Until: now.Add(1500 * time.Minute), Late: 1499 * time.Minute},
			}, f.Topics[0].Warnings)
			require.Empty(t, f.Topics[1].Warnings)
		}
	})
}

// runs are recurring schedules.
type runs struct {
	recurring.Operator
	states []recurring.State
	every  time.Duration
}

func (r runs) List(context.Context, wakebelltype.Page) iter.Seq2[recurring.State, error] {
	return func(yield func(recurring.State, error) bool) {
		for _, s := range r.states {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (r runs) Instants(_ context.Context, _ string, from, to time.Time) (all []time.Time, err error) {
	for at := from; at.Before(to); at = at.Add(r.every) {
		if all = append(all, at); len(all) > recurring.MaxBackfill {
			return nil, wakebelltype.ErrInvalid
		}
	}
	return all, nil
}

func (r runs) Preview(_ context.Context, _ string, n int) (all []time.Time, err error) {
	now := time.Now()
	for i := range n {
		all = append(all, now.Add(time.Duration(i)*r.every))
	}
	return all, nil
}

// TestForecastProjectsSchedules has a schedule of each kind, also one with more runs than are
// listed.
func TestForecastProjectsSchedules(t *testing.T) {
	t.Parallel()
	next := time.Now()
	states := []recurring.State{
		{Name: "a", Topic: "a", Next: next},
		{Name: "b", Topic: "b", Next: next},
		{Name: "paused", Topic: "a", Next: next, Paused: true},
		{Name: "celery", Topic: "a", Next: next, Celery: true},
		{Name: "ended", Topic: "a"},
		{Name: "later", Topic: "a", Next: next.Add(48 * time.Hour)},
		{Name: "broken", Fault: "no rule"},
	}
	for every, want := range map[time.Duration]float64{time.Hour: 24, time.Minute: 1440, time.Second: 86_400} {
		s := &stored{timers: map[string][]time.Time{}}
		f, err := forecast.Of(t.Context(), s, runs{states: states, every: every}, forecast.Options{})
		require.NoError(t, err)
		require.Empty(t, f.Unread)
		require.InDelta(t, 2*want, f.Total, want/1000+3, every)
		require.InDelta(t, 2*math.Max(1, want/1440), f.Peak.Count, 2, every)
		f, err = forecast.Of(t.Context(), s, runs{states: states, every: every}, forecast.Options{Topics: []string{"a"}})
		require.NoError(t, err)
		require.InDelta(t, want, f.Total, want/100+3, every)
	}
}

// TestForecastRefusesOptions checks the bounds.
func TestForecastRefusesOptions(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]forecast.Options{
		"For": {For: time.Second}, "For: ": {For: 367 * 24 * time.Hour}, "Bars": {Bars: 201}, "Bars: ": {Bars: -1},
	} {
		_, err := forecast.Of(t.Context(), &stored{}, nil, o)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		require.ErrorContains(t, err, field)
	}
}
