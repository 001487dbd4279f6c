package timers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quickly makes the Redis of withSlowRedis answer after 300 µs, with an error: windows
// depend on the calls, not on what they do.
func quickly(s *slowly) { s.takes, s.fail = 300*time.Microsecond, errors.New("not run") }

// callsOf has callers schedule one timer after the other for a time of the given length,
// and pause after each. It returns how many they scheduled, and the longest call.
func callsOf(t *testing.T, f *fixture, callers int, pause, length time.Duration) (n int, longest time.Duration) {
	t.Helper()
	type result struct {
		n       int
		longest time.Duration
	}
	results, end := make(chan result, callers), time.Now().Add(length)
	for caller := range callers {
		go func() {
			var r result
			wait(pause * time.Duration(caller) / time.Duration(callers))
			for time.Now().Before(end) {
				began := time.Now()
				_, _ = f.Schedule(t.Context(), f.topic, Entry{ID: fmt.Sprint(caller), In: time.Hour})
				r.longest = max(r.longest, time.Since(began))
				r.n++
				wait(pause)
			}
			results <- r
		}()
	}
	for range callers {
		r := <-results
		n, longest = n+r.n, max(longest, r.longest)
	}
	return n, longest
}

// wait waits for d. It makes no timer for 0: the race detector crashes when several
// goroutines of a bubble receive from timers that have expired (golang/go#78156).
func wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// arrivals has a call come every so often, whether the earlier ones have returned or not.
func arrivals(t *testing.T, f *fixture, every, length time.Duration) {
	t.Helper()
	n := int(length / every)
	done := make(chan struct{}, n)
	for i := range n {
		go func() {
			_, _ = f.Schedule(t.Context(), f.topic, Entry{ID: fmt.Sprint(i), In: time.Hour})
			done <- struct{}{}
		}()
		<-time.After(every)
	}
	for range n {
		<-done
	}
}

func TestManyCallsOpenWindow(t *testing.T) {
	for _, c := range []struct {
		name        string
		every       time.Duration
		window      time.Duration
		least, most float64 // calls of Redis a schedule
	}{
		{"2,000 a second", 500 * time.Microsecond, 0, 0.04, 0.06},
		{"1,200 a second", time.Second / 1200, 0, 0.06, 0.12},
		{"500 a second", 2 * time.Millisecond, 0, 1, 1},
		{"switched off", 500 * time.Microsecond, -1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
				quickly(s)
				f.ScheduleWindow = c.window
				arrivals(t, f, c.every, time.Second) // the window opens
				before := s.calls.Load()
				arrivals(t, f, c.every, 2*time.Second)
				made := float64(s.calls.Load()-before) / float64(2*time.Second/c.every)
				require.GreaterOrEqual(t, made, c.least)
				require.LessOrEqual(t, made, c.most)
			})
		})
	}
}

func TestWindowDoesNotSlowCallersThatWait(t *testing.T) {
	for _, c := range []struct {
		name    string
		callers int
		pause   time.Duration
		least   float64 // schedules, as a part of those without a window
	}{
		{"one after the other", 1, 0, 0.97},
		{"three callers", 3, 0, 0.97},
		{"fifty that work between two calls", 50, 10 * time.Millisecond, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
				quickly(s)
				const length = 8 * time.Second
				f.ScheduleWindow = -1
				without, _ := callsOf(t, f, c.callers, c.pause, length)
				f.ScheduleWindow = 0
				with, longest := callsOf(t, f, c.callers, c.pause, length)
				require.Greater(t, float64(with), c.least*float64(without))
				require.Greater(t, longest, windowWidth, "it was tried")
				require.Less(t, longest, 2*windowWidth)
			})
		})
	}
}

func TestTopicsWhoseCallsAreCountedAreBounded(t *testing.T) {
	t.Parallel()
	g := &sender{topics: map[string]*line{}}
	for i := range 3 * maxCounted {
		g.add(fmt.Sprint(i))
	}
	require.Len(t, g.topics, maxCounted)
	for _, l := range g.topics {
		l.queued = true
	}
	g.add("new")
	require.Len(t, g.topics, maxCounted+1, "those with schedules that wait stay")
}
