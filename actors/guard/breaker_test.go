package guard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/wakebelltype"
)

// TestBreakerFollowsItsModel compares the breaker with a list of all outcomes. Outcomes of
// claims of an earlier generation arrive at any time, and change nothing.
func TestBreakerFollowsItsModel(t *testing.T) {
	t.Parallel()
	type outcome struct {
		part   int64
		failed bool
	}
	rapid.Check(t, func(t *rapid.T) {
		set := wakebelltype.Breaker{
			FailureRatio: rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "ratio"), Deliveries: rapid.IntRange(1, 6).Draw(t, "deliveries"),
			Window: time.Second, OpenFor: 700 * time.Millisecond,
		}
		base := time.Unix(0, 0)
		b, now, state, until, seen := New(set, base), base, Closed, base, []outcome(nil)
		generations := []uint64{0}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			if state == Open && !now.Before(until) {
				state = HalfOpen
			}
			require.Equal(t, state, b.State(now))
			require.Equal(t, state == Open, !b.Until().IsZero())
			if last := generations[len(generations)-1]; b.Generation() != last {
				generations = append(generations, b.Generation())
			}
			generation, failed := rapid.SampledFrom(generations).Draw(t, "generation"), rapid.Bool().Draw(t, "failed")
			counts := generation == b.Generation()
			change, changed := b.Record(generation, now, failed)
			before := state
			switch {
			case !counts || state == Open:
			case state == HalfOpen && failed:
				state, until, seen = Open, now.Add(set.OpenFor), nil
			case state == HalfOpen:
				state, seen = Closed, nil
			default:
				part := int64(now.Sub(base) / (100 * time.Millisecond))
				seen = append(seen, outcome{part, failed})
				total, bad := 0, 0
				for _, o := range seen {
					if part-o.part < 10 {
						total, bad = total+1, bad+count(o.failed)
					}
				}
				if failed && total >= set.Deliveries && float64(bad) >= set.FailureRatio*float64(total) {
					state, until, seen = Open, now.Add(set.OpenFor), nil
					require.Equal(t, Change{To: Open, Failed: bad, Delivered: total}, change)
				}
			}
			require.Equal(t, before != state, changed)
			require.Equal(t, state, b.State(now))
		}
	})
}
