package timers

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// states puts a timer "a" with the body "old" in each state. A pending timer is due
// in an hour.
var states = map[string]func(t *testing.T, f *fixture){
	"absent":  func(*testing.T, *fixture) {},
	"pending": func(t *testing.T, f *fixture) { f.schedule(t, Entry{ID: "a", Payload: []byte("old"), In: time.Hour}) },
	"running": func(t *testing.T, f *fixture) { f.lease(t, time.Hour) },
	"running at a peer": func(t *testing.T, f *fixture) {
		f.schedule(t, Entry{ID: "a", Payload: []byte("old")})
		f.peerClaim(t, "a", time.Hour)
	},
	"dead": func(t *testing.T, f *fixture) {
		f.Settle(t, storetest.Verdict(exchange.DeadLetter, f.lease(t, time.Hour)))
	},
	"retrying": func(t *testing.T, f *fixture) {
		nack := storetest.Verdict(exchange.Nack, f.lease(t, time.Hour))
		nack.Delay = time.Hour
		f.Settle(t, nack)
	},
}

// lease returns a lease on a new timer "a".
func (f *fixture) lease(t *testing.T, ttl time.Duration) exchange.Lease {
	t.Helper()
	f.schedule(t, Entry{ID: "a", Payload: []byte("old")})
	return f.Run(t, f.Request(1, ttl)).Leases[0]
}

// peerClaim executes the commands of a claim of faststream-redis-timers.
func (f *fixture) peerClaim(t *testing.T, id string, ttl time.Duration) {
	t.Helper()
	end := float64(f.now(t).Add(ttl).UnixMicro()) / 1e6
	require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z(end, id)).Err())
}

func (f *fixture) now(t testing.TB) time.Time {
	t.Helper()
	now, err := f.rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	return now
}

// TestPoliciesInEachState checks the outcome of each policy in each state, and
// which body remains.
func TestPoliciesInEachState(t *testing.T) {
	t.Parallel()
	const hours = 2 * time.Hour
	policies := map[string]struct {
		Entry
		want map[string]wakebelltype.Outcome
	}{
		"replace": {Entry{In: hours}, map[string]wakebelltype.Outcome{
			"absent": wakebelltype.OutcomeCreated, "pending": wakebelltype.OutcomeReplaced, "running": wakebelltype.OutcomeSuperseded,
			"running at a peer": wakebelltype.OutcomeReplaced, "dead": wakebelltype.OutcomeCreated, "retrying": wakebelltype.OutcomeReplaced,
		}},
		"keep": {Entry{In: time.Minute, Policy: wakebelltype.PolicyKeep}, map[string]wakebelltype.Outcome{
			"absent": wakebelltype.OutcomeCreated, "pending": wakebelltype.OutcomeKeptPending, "running": wakebelltype.OutcomeKeptRunning,
			"running at a peer": wakebelltype.OutcomeKeptPending, "dead": wakebelltype.OutcomeCreated, "retrying": wakebelltype.OutcomeKeptPending,
		}},
		"earliest, and it is": {Entry{In: time.Minute, Policy: wakebelltype.PolicyEarliest}, map[string]wakebelltype.Outcome{
			"absent": wakebelltype.OutcomeCreated, "pending": wakebelltype.OutcomeReplaced, "running": wakebelltype.OutcomeSuperseded,
			"running at a peer": wakebelltype.OutcomeReplaced, "dead": wakebelltype.OutcomeCreated, "retrying": wakebelltype.OutcomeReplaced,
		}},
		"earliest, and it is not": {Entry{In: hours, Policy: wakebelltype.PolicyEarliest}, map[string]wakebelltype.Outcome{
			"absent": wakebelltype.OutcomeCreated, "pending": wakebelltype.OutcomeKeptEarlier, "running": wakebelltype.OutcomeSuperseded,
			"running at a peer": wakebelltype.OutcomeKeptEarlier, "dead": wakebelltype.OutcomeCreated, "retrying": wakebelltype.OutcomeKeptEarlier,
		}},
		"debounce": {Entry{In: time.Minute, Policy: wakebelltype.PolicyDebounce, MaxDelay: time.Hour}, map[string]wakebelltype.Outcome{
			"absent": wakebelltype.OutcomeCreated, "pending": wakebelltype.OutcomeMoved, "running": wakebelltype.OutcomeSuperseded,
			"running at a peer": wakebelltype.OutcomeMoved, "dead": wakebelltype.OutcomeCreated, "retrying": wakebelltype.OutcomeMoved,
		}},
	}
	for name, policy := range policies {
		for state, want := range policy.want {
			t.Run(name+"/"+state, func(t *testing.T) {
				t.Parallel()
				onEach(t, func(t *testing.T, f *fixture) { f.tryPolicy(t, state, policy.Entry, want) })
			})
		}
	}
}

