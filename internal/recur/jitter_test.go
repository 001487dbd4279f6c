package recur

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A jitter longer than the distance of two instants loses no run while a beat runs, and
// keeps the order of a preview and of a backfill.
func TestJitterIsShorterThanGapToNextInstant(t *testing.T) {
	t.Parallel()
	for expr, jitter := range map[string]time.Duration{"* * * * * *": 10 * time.Second, "*/5 * * * *": 10 * time.Minute} {
		for _, misfire := range []Misfire{MisfireOnce, MisfireSkip, MisfireAll} {
			e := Entry{Definition: Definition{Name: "e", Task: "t", Enabled: true}, Meta: Meta{LastRunAt: noon}}
			e.Ours.Jitter, e.Ours.Misfire = jitter, misfire
			require.NoError(t, e.SetCron(expr))
			require.NoError(t, e.Resolve(nil))
			preview := e.Preview(noon, 100)
			require.Len(t, preview, 100)
			require.IsNonDecreasing(t, unix(preview))
			filled, _ := e.Between(preview[0], preview[99].Add(time.Microsecond), 1000)
			require.Equal(t, preview, filled, "a backfill has the instants of a beat")
			var fired []time.Time
			for now := noon; len(fired) < 100; {
				p := e.Plan(now)
				if p.Last.IsZero() {
					now = p.Next
					continue
				}
				require.Len(t, p.Due, 1, "%s %s", expr, misfire)
				fired = append(fired, p.Due...)
				e.Meta.LastRunAt = p.Last
			}
			require.Equal(t, preview, fired, "%s %s", expr, misfire)
		}
	}
}

func unix(all []time.Time) (us []int64) {
	for _, at := range all {
		us = append(us, at.UnixMicro())
	}
	return us
}
