package timers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestOnceFiresOnce checks that a repeated schedule within the window changes nothing
// after the timer was delivered, in every state of the timer.
func TestOnceFiresOnce(t *testing.T) {
	t.Parallel()
	e := Entry{ID: "a", Payload: []byte("x"), Once: time.Hour}
	cases := map[string]struct {
		then func(t *testing.T, f *fixture, l exchange.Lease)
		want wakebelltype.Outcome
	}{
		"running": {func(*testing.T, *fixture, exchange.Lease) {}, wakebelltype.OutcomeKeptRunning},
		"handled": {func(t *testing.T, f *fixture, l exchange.Lease) { f.Settle(t, storetest.Verdict(exchange.Ack, l)) }, wakebelltype.OutcomeAlreadyDone},
		"dead": {func(t *testing.T, f *fixture, l exchange.Lease) {
			f.Settle(t, storetest.Verdict(exchange.DeadLetter, l))
		}, wakebelltype.OutcomeAlreadyDone},
		"retrying": {func(t *testing.T, f *fixture, l exchange.Lease) { f.Settle(t, storetest.Verdict(exchange.Nack, l)) }, wakebelltype.OutcomeKeptPending},
		"released": {func(t *testing.T, f *fixture, l exchange.Lease) { f.Settle(t, storetest.Verdict(exchange.Release, l)) }, wakebelltype.OutcomeReplaced},
		"cancelled": {func(t *testing.T, f *fixture, _ exchange.Lease) {
			_, err := f.Cancel(t.Context(), f.topic, "a")
			require.NoError(t, err)
		}, wakebelltype.OutcomeAlreadyDone},
		"claimed by a peer": {func(t *testing.T, f *fixture, l exchange.Lease) {
			f.Settle(t, storetest.Verdict(exchange.Release, l))
			f.peerClaim(t, "a", time.Hour)
		}, wakebelltype.OutcomeKeptPending},
		"replaced without Once": {func(t *testing.T, f *fixture, _ exchange.Lease) {
			f.schedule(t, Entry{ID: "a", In: time.Hour})
		}, wakebelltype.OutcomeKeptPending},
	}
	for name, c := range cases {
		for policy := wakebelltype.PolicyReplace; policy <= wakebelltype.PolicyDebounce; policy++ {
			if want := c.want; want != wakebelltype.OutcomeReplaced || policy == wakebelltype.PolicyReplace {
				t.Run(name+"/"+string(policyCodes[policy]), func(t *testing.T) {
					t.Parallel()
					onEach(t, func(t *testing.T, f *fixture) {
						due := f.schedule(t, e)[0].Due
						c.then(t, f, f.Claim(t, 1).Leases[0])
						before := f.dump(t)
						again := e
						again.Policy, again.Payload = policy, []byte("y")
						if policy == wakebelltype.PolicyDebounce {
							again.In = time.Minute
						}
						out := f.schedule(t, again)[0]
						require.Equal(t, want, out.Outcome)
						if want == wakebelltype.OutcomeAlreadyDone {
							require.Equal(t, due, out.Due)
							require.Zero(t, out.Found)
						}
						if want != wakebelltype.OutcomeReplaced {
							require.Equal(t, before, f.dump(t), "nothing was written")
						}
					})
				})
			}
		}
	}
}

// TestPolicyOfOnceAppliesUntilDelivery checks that the policy applies until the
// timer is delivered, and that a schedule without Once ignores the mark.
func TestPolicyOfOnceAppliesUntilDelivery(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		e := Entry{ID: "a", In: time.Hour, Once: time.Minute}
		require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, e)[0].Outcome)
		mark := f.key.Mark("a")
		require.InDelta(t, time.Hour+time.Minute, f.rdb.PTTL(t.Context(), mark).Val(), float64(time.Minute/2))
		e.In = 2 * time.Hour
		require.Equal(t, wakebelltype.OutcomeReplaced, f.schedule(t, e)[0].Outcome)
		require.InDelta(t, 2*time.Hour+time.Minute, f.rdb.PTTL(t.Context(), mark).Val(), float64(time.Minute/2), "the mark moves along")
		e.Policy = wakebelltype.PolicyKeep
		require.Equal(t, wakebelltype.OutcomeKeptPending, f.schedule(t, e)[0].Outcome)

		_, err := f.Cancel(t.Context(), f.topic, "a")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeAlreadyDone, f.schedule(t, e)[0].Outcome)
		require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, Entry{ID: "a", In: time.Hour})[0].Outcome, "without Once")
		require.NoError(t, f.rdb.Del(t.Context(), mark).Err())
		_, err = f.Cancel(t.Context(), f.topic, "a")
		require.NoError(t, err)
		require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, e)[0].Outcome, "after the window")
	})
}