func (f *fixture) tryPolicy(t *testing.T, state string, e Entry, want wakebelltype.Outcome) {
	t.Helper()
	states[state](t, f)
	before, _ := f.Get(t.Context(), f.topic, "a")
	e.ID, e.Payload = "a", []byte("new")
	out := f.schedule(t, e)[0]
	require.Equal(t, want, out.Outcome)
	require.Equal(t, before.Due, out.Found)
	after := f.get(t, "a")
	switch want {
	case wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeKeptEarlier:
		require.Equal(t, before, after)
		require.Equal(t, before.Activation, out.Due)
	default:
		require.Equal(t, "new", string(after.Payload))
		require.Equal(t, out.Due, after.Due)
		require.Equal(t, out.Due, after.Activation)
		require.WithinDuration(t, f.now(t).Add(e.In), after.Due, time.Minute/2)
		require.Zero(t, after.Claims)
		require.False(t, after.Running)
		require.Equal(t, e.Policy == wakebelltype.PolicyDebounce, !after.FirstScheduled.IsZero())
	}
	dead := int64(0)
	if state == "dead" {
		dead = 1
	}
	stats, err := f.Stats(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Total)
	require.Zero(t, stats.Due)
	require.Equal(t, dead, stats.Dead)
}

// A batch may mix all policies.
func TestPoliciesInOneBatch(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		entries := []Entry{
			{ID: "a", In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 2 * time.Hour},
			{ID: "b", In: time.Hour, Policy: wakebelltype.PolicyEarliest, Once: time.Hour},
			{ID: "c", In: time.Hour, Policy: wakebelltype.PolicyKeep},
			{ID: "d:1", In: time.Hour, Once: time.Minute},
			{ID: "e", In: time.Hour, Policy: wakebelltype.PolicyDebounce},
			{ID: "f", In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: time.Hour, Once: time.Hour},
		}
		outcomes := func() (all []wakebelltype.Outcome) {
			for _, o := range f.schedule(t, entries...) {
				all = append(all, o.Outcome)
			}
			return all
		}
		require.Equal(t, []wakebelltype.Outcome{wakebelltype.OutcomeCreated, wakebelltype.OutcomeCreated, wakebelltype.OutcomeCreated, wakebelltype.OutcomeCreated, wakebelltype.OutcomeCreated, wakebelltype.OutcomeCreated}, outcomes())
		require.Equal(t, []wakebelltype.Outcome{wakebelltype.OutcomeMoved, wakebelltype.OutcomeKeptEarlier, wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeReplaced, wakebelltype.OutcomeMoved, wakebelltype.OutcomeMoved}, outcomes())
		require.EqualValues(t, 3, f.rdb.Exists(t.Context(), f.key.Mark("b"), f.key.Mark("d:1"), f.key.Mark("f")).Val())
		require.Equal(t, f.get(t, "f").FirstScheduled.Add(time.Hour), f.get(t, "f").Due, "bounded by its own max")
		require.Greater(t, f.get(t, "a").Due, f.get(t, "f").Due)
	})
}

