package timers

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// refusals returns why an extension and an ack of a lease are refused.
func (f *fixture) refusals(t *testing.T, l exchange.Lease, granted time.Time) []exchange.RefusalReason {
	t.Helper()
	held := storetest.Held(l)
	held.Granted = granted
	r := f.Request(0, time.Minute)
	r.Settle = []exchange.Settlement{{Held: held, Verdict: exchange.Ack}}
	r.Extend = []exchange.Held{held}
	var why []exchange.RefusalReason
	for range 2 { // the second answer is a repeated one
		why = nil
		for i, refusal := range f.Run(t, r).Refused {
			require.Equal(t, i, refusal.Index)
			why = append(why, refusal.Reason)
		}
	}
	return why
}

// granted is when the leases of a reply were granted.
func granted(r *exchange.Reply) time.Time { return r.Now.Add(r.Remaining - time.Minute) }

var (
	told      = []exchange.RefusalReason{exchange.Cancelled, exchange.Cancelled}
	replaced  = []exchange.RefusalReason{exchange.Superseded, exchange.Superseded}
	cancelled = map[string]func(t *testing.T, f *fixture){
		"by id": func(t *testing.T, f *fixture) {
			found, err := f.Cancel(t.Context(), f.topic, "a")
			require.NoError(t, err)
			require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceRunning}, found)
		},
		"with an idempotency key": func(t *testing.T, f *fixture) {
			_, err := f.CancelKeyed(t.Context(), f.topic, NewKey("owner", "key", nil), "a")
			require.NoError(t, err)
		},
		"with the whole topic": func(t *testing.T, f *fixture) {
			_, err := f.CancelAll(t.Context(), f.topic)
			require.NoError(t, err)
		},
	}
)

// TestCancelledRunIsToldSoAfterItsIDIsScheduledAgain checks that the lease of a run that
// was cancelled is refused as cancelled even if its id has been used since.
func TestCancelledRunIsToldSoAfterItsIDIsScheduledAgain(t *testing.T) {
	t.Parallel()
	for name, cancel := range cancelled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.due(t, "a")
				first := f.Claim(t, 1)
				cancel(t, f)
				f.due(t, "a")
				require.Equal(t, told, f.refusals(t, first.Leases[0], granted(first)), "the next run waits")
				second := f.Claim(t, 1)
				require.Equal(t, told, f.refusals(t, first.Leases[0], granted(first)), "the next run has begun")
				require.Equal(t, 1, second.Leases[0].Claims)
				require.Empty(t, f.Settle(t, storetest.Verdict(exchange.Ack, second.Leases[0])).Refused)
				require.Positive(t, f.rdb.PTTL(t.Context(), f.key.Cancelled()).Val(), "it expires")
			})
		})
	}
}

// TestCancelledRunIsToldSoBesideNextOne checks an exchange with both leases on the id, as
// a node sends it that has the next run too.
func TestCancelledRunIsToldSoBesideNextOne(t *testing.T) {
	t.Parallel()
	for name, cancel := range cancelled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				f.due(t, "a")
				first := f.Claim(t, 1)
				cancel(t, f)
				f.due(t, "a")
				second := storetest.Held(f.Claim(t, 1).Leases[0])
				old := storetest.Held(first.Leases[0])
				old.Granted = granted(first)
				r := f.Request(0, time.Minute)
				r.Extend = []exchange.Held{second, old, second}
				require.Equal(t, []exchange.Refusal{{Index: 1, Reason: exchange.Cancelled}, {Index: 2, Reason: exchange.Lost}}, f.Run(t, r).Refused)
			})
		})
	}
}