// TestMarkOfOnceSaysWhetherTimerHasKey checks it through every way in which a mark is written:
// the mark of a timer with a key belongs in all shards.
func TestMarkOfOnceSaysWhetherTimerHasKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		keyed := func(id string) bool { return strings.HasSuffix(f.rdb.Get(t.Context(), f.key.Mark(id)).Val(), " k") }
		f.schedule(t, Entry{ID: "a", Key: "k", In: time.Hour, Once: time.Minute}, Entry{ID: "b", In: time.Hour, Once: time.Minute})
		require.True(t, keyed("a"))
		require.False(t, keyed("b"))
		f.schedule(t, Entry{ID: "a", In: 2 * time.Hour, Once: time.Minute})
		require.True(t, keyed("a"), "it keeps its key")
		for _, id := range []string{"a", "b"} {
			_, err := f.Reschedule(t.Context(), f.topic, id, time.Now().Add(3*time.Hour), 0)
			require.NoError(t, err)
			require.InDelta(t, 3*time.Hour+time.Minute, f.rdb.PTTL(t.Context(), f.key.Mark(id)).Val(), float64(time.Minute/2), "the mark moves along")
		}
		require.True(t, keyed("a"))
		require.False(t, keyed("b"))
	})
}

func TestWindowOfOnceEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	e := Entry{ID: "a", Once: 50 * time.Millisecond}
	require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, e)[0].Outcome)
	f.Settle(t, storetest.Verdict(exchange.Ack, f.Claim(t, 1).Leases[0]))
	require.Eventually(t, func() bool { return f.schedule(t, e)[0].Outcome == wakebelltype.OutcomeCreated }, 30*time.Second, 5*time.Millisecond)
	_, err := f.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)

	far := Entry{ID: "far", At: scripts.LastInstant, Once: MaxOnce}
	require.Equal(t, wakebelltype.OutcomeCreated, f.schedule(t, far)[0].Outcome)
	require.Positive(t, f.rdb.PTTL(t.Context(), f.key.Mark("far")).Val())
}

// TestMarksOfTopicsDoNotCollide checks that ids with colons of one topic do not
// collide with those of another.
func TestMarksOfTopicsDoNotCollide(t *testing.T) {
	t.Parallel()
	k, err := NewKeyspace(wakebelltype.Keys{})
	require.NoError(t, err)
	require.NotEqual(t, k.Of("a").Mark("b:c"), k.Of("a:b").Mark("c"))
	require.NotEqual(t, k.Of("a").Mark("b%3Ac"), k.Of("a").Mark("b:c"))
	require.Equal(t, "timers_once:invoices:inv-42", k.Of("invoices").Mark("inv-42"))
}

func TestPoliciesAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	for want, e := range map[string]Entry{
		"once":              {Once: -1},
		"1ms to 100 years":  {Once: MaxOnce + 1},
		"delay above 0":     {Policy: wakebelltype.PolicyDebounce},
		"not an instant":    {Policy: wakebelltype.PolicyDebounce, At: time.Unix(1, 0), In: 1},
		"is less than":      {Policy: wakebelltype.PolicyDebounce, In: 2, MaxDelay: 1},
		"only Debounce has": {MaxDelay: 1},
		"policy: 4":         {Policy: wakebelltype.PolicyDebounce + 1},
	} {
		e.ID = "a"
		_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "good"}, e)
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "entry 1")
	}
}

func TestMarkOfWrongType(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		require.NoError(t, f.rdb.SAdd(t.Context(), f.key.Mark("b"), "x").Err())
		_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "a", Once: time.Hour}, Entry{ID: "b", Once: time.Hour})
		require.ErrorIs(t, err, wakebelltype.ErrWrongType)
		require.ErrorContains(t, err, f.key.Mark("b"))
		require.Zero(t, f.rdb.Exists(t.Context(), f.key.Timeline, f.key.Payloads, f.key.Mark("a")).Val())
	})
}

// TestForgetKeepsWhatOnceRemembers checks that an id does not fire again within its window
// because its topic was forgotten.
func TestForgetKeepsWhatOnceRemembers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		e := Entry{ID: "a", Payload: []byte("x"), Once: time.Hour}
		f.schedule(t, e)
		f.Settle(t, storetest.Verdict(exchange.Ack, f.Claim(t, 1).Leases[0]))
		require.NoError(t, f.Forget(t.Context(), f.topic))
		require.Equal(t, wakebelltype.OutcomeAlreadyDone, f.schedule(t, e)[0].Outcome)
	})
}
