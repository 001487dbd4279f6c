package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/wakebelltype"
)

func TestClockStepsAreNoticed(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	// answer is one exchange: the instants when it was sent and received by the
	// local clock, and how far the source's clock is ahead.
	type answer struct{ sent, received, ahead time.Duration }
	cases := map[string]struct {
		answers []answer
		want    wakebelltype.ClockSteps // without Last
		off     time.Duration
	}{
		"another hour":          {[]answer{{0, 0, hour}, {1, 1, hour}}, wakebelltype.ClockSteps{}, 0},
		"forward":               {[]answer{{0, 10, 0}, {1000, 1010, hour}}, wakebelltype.ClockSteps{Count: 1, By: hour}, 30 * time.Millisecond},
		"back":                  {[]answer{{0, 10, 0}, {1000, 1010, -hour}}, wakebelltype.ClockSteps{Count: 1, By: -hour}, 30 * time.Millisecond},
		"forth and back":        {[]answer{{0, 1, 0}, {10, 11, 5 * time.Second}, {20, 21, 0}}, wakebelltype.ClockSteps{Count: 2, By: -5 * time.Second}, 10 * time.Millisecond},
		"less than a second":    {[]answer{{0, 1, 0}, {10, 11, 900 * time.Millisecond}}, wakebelltype.ClockSteps{}, 0},
		"a slow answer":         {[]answer{{0, 1, 0}, {10, 5000, 0}, {5010, 5011, 0}}, wakebelltype.ClockSteps{}, 0},
		"behind a slow answer":  {[]answer{{0, 1, 0}, {10, 5000, 0}, {5010, 5011, 2 * time.Second}}, wakebelltype.ClockSteps{Count: 1, By: 2 * time.Second}, 30 * time.Millisecond},
		"a late, older answer":  {[]answer{{0, 1, 0}, {100, 200, 0}, {50, 300, 0}}, wakebelltype.ClockSteps{}, 0},
		"drift in an idle hour": {[]answer{{0, 1, 0}, {3600_000, 3600_001, 2 * time.Second}}, wakebelltype.ClockSteps{}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, began := &ClockWatch{}, time.Now()
			var last time.Duration
			for _, a := range c.answers {
				sent, received := began.Add(a.sent*time.Millisecond), began.Add(a.received*time.Millisecond)
				if step := w.Observe(sent, received, sent.Add(received.Sub(sent)/2+a.ahead)); step != 0 {
					last = step
					require.Equal(t, received, w.Noticed().Last)
				}
			}
			require.Equal(t, c.want.Count, w.Noticed().Count)
			require.Equal(t, last, w.Noticed().By)
			require.InDelta(t, c.want.By, last, float64(c.off))
		})
	}
	require.Zero(t, (&ClockWatch{}).Observe(time.Now(), time.Now(), time.Time{}), "a source without a clock")
}