// TestEachCancelledRunOfAnIDIsTold checks runs of an id that are cancelled one after the
// other, each with a lease that was extended.
func TestEachCancelledRunOfAnIDIsTold(t *testing.T) {
	t.Parallel()
	for name, cancel := range cancelled {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				var runs []exchange.Lease
				var since []time.Time
				for n := range 3 {
					f.due(t, "a")
					l := f.Claim(t, 1).Leases[0]
					extended := f.Extend(t, time.Minute, l)
					require.Empty(t, extended.Refused)
					l.Token = extended.Extended
					runs, since = append(runs, l), append(since, granted(extended))
					if name == "with an idempotency key" && n > 0 {
						_, err := f.CancelKeyed(t.Context(), f.topic, NewKey("owner", fmt.Sprint("key", n), nil), "a")
						require.NoError(t, err)
						continue
					}
					cancel(t, f)
				}
				f.due(t, "a")
				for i, l := range runs {
					require.Equal(t, told, f.refusals(t, l, since[i]), "run %d", i)
				}
			})
		})
	}
}

// TestReplacedRunIsNotToldThatItWasCancelled checks that other runs of the id, and other
// ways to replace a run, are refused as before.
func TestReplacedRunIsNotToldThatItWasCancelled(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, f *fixture){
		"scheduled again": func(t *testing.T, f *fixture) { f.due(t, "a") },
		"rescheduled": func(t *testing.T, f *fixture) {
			_, err := f.Reschedule(t.Context(), f.topic, "a", time.Time{}, time.Hour)
			require.NoError(t, err)
		},
		"imported": func(t *testing.T, f *fixture) {
			_, err := f.Put(t.Context(), f.topic, PutReplace, []Stored{{ID: "a", At: time.Now(), Due: time.Now()}})
			require.NoError(t, err)
		},
	}
	for name, replace := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				for _, cancel := range cancelled {
					f.due(t, "a")
					f.Claim(t, 1)
					cancel(t, f)
				}
				f.due(t, "a")
				run := f.Claim(t, 1)
				replace(t, f)
				require.Equal(t, replaced, f.refusals(t, run.Leases[0], granted(run)))
			})
		})
	}
}

// TestUserWithoutRightToMarksCanCancel checks that a client with the rights that an
// earlier version needed can cancel running timers.
func TestUserWithoutRightToMarksCanCancel(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFixture(t, server.Client(t))
	f.do(t, "ACL", "SETUSER", "plain", "on", ">secret", "resetchannels", "+@all",
		"~timers_timeline:*", "~timers_payloads:*", "~timers_leases:*", "~timers_hint:*")
	plain := newFixture(t, server.Client(t, func(o *redis.Options) { o.Username, o.Password = "plain", "secret" }))
	f.due(t, "a", "b")
	f.Claim(t, 2)
	found, err := plain.Cancel(t.Context(), f.topic, "a")
	require.NoError(t, err)
	require.Equal(t, []wakebelltype.Presence{wakebelltype.PresenceRunning}, found)
	n, err := plain.CancelAll(t.Context(), f.topic)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	_, err = f.Get(t.Context(), f.topic, "b")
	require.ErrorIs(t, err, wakebelltype.ErrNotFound)
}

// TestMarksOfCancelledRunsAreBounded checks that the marks of runs whose leases have
// expired are removed, and that each call removes a bounded number.
func TestMarksOfCancelledRunsAreBounded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		long := time.Now().Add(-time.Hour)
		const expired = 1000
		for i := range expired {
			f.do(t, "ZADD", f.key.Cancelled(), long.Unix()+int64(i), fmt.Sprint(long.Unix()+int64(i), " old"))
		}
		left := int64(expired)
		for i := 0; left > 1; i++ {
			require.Less(t, i, 10, "they are removed")
			f.due(t, "a")
			f.Claim(t, 1)
			_, err := f.Cancel(t.Context(), f.topic, "a")
			require.NoError(t, err)
			now := f.rdb.ZCount(t.Context(), f.key.Cancelled(), "-inf", fmt.Sprint(time.Now().Unix())).Val()
			require.Less(t, now, left)
			require.GreaterOrEqual(t, now, left-expired/2, "not all at once")
			if left = now; left == 0 {
				break
			}
		}
	})
}