// first changes the record of a debounced timer as if it had been scheduled that
// long ago.
func (f *fixture) first(t *testing.T, id string, ago time.Duration) time.Time {
	t.Helper()
	at := f.now(t).Add(-ago).Truncate(time.Second).UTC()
	score := strconv.FormatFloat(f.rdb.ZScore(t.Context(), f.key.Timeline, id).Val(), 'g', 17, 64)
	record := "w:0:0:" + score + ":" + score + ":~" + strconv.FormatInt(at.Unix(), 10)
	require.NoError(t, f.rdb.HSet(t.Context(), f.key.Leases, id, record).Err())
	return at
}

func TestDebounceNeverPassesItsMax(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		e := Entry{ID: "a", Payload: []byte("1"), In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 3 * time.Hour}
		f.schedule(t, e)
		first := f.first(t, "a", 150*time.Minute)
		e.Payload = []byte("2")
		out := f.schedule(t, e)[0]
		require.Equal(t, wakebelltype.OutcomeMoved, out.Outcome)
		require.Equal(t, first.Add(3*time.Hour), out.Due, "not in an hour but in half of one")
		require.Equal(t, first, f.get(t, "a").FirstScheduled)
		require.Equal(t, "2", string(f.get(t, "a").Payload))

		e.MaxDelay = 2 * time.Hour
		require.Equal(t, first.Add(2*time.Hour), f.schedule(t, e)[0].Due, "each call has its own max; it is due now")
		e.MaxDelay = 0
		require.WithinDuration(t, f.now(t).Add(time.Hour), f.schedule(t, e)[0].Due, time.Minute, "no max")
		require.Equal(t, first, f.get(t, "a").FirstScheduled)
	})
}

// TestWhenDebounceStartsAnew checks that the first schedule is stored until a
// delivery fails, and forgotten when anything but a debounce moves the timer.
func TestWhenDebounceStartsAnew(t *testing.T) {
	t.Parallel()
	e := Entry{ID: "a", In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 30 * time.Hour}
	expire := func(t *testing.T, f *fixture) exchange.Lease {
		require.NoError(t, f.rdb.ZAdd(t.Context(), f.key.Timeline, z(5, "a")).Err())
		f.first(t, "a", 29*time.Hour+30*time.Minute)
		return f.Claim(t, 1).Leases[0]
	}
	for name, c := range map[string]struct {
		between func(t *testing.T, f *fixture)
		anew    bool
	}{
		"nothing":  {func(*testing.T, *fixture) {}, false},
		"released": {func(t *testing.T, f *fixture) { f.Settle(t, storetest.Verdict(exchange.Release, expire(t, f))) }, false},
		"lease ended": {func(t *testing.T, f *fixture) {
			l := expire(t, f)
			require.Positive(t, f.Extend(t, time.Millisecond, l).Remaining)
			require.Eventually(t, func() bool { return !f.get(t, "a").Running }, 30*time.Second, time.Millisecond)
		}, false},
		"failed":    {func(t *testing.T, f *fixture) { f.Settle(t, storetest.Verdict(exchange.Nack, expire(t, f))) }, true},
		"running":   {func(t *testing.T, f *fixture) { expire(t, f) }, true},
		"cancelled": {func(t *testing.T, f *fixture) { _, _ = f.Cancel(t.Context(), f.topic, "a") }, true},
		"handled":   {func(t *testing.T, f *fixture) { f.Settle(t, storetest.Verdict(exchange.Ack, expire(t, f))) }, true},
		"replaced":  {func(t *testing.T, f *fixture) { f.schedule(t, Entry{ID: "a", In: time.Hour}) }, true},
		"peer":      {func(t *testing.T, f *fixture) { f.peerPublish(t, "a", 5e9) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.schedule(t, e)
				first := f.first(t, "a", 29*time.Hour+30*time.Minute)
				c.between(t, f)
				due := f.schedule(t, e)[0].Due
				if c.anew {
					require.WithinDuration(t, f.now(t).Add(time.Hour), due, time.Minute)
				} else {
					require.WithinDuration(t, first.Add(30*time.Hour), due, time.Minute)
				}
			})
		})
	}
}
