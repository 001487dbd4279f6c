//go:build !race

package timers

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// released gives leases back.
func (f *fixture) released(t testing.TB, flow exchange.Flow, leases ...exchange.Lease) {
	t.Helper()
	r := f.Request(0, time.Hour)
	r.Flow = flow
	for _, l := range leases {
		r.Settle = append(r.Settle, storetest.Verdict(exchange.Release, l))
	}
	require.Empty(t, f.Run(t, r).Refused)
}

// ofKeyOrTopic are a limit of a topic and the same of a key: ten tokens, one a second.
var ofKeyOrTopic = map[string]exchange.Flow{
	"topic": {RateLimit: 1, RatePer: time.Second, RateBurst: 10},
	"key":   {KeyRateLimit: 1, KeyRatePer: time.Second, KeyRateBurst: 10},
}

// TestReleaseGivesBackOnlyWhatHasNotReturned checks leases that are released when some of
// their tokens have returned by themselves.
func TestReleaseGivesBackOnlyWhatHasNotReturned(t *testing.T) {
	for name, limit := range ofKeyOrTopic {
		for _, c := range []struct {
			name           string
			after          time.Duration
			second         int // leases that are taken before the release
			back, together int // that may be claimed then
		}{
			{"at once", 0, 0, 10, 10},
			{"half of them returned", 5 * time.Second, 0, 10, 10},
			{"half of them returned and are taken", 5 * time.Second, 5, 5, 10},
			{"all returned", 10 * time.Second, 0, 10, 10},
			{"all returned and are taken", 10 * time.Second, 10, 0, 10},
			{"all but one returned and are taken", 9 * time.Second, 9, 1, 10},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				inVirtualTime(t, func(t *testing.T, f *fixture) {
					ids := make([]string, 60)
					for i := range ids {
						ids[i] = fmt.Sprintf("%02d", i)
					}
					f.dueOf(t, "k", ids...)
					first := f.claimFor(t, time.Hour, 10, limit)
					require.Len(t, first.Leases, 10)
					<-time.After(c.after)
					require.Len(t, f.claimFor(t, time.Hour, c.second, limit).Leases, c.second)
					f.released(t, limit, first.Leases...)
					got := f.claimAll(t, limit)
					require.LessOrEqual(t, got+c.second, c.together, "a burst")
					if name == "topic" || c.second == 0 {
						require.Equal(t, c.back, got)
					}
				})
			})
		}
	}
}

// claimAll claims as long as timers are there, and returns how many there were.
func (f *fixture) claimAll(t testing.TB, flow exchange.Flow) (n int) {
	t.Helper()
	for {
		got := len(f.claimFor(t, time.Hour, 100, flow).Leases)
		if got == 0 {
			return n
		}
		n += got
	}
}

// TestRepeatedAnswerHasItsCharges checks that a release gives tokens back also if the
// answer of the claim was lost.
func TestRepeatedAnswerHasItsCharges(t *testing.T) {
	for name, limit := range ofKeyOrTopic {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				f.dueOf(t, "k", "a", "b", "c")
				r := f.Request(10, time.Hour)
				r.Flow = limit
				first, again := f.Run(t, r), f.Run(t, r)
				require.Equal(t, first.Leases, again.Leases)
				for _, l := range again.Leases {
					require.NotZero(t, l.Charge)
				}
			})
		})
	}
}

// TestReleasesOverAndOver checks that a node that claims and gives back for long neither
// uses tokens up nor makes some.
func TestReleasesOverAndOver(t *testing.T) {
	for name, limit := range ofKeyOrTopic {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, f *fixture) {
				f.dueOf(t, "k", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
				for range 200 {
					leases := f.claimFor(t, time.Hour, 10, limit).Leases
					require.Len(t, leases, 10)
					f.released(t, limit, leases...)
				}
				require.Equal(t, 10, f.claimAll(t, limit))
			})
		})
	}
}

// releaseStep is an exchange of the model of releases.
type releaseStep struct {
	wait  float64 // before it, in tokens
	want  int
	other bool // by the other node
	first int  // the lease of the node that ends
	count int  // and how many after it
	keep  bool // ack them instead of giving them back
}

// TestModelOfReleases checks that in no span of time more leases begin that are not given
// back than burst + rate · span.
func TestModelOfReleases(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n, burst := rapid.IntRange(1, 1000).Draw(rt, "limit"), rapid.IntRange(1, 20).Draw(rt, "burst")
		per := time.Duration(rapid.Int64Range(1e5, 600e6).Draw(rt, "per")) * time.Microsecond
		limit := exchange.Flow{RateLimit: n, RatePer: per, RateBurst: burst}
		if rapid.Bool().Draw(rt, "key") {
			limit = exchange.Flow{KeyRateLimit: n, KeyRatePer: per, KeyRateBurst: burst, PerKey: rapid.IntRange(0, 3).Draw(rt, "per key")}
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) releaseStep {
			return releaseStep{
				rapid.Float64Range(0, 6).Draw(rt, "wait"), rapid.IntRange(0, 25).Draw(rt, "want"), rapid.Bool().Draw(rt, "other"),
				rapid.IntRange(0, 9).Draw(rt, "first"), rapid.IntRange(0, 12).Draw(rt, "count"), rapid.IntRange(0, 2).Draw(rt, "keep") == 0,
			}
		}), 1, 40).Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			rdb, _ := redistest.Embedded(t)
			wrong = runReleases(t, newFixture(t, rdb), limit, per.Seconds()/float64(n), burst, steps)
		})
		require.Empty(rt, wrong)
	})
}

// runReleases returns the first difference between the store and the limit.
func runReleases(t *testing.T, f *fixture, limit exchange.Flow, step float64, burst int, steps []releaseStep) string {
	t.Helper()
	ids := make([]string, 25*len(steps))
	for i := range ids {
		ids[i] = fmt.Sprintf("%04d", i)
	}
	f.dueOf(t, "k", ids...)
	nodes := map[bool]*fixture{false: f, true: f.holder(SourceOptions{})}
	held := map[bool][]exchange.Lease{}
	type start struct {
		at time.Time
		id string
	}
	var starts []start
	for i, s := range steps {
		<-time.After(time.Duration(s.wait * step * float64(time.Second)).Truncate(time.Microsecond))
		r := nodes[s.other].Request(s.want, 10_000*time.Hour)
		r.Flow = limit
		from := min(s.first, len(held[s.other]))
		ended := slices.Clone(held[s.other][from:min(from+s.count, len(held[s.other]))])
		held[s.other] = slices.Delete(held[s.other], from, from+len(ended))
		for _, l := range ended {
			verdict := exchange.Ack
			if !s.keep {
				verdict = exchange.Release
				at := slices.IndexFunc(starts, func(s start) bool { return s.id == l.ID })
				starts = slices.Delete(starts, at, at+1)
			}
			r.Settle = append(r.Settle, storetest.Verdict(verdict, l))
		}
		for _, l := range nodes[s.other].Run(t, r).Leases {
			held[s.other] = append(held[s.other], l)
			starts = append(starts, start{time.Now(), l.ID})
		}
		slices.SortFunc(starts, func(a, b start) int { return a.at.Compare(b.at) })
		for k, first := range starts {
			allowed := float64(burst) + time.Since(first.at).Seconds()/step + 0.1 + 3e-6/step
			if got := len(starts) - k; float64(got) > allowed {
				return fmt.Sprintf("step %d: %d leases in %v, with a token in %v s and a burst of %d", i, got, time.Since(first.at), step, burst)
			}
		}
	}
	return ""
}
