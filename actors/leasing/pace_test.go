package leasing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// paceWith returns a pace with intervals from 1 s to 5 s whose random number is
// fixed.
func paceWith(random float64) *pace {
	return &pace{idleBackoff: idleBackoff{base: time.Second, limit: 5 * time.Second}, random: func() float64 { return random }}
}

// pollOnce simulates a poll at an instant that finds nothing.
func (p *pace) pollOnce(at time.Time, next time.Duration) {
	p.pollSent(at)
	p.emptyPoll(at)
	p.plan(at, p.hints, at, next, 0)
}

func TestPaceRamp(t *testing.T) {
	t.Parallel()
	for random, factor := range map[float64]float64{0: 0.5, 0.5: 1, 1: 1.5} {
		p, now := paceWith(random), start
		for _, seconds := range []float64{1, 2, 4, 5, 5} {
			p.pollOnce(now, -1)
			require.InDelta(t, seconds*factor, p.wakeAt().Sub(now).Seconds(), 1e-9)
			require.False(t, p.ready(p.wakeAt().Add(-1)))
			require.True(t, p.ready(p.wakeAt()))
			now = p.wakeAt()
		}
		p.pollSent(now)
		p.found()
		p.plan(now, p.hints, now, -1, 0)
		require.InDelta(t, factor, p.wakeAt().Sub(now).Seconds(), 1e-9, "the interval starts at its minimum again")
	}
}

func TestPaceWakesForWhatIsDue(t *testing.T) {
	t.Parallel()
	p := paceWith(0.5)
	p.pollOnce(start, 300*time.Millisecond)
	require.Equal(t, start.Add(300*time.Millisecond), p.wakeAt(), "earlier than the polling interval")
	p.pollOnce(start, time.Hour)
	require.Equal(t, start.Add(2*time.Second), p.wakeAt(), "regular polls find what peers schedule")
	p.plan(start, p.hints, start, 0, 0)
	require.True(t, p.ready(start), "more is due")
}

func TestPaceWakesEarlierByLead(t *testing.T) {
	t.Parallel()
	p := paceWith(0.5)
	p.plan(start, p.hints, start, 300*time.Millisecond, 100*time.Millisecond)
	require.Equal(t, start.Add(200*time.Millisecond), p.wakeAt())
	p.plan(start, p.hints, start, 300*time.Millisecond, 0)
	require.Equal(t, start.Add(300*time.Millisecond), p.wakeAt(), "each reply has a lead of its own")
}

func TestPaceHints(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) time.Time { return start.Add(d) }

	p := paceWith(0.5)
	p.pollOnce(start, -1)
	p.handleHint(in(100*time.Millisecond), 200*time.Millisecond, in(100*time.Millisecond))
	require.Equal(t, in(300*time.Millisecond), p.wakeAt())
	p.handleHint(in(100*time.Millisecond), time.Minute, in(100*time.Millisecond))
	require.Equal(t, in(300*time.Millisecond), p.wakeAt(), "the earliest hint counts")

	// A reply to a request that Redis executed before the hint was sent does not
	// cancel the hint. A reply to a later request does.
	p = paceWith(0.5)
	p.pollSent(start)
	before := p.hints
	p.handleHint(in(time.Millisecond), 100*time.Millisecond, in(time.Millisecond))
	p.plan(start, before, start, -1, 0)
	require.Equal(t, in(101*time.Millisecond), p.wakeAt())
	p.plan(start, before, in(2*time.Millisecond), -1, 0)
	require.Equal(t, start.Add(time.Second), p.wakeAt())

	// A hint whose clock is ahead causes one poll.
	p = paceWith(0.5)
	p.pollOnce(start, -1)
	p.handleHint(start, 0, in(time.Hour))
	require.True(t, p.ready(start))
	p.pollOnce(start, -1)
	require.False(t, p.ready(start), "the hint causes no second poll")
}

func TestPacePollWithin(t *testing.T) {
	t.Parallel()
	p := paceWith(0.5)
	p.pollSent(start)
	p.pollWithin(start, 50*time.Millisecond)
	p.emptyPoll(start)
	p.plan(start, p.hints, start, -1, 0)
	require.Equal(t, start.Add(50*time.Millisecond), p.wakeAt(), "the reply to the poll in flight is not enough")
	p.pollOnce(start.Add(50*time.Millisecond), -1)
	require.Equal(t, start.Add(2050*time.Millisecond), p.wakeAt())
}

func TestPaceSpread(t *testing.T) {
	t.Parallel()
	p, now := paceWith(1), start
	p.pollOnce(now, time.Millisecond)
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 50, 50} { // ms
		now = p.wakeAt()
		p.pollOnce(now, time.Second) // another node has claimed it
		require.Equal(t, want*time.Millisecond, p.contentionDelay)
	}
	for _, want := range []time.Duration{32, 8, 2, 0, 0} {
		p.pollSent(p.wakeAt())
		p.found()
		require.Equal(t, want*time.Millisecond, p.contentionDelay, "successful polls reduce the delay")
	}

	p = paceWith(1)
	p.pollOnce(start, time.Millisecond)
	p.pollSent(start.Add(time.Millisecond))
	p.emptyPoll(start.Add(time.Millisecond - 1))
	require.Zero(t, p.lostRaces, "a poll that is early by rounding has not lost a race")
	p = paceWith(1)
	p.pollOnce(start, -1)
	p.pollOnce(p.wakeAt(), -1)
	require.Zero(t, p.lostRaces, "a regular poll that finds nothing has not lost a race")
}
