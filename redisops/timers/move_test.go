package timers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestRescheduleInEachState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]wakebelltype.Outcome{
		"absent": 0, "dead": 0, "pending": wakebelltype.OutcomeMoved, "running": wakebelltype.OutcomeSuperseded, "running at a peer": wakebelltype.OutcomeMoved, "retrying": wakebelltype.OutcomeMoved,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				states[state](t, f)
				before, _ := f.Get(t.Context(), f.topic, "a")
				out, err := f.Reschedule(t.Context(), f.topic, "a", time.Time{}, 2*time.Hour)
				if want == 0 {
					require.ErrorIs(t, err, wakebelltype.ErrNotFound)
					require.Zero(t, f.rdb.Exists(t.Context(), f.key.Timeline, f.key.Payloads).Val())
					return
				}
				require.NoError(t, err)
				require.Equal(t, wakebelltype.Scheduled{ID: "a", Due: out.Due, Outcome: want, Found: before.Due}, out)
				require.WithinDuration(t, f.now(t).Add(2*time.Hour), out.Due, time.Minute)
				require.Equal(t, Timer{ID: "a", Due: out.Due, Activation: out.Due, Payload: []byte("old")}, f.get(t, "a"))

				at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
				out, err = f.Reschedule(t.Context(), f.topic, "a", at, 0)
				require.NoError(t, err)
				require.Equal(t, at, out.Due)
				lease := f.Claim(t, 1).Leases[0]
				require.Equal(t, 1, lease.Claims)
				require.Equal(t, at, lease.Activation)
			})
		})
	}
}

func TestRescheduleSupersedesHolder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		hints := f.listen(t)
		lease := f.lease(t, time.Hour)
		next(t, hints) // the hint of the schedule
		f.Claim(t, 1)  // nothing is due: no hint is outstanding
		_, err := f.Reschedule(t.Context(), f.topic, "a", time.Time{}, time.Minute)
		require.NoError(t, err)
		require.Equal(t, time.Minute, next(t, hints).In.Round(time.Millisecond), "the head was lowered")
		require.Equal(t, exchange.Superseded, f.Settle(t, storetest.Verdict(exchange.Ack, lease)).Refused[0].Reason)
		require.Equal(t, "old", string(f.get(t, "a").Payload))
	})
}

func TestRescheduleTakesMarkOfOnceAlong(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		e := Entry{ID: "a", In: time.Minute, Once: time.Minute}
		f.schedule(t, e)
		_, err := f.Reschedule(t.Context(), f.topic, "a", time.Time{}, time.Hour)
		require.NoError(t, err)
		require.Greater(t, f.rdb.PTTL(t.Context(), f.key.Mark("a")).Val(), time.Hour)
		require.Equal(t, wakebelltype.OutcomeReplaced, f.schedule(t, e)[0].Outcome, "not delivered yet: the policy counts")
	})
}

func TestRunNowInEachState(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]wakebelltype.Presence{
		"absent": wakebelltype.PresenceAbsent, "dead": wakebelltype.PresenceAbsent, "pending": wakebelltype.PresencePending, "running": wakebelltype.PresenceRunning, "running at a peer": wakebelltype.PresencePending, "retrying": wakebelltype.PresencePending,
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				states[state](t, f)
				before, _ := f.Get(t.Context(), f.topic, "a")
				found, err := f.RunNow(t.Context(), f.topic, "a")
				require.Equal(t, want, found)
				if want == wakebelltype.PresenceAbsent {
					require.ErrorIs(t, err, wakebelltype.ErrNotFound)
					return
				}
				require.NoError(t, err)
				if want == wakebelltype.PresenceRunning {
					require.Equal(t, before, f.get(t, "a"))
					return
				}
				after := f.get(t, "a")
				require.WithinDuration(t, f.now(t), after.Due, time.Minute)
				require.Equal(t, before.Claims, after.Claims)
				require.Equal(t, before.Failures, after.Failures)
				if state == "retrying" {
					require.Equal(t, before.Activation, after.Activation)
				} else {
					require.Equal(t, after.Due, after.Activation)
				}
				again, err := f.RunNow(t.Context(), f.topic, "a")
				require.NoError(t, err)
				require.Equal(t, wakebelltype.PresencePending, again)
				require.Equal(t, after, f.get(t, "a"), "it is due already")
				require.Equal(t, before.Claims+1, f.Claim(t, 1).Leases[0].Claims)
			})
		})
	}
}

func TestRunNowSendsHint(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		f.schedule(t, Entry{ID: "a", In: time.Hour, Policy: wakebelltype.PolicyDebounce, MaxDelay: 2 * time.Hour})
		first := f.get(t, "a").FirstScheduled
		hints := f.listen(t)
		_, err := f.RunNow(t.Context(), f.topic, "a")
		require.NoError(t, err)
		h := next(t, hints)
		require.Equal(t, exchange.HintDue, h.Kind)
		require.Zero(t, h.In)
		require.Equal(t, first, f.get(t, "a").FirstScheduled, "a debounce is still bounded")
	})
}

func TestMovesAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	_, noTopic := f.Reschedule(t.Context(), "", "a", time.Time{}, 0)
	_, noID := f.Reschedule(t.Context(), f.topic, "", time.Time{}, 0)
	_, late := f.Reschedule(t.Context(), f.topic, "a", scripts.LastInstant.Add(time.Hour), 0)
	_, runTopic := f.RunNow(t.Context(), "", "a")
	_, runID := f.RunNow(t.Context(), f.topic, "\xff")
	for _, err := range []error{noTopic, noID, late, runTopic, runID} {
		require.ErrorIs(t, err, wakebelltype.ErrInvalid)
	}
	require.NoError(t, f.rdb.SAdd(t.Context(), f.key.Timeline, "x").Err())
	_, a := f.Reschedule(t.Context(), f.topic, "a", time.Time{}, 0)
	_, b := f.RunNow(t.Context(), f.topic, "a")
	require.ErrorIs(t, a, wakebelltype.ErrWrongType)
	require.ErrorIs(t, b, wakebelltype.ErrWrongType)
}
