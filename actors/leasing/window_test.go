package leasing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWidthForRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]time.Duration{
		0: 0, 300: 0, 500: 0,
		750:  maxWindow / 2,
		1000: maxWindow, 2000: maxWindow, 10_000: maxWindow,
		20_000: 3200 * time.Microsecond, 150_000: 426 * time.Microsecond,
	} {
		require.InDelta(t, want, widthFor(rate), float64(time.Microsecond), "%v/s", rate)
	}
}

func TestWindowIsTenthOfLease(t *testing.T) {
	t.Parallel()
	w := window{fixed: time.Second}
	require.Equal(t, time.Second, w.span(30*time.Second))
	require.Equal(t, 10*time.Millisecond, w.span(100*time.Millisecond))
	w = window{fixed: AutomaticWindow, width: maxWindow}
	require.Equal(t, time.Millisecond, w.span(10*time.Millisecond))
}

// load is a model of a poller with a window: each exchange takes roundTrip, and is
// sent when a timer is due or the handlers of the exchange before have finished, but
// not before the window has ended.
type load struct {
	window    window
	exchanges int
	late      []time.Duration
}

const roundTrip = 300 * time.Microsecond

func (l *load) run(due []time.Duration) {
	start := time.Unix(0, 0)
	opened, free := -time.Hour, time.Duration(0) // of the window; when the last reply arrives
	settle := false
	for len(due) > 0 || settle {
		at := nextAt(due, settle, free)
		at = max(at, free, opened+l.window.span(30*time.Second))
		claimed, _ := slices.BinarySearch(due, at+1)
		for _, d := range due[:claimed] {
			l.late = append(l.late, at-d)
		}
		due, settle = due[claimed:], claimed > 0
		if opened = -time.Hour; claimed > 0 {
			opened = at
		}
		free = at + roundTrip
		l.exchanges++
		l.window.answered(start.Add(free), claimed)
	}
	slices.Sort(l.late)
}

// nextAt is when there is something to send: a settlement at once.
func nextAt(due []time.Duration, settle bool, now time.Duration) time.Duration {
	if settle {
		return now
	}
	return due[0]
}

func (l *load) quantile(q float64) time.Duration { return l.late[int(q*float64(len(l.late)-1))] }

func TestWindowAtEveryLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate int
		most float64 // exchanges a timer
	}{{10, 2}, {300, 2}, {1000, 0.3}, {2000, 0.15}, {10_000, 0.05}, {50_000, 0.03}} {
		for _, even := range []bool{true, false} {
			random := rand.New(rand.NewPCG(1, uint64(c.rate)))
			l := load{window: window{fixed: AutomaticWindow, since: time.Unix(0, 0)}}
			var due []time.Duration
			var at float64
			for range 5 * c.rate {
				gap := 1e9 / float64(c.rate)
				if !even {
					gap *= random.ExpFloat64()
				}
				at += gap
				due = append(due, time.Duration(at))
			}
			l.run(due)
			require.LessOrEqual(t, float64(l.exchanges)/float64(len(due)), c.most, "exchanges a timer at %d/s", c.rate)
			require.LessOrEqual(t, l.quantile(0.5), 3*time.Millisecond, "p50 at %d/s", c.rate)
			require.LessOrEqual(t, l.quantile(0.99), 10*time.Millisecond, "p99 at %d/s", c.rate)
			if c.rate <= 300 {
				require.LessOrEqual(t, l.quantile(1), 2*roundTrip, "no window at %d/s", c.rate)
			}
		}
	}
}

// TestWindowOfSingleTimersCloses: each timer is scheduled when the one before was
// handled, so waiting only delays them.
func TestWindowOfSingleTimersCloses(t *testing.T) {
	t.Parallel()
	l := load{window: window{fixed: AutomaticWindow, since: time.Unix(0, 0)}}
	now, waited, timers := time.Unix(0, 0), time.Duration(0), 0
	for now.Before(time.Unix(60, 0)) {
		wait := l.window.span(30 * time.Second)
		waited += wait
		timers++
		now = now.Add(wait + 2*roundTrip)
		l.window.answered(now, 1)
	}
	require.Less(t, waited, 6*time.Second, "a tenth of the time")
	require.Greater(t, timers, 80_000)
}

func TestWindowStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := window{fixed: AutomaticWindow}, time.Unix(0, 0)
		for range rapid.IntRange(1, 200).Draw(t, "exchanges") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, "after")))
			w.answered(now, rapid.IntRange(0, maxClaim).Draw(t, "timers"))
			span := w.span(30 * time.Second)
			require.GreaterOrEqual(t, span, time.Duration(0))
			require.LessOrEqual(t, span, maxWindow)
		}
	})
}

func TestFixedWindowDoesNotFollowLoad(t *testing.T) {
	t.Parallel()
	for _, fixed := range []time.Duration{0, 20 * time.Millisecond} {
		w, now := window{fixed: fixed}, time.Unix(0, 0)
		for range 1000 {
			now = now.Add(time.Millisecond)
			w.answered(now, 10)
			require.Equal(t, fixed, w.span(30*time.Second))
		}
	}
}

func TestWindowEndsInWholeSteps(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	rapid.Check(t, func(t *rapid.T) {
		end := now.Add(time.Duration(rapid.Int64Range(-int64(time.Second), int64(time.Second)).Draw(t, "end")))
		at := inSteps(now, end)
		require.False(t, at.Before(end), "not before its end")
		require.Less(t, at.Sub(later(end, now)), timerStep+timerMargin, "nor long after")
		require.Equal(t, timerMargin, at.Sub(now)%timerStep, "when the runtime wakes up")
	})
}

// TestWindowsFollowOneAnother: that each ends in whole steps must not make the exchanges
// of a busy topic rarer than the window says.
func TestWindowsFollowOneAnother(t *testing.T) {
	t.Parallel()
	c := &Core{Settings: &Settings{LeaseTTL: 30 * time.Second}}
	start := time.Unix(0, 0)
	now := start
	c.window = window{fixed: AutomaticWindow, width: maxWindow, since: start}
	s := &Stream{}
	for range 1000 {
		c.openWindow(s, &Flight{Sent: now}, 10, now.Add(roundTrip))
		now = inSteps(now.Add(roundTrip), c.windowEnd(s))
	}
	require.InDelta(t, 1000*maxWindow, now.Sub(start), float64(10*maxWindow))
}
