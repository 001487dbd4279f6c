package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// early claims what becomes due within d, too.
func (f *fixture) early(t *testing.T, d time.Duration, settle ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := f.Request(10, 2*d)
	r.Ahead, r.Settle = d, settle
	return f.Run(t, r)
}

func TestExchangeClaimsEarly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.due(t, "due")
		f.schedule(t, Entry{ID: "soon", In: 20 * time.Minute}, Entry{ID: "late", In: 2 * time.Hour})
		instant := f.get(t, "soon").Due
		reply := f.early(t, time.Hour)
		require.Equal(t, []string{"due", "soon"}, storetest.IDs(reply.Leases))
		require.Equal(t, instant, reply.Leases[1].Activation, "this tells the node when it is due")
		require.True(t, f.get(t, "soon").Running)
		require.InDelta(t, 2*time.Hour, reply.Next, float64(time.Minute))

		f.Settle(t, storetest.Verdict(exchange.Release, reply.Leases[1]))
		released := f.get(t, "soon")
		require.Equal(t, instant, released.Due, "a release before it was due gives it back its instant")
		require.Zero(t, released.Claims)
	})
}

// A timer that was delivered before keeps its first activation, so a reply could not say
// when it is due; and a lease that ends soon is still a lease.
func TestWhatIsNotClaimedEarly(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, f *fixture){
		"a retry": func(t *testing.T, f *fixture) {
			t.Helper()
			f.due(t, "a")
			nack := storetest.Verdict(exchange.Nack, f.Claim(t, 1).Leases[0])
			nack.Delay = 20 * time.Minute
			f.Settle(t, nack)
		},
		"a lease": func(t *testing.T, f *fixture) {
			t.Helper()
			f.due(t, "a")
			r := f.Request(1, 20*time.Minute)
			require.Len(t, f.Run(t, r).Leases, 1)
		},
		"a debounced timer": func(t *testing.T, f *fixture) {
			t.Helper()
			f.schedule(t, Entry{ID: "a", In: 20 * time.Minute, Policy: wakebelltype.PolicyDebounce})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				prepare(t, f)
				reply := f.early(t, time.Hour)
				require.Empty(t, reply.Leases)
				require.InDelta(t, 20*time.Minute, reply.Next, float64(time.Minute))
			})
		})
	}
}

// Flow control decides at the instant.
func TestFlowControlClaimsNothingEarly(t *testing.T) {
	t.Parallel()
	for name, flow := range map[string]exchange.Flow{
		"rate limit":  {RateLimit: 10, RatePer: time.Second},
		"in flight":   {MaxInFlight: 5},
		"per key":     {PerKey: 1},
		"key rate":    {KeyRateLimit: 10, KeyRatePer: time.Second},
		"key and all": {PerKey: 1, MaxInFlight: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.schedule(t, Entry{ID: "soon", In: 20 * time.Minute})
				r := f.Request(10, 2*time.Hour)
				r.Ahead, r.Flow = time.Hour, flow
				require.Empty(t, f.Run(t, r).Leases)
			})
		})
	}
}

// A holder does not begin a timer that was replaced, moved or cancelled after it was
// claimed early, if the hint comes in time.
func TestHoldersLearnOfReplacedTimers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, f *fixture)
		told   bool
	}{
		"replaced": {told: true, change: func(t *testing.T, f *fixture) {
			t.Helper()
			require.Equal(t, wakebelltype.OutcomeSuperseded, f.schedule(t, Entry{ID: "soon", In: time.Hour})[0].Outcome)
		}},
		"moved": {told: true, change: func(t *testing.T, f *fixture) {
			t.Helper()
			_, err := f.Reschedule(t.Context(), f.topic, "soon", time.Time{}, time.Hour)
			require.NoError(t, err)
		}},
		"cancelled": {told: true, change: func(t *testing.T, f *fixture) {
			t.Helper()
			_, err := f.Cancel(t.Context(), f.topic, "soon")
			require.NoError(t, err)
		}},
		"scheduled for later, if that is earlier": {change: func(t *testing.T, f *fixture) {
			t.Helper()
			f.schedule(t, Entry{ID: "soon", In: time.Hour, Policy: wakebelltype.PolicyEarliest})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.schedule(t, Entry{ID: "soon", In: 20 * time.Minute})
				require.Len(t, f.early(t, time.Hour).Leases, 1)
				hints := f.listen(t)
				c.change(t, f)
				require.NoError(t, f.rdb.Publish(t.Context(), f.key.Hint, "check 1 marker").Err())
				told := false
				for h := next(t, hints); h.ID != "marker"; h = next(t, hints) {
					told = told || h.Kind == exchange.HintCheck && h.ID == "soon"
				}
				require.Equal(t, c.told, told)
			})
		})
	}
}
