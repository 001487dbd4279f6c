package poller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// paceWith has a ramp from 1 s to 5 s and always draws random.
func paceWith(random float64) *pace {
	return &pace{base: time.Second, limit: 5 * time.Second, random: func() float64 { return random }}
}

// look sends a look at an instant and takes its answer: nothing found.
func (p *pace) pollOnce(at time.Time, next time.Duration) {
	p.pollSent(at)
	p.emptyPoll(at)
	p.plan(at, p.hints, at, next)
}

func TestPaceRamp(t *testing.T) {
	t.Parallel()
	for random, factor := range map[float64]float64{0: 0.5, 0.5: 1, 1: 1.5} {
		p, now := paceWith(random), epoch
		for _, seconds := range []float64{1, 2, 4, 5, 5} {
			p.pollOnce(now, -1)
			require.InDelta(t, seconds*factor, p.wakeAt().Sub(now).Seconds(), 1e-9)
			require.False(t, p.ready(p.wakeAt().Add(-1)))
			require.True(t, p.ready(p.wakeAt()))
			now = p.wakeAt()
		}
		p.pollSent(now)
		p.found()
		p.plan(now, p.hints, now, -1)
		require.InDelta(t, factor, p.wakeAt().Sub(now).Seconds(), 1e-9, "the ramp starts over")
	}
}

func TestPaceWakesForWhatIsDue(t *testing.T) {
	t.Parallel()
	p := paceWith(0.5)
	p.pollOnce(epoch, 300*time.Millisecond)
	require.Equal(t, epoch.Add(300*time.Millisecond), p.wakeAt(), "before the ramp's turn")
	p.pollOnce(epoch, time.Hour)
	require.Equal(t, epoch.Add(2*time.Second), p.wakeAt(), "what peers schedule is found by the ramp")
	p.plan(epoch, p.hints, epoch, 0)
	require.True(t, p.ready(epoch), "more is due")
}

func TestPaceHints(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) time.Time { return epoch.Add(d) }

	p := paceWith(0.5)
	p.pollOnce(epoch, -1)
	p.handleHint(in(100*time.Millisecond), 200*time.Millisecond, in(100*time.Millisecond))
	require.Equal(t, in(300*time.Millisecond), p.wakeAt())
	p.handleHint(in(100*time.Millisecond), time.Minute, in(100*time.Millisecond))
	require.Equal(t, in(300*time.Millisecond), p.wakeAt(), "the earliest counts")

	// An answer to a request from before the hint, run before it, knows
	// nothing of it; one that was run after it does.
	p = paceWith(0.5)
	p.pollSent(epoch)
	before := p.hints
	p.handleHint(in(time.Millisecond), 100*time.Millisecond, in(time.Millisecond))
	p.plan(epoch, before, epoch, -1)
	require.Equal(t, in(101*time.Millisecond), p.wakeAt())
	p.plan(epoch, before, in(2*time.Millisecond), -1)
	require.Equal(t, epoch.Add(time.Second), p.wakeAt())

	// A hint from a clock that was ahead is served once.
	p = paceWith(0.5)
	p.pollOnce(epoch, -1)
	p.handleHint(epoch, 0, in(time.Hour))
	require.True(t, p.ready(epoch))
	p.pollOnce(epoch, -1)
	require.False(t, p.ready(epoch), "or it would look again and again")
}

func TestPaceAskedForALook(t *testing.T) {
	t.Parallel()
	p := paceWith(0.5)
	p.pollSent(epoch)
	p.pollWithin(epoch, 50*time.Millisecond)
	p.emptyPoll(epoch)
	p.plan(epoch, p.hints, epoch, -1)
	require.Equal(t, epoch.Add(50*time.Millisecond), p.wakeAt(), "an answer under way does not do")
	p.pollOnce(epoch.Add(50*time.Millisecond), -1)
	require.Equal(t, epoch.Add(2050*time.Millisecond), p.wakeAt())
}

func TestPaceSpread(t *testing.T) {
	t.Parallel()
	p, now := paceWith(1), epoch
	p.pollOnce(now, time.Millisecond)
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 50, 50} { // ms
		now = p.wakeAt()
		p.pollOnce(now, time.Second) // somebody else had it
		require.Equal(t, want*time.Millisecond, p.contentionDelay)
	}
	for _, want := range []time.Duration{32, 8, 2, 0, 0} {
		p.pollSent(p.wakeAt())
		p.found()
		require.Equal(t, want*time.Millisecond, p.contentionDelay, "back to the front with what is found")
	}

	p = paceWith(1)
	p.pollOnce(epoch, time.Millisecond)
	p.pollSent(epoch.Add(time.Millisecond))
	p.emptyPoll(epoch.Add(time.Millisecond - 1))
	require.Zero(t, p.lostRaces, "woken early by rounding: nothing is lost")
	p = paceWith(1)
	p.pollOnce(epoch, -1)
	p.pollOnce(p.wakeAt(), -1)
	require.Zero(t, p.lostRaces, "the ramp's own looks expect nothing")
}
