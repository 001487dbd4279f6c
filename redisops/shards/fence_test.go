package shards

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// stopped returns a function that returns a store of a process that was stopped right after
// it had read the map, when stopped was called.
func (f *fixture) stopped(t testing.TB) func() *Store {
	t.Helper()
	s := f.other(t)
	require.NoError(t, s.layouts.Renew(t.Context()))
	read := *s.layouts.current.Load()
	return func() *Store {
		read.read = time.Now()
		s.layouts.current.Store(&read)
		return s
	}
}

// reshardAll gives a topic another number of shards, to the end.
func (f *fixture) reshardAll(t testing.TB, n int) sharding.Layout {
	t.Helper()
	f.moveAll(t, f.startMoving(t, n))
	l, err := f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil })
	require.NoError(t, err)
	return l
}

// writes are the calls that write to a topic with the timers t000 to t009, of which t004 is
// given.
var writes = map[string]func(t *testing.T, s *Store, topic string){
	"schedule": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		done, err := s.Schedule(t.Context(), topic, timers.Entry{ID: "t004", Payload: []byte("new"), At: hour}, timers.Entry{ID: "new", At: hour})
		require.NoError(t, err)
		require.Equal(t, []wakebelltype.Outcome{wakebelltype.OutcomeReplaced, wakebelltype.OutcomeCreated}, []wakebelltype.Outcome{done[0].Outcome, done[1].Outcome})
	},
	"schedule with an idempotency key": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		b := timers.NewBatch("", 1)
		require.NoError(t, b.Add(topic, &timers.Entry{ID: "new", At: hour}))
		for range 2 {
			done, err := s.Write(t.Context(), timers.NewKey("owner", "k", nil), b)
			require.NoError(t, err)
			require.Equal(t, wakebelltype.OutcomeCreated, done[0].Outcome)
		}
	},
	"schedule of many": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		all := numbered(800)
		done, err := s.Schedule(t.Context(), topic, all...)
		require.NoError(t, err)
		for i := range done {
			require.Equal(t, all[i].ID, done[i].ID)
			require.Equal(t, i < 10, done[i].Outcome != wakebelltype.OutcomeCreated, done[i].ID)
		}
	},
	"cancel": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		found, err := s.Cancel(t.Context(), topic, "t004", "absent", "t005")
		require.NoError(t, err)
		require.Equal(t, []wakebelltype.Presence{2, 1, 2}, found)
	},
	"cancel with an idempotency key": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		found, err := s.CancelKeyed(t.Context(), topic, timers.NewKey("owner", "k", nil), "t004", "absent", "t005")
		require.NoError(t, err)
		require.Equal(t, []wakebelltype.Presence{2, 1, 2}, found)
	},
	"cancel all": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		n, err := s.CancelAll(t.Context(), topic)
		require.NoError(t, err)
		require.EqualValues(t, 10, n)
	},
	"reschedule": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		_, err := s.Reschedule(t.Context(), topic, "t004", hour.Add(time.Hour), 0)
		require.NoError(t, err)
	},
	"run now": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		_, err := s.RunNow(t.Context(), topic, "t004")
		require.NoError(t, err)
	},
	"redrive": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		done, err := s.Redrive(t.Context(), topic, wakebelltype.RedriveOptions{})
		require.NoError(t, err)
		require.Equal(t, wakebelltype.RedriveResult{Redriven: 1}, done)
	},
	"put dead letters": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		var letters []timers.DeadLetter
		for i := range 20 {
			letters = append(letters, timers.DeadLetter{ID: fmt.Sprint(i), Payload: []byte("x"), At: hour, Activation: hour})
		}
		require.NoError(t, s.PutDead(t.Context(), topic, letters))
		dead, err := s.LastDead(t.Context(), topic, 100)
		require.NoError(t, err)
		require.Len(t, dead, 21)
	},
	"pause": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		_, err := s.Pause(t.Context(), topic, "ada", "why")
		require.NoError(t, err)
		names, err := s.all(t.Context(), topic)
		require.NoError(t, err)
		for _, name := range names {
			c, err := s.timers.Control(t.Context(), name)
			require.NoError(t, err)
			require.True(t, c.Paused, name)
		}
	},
	"put": func(t *testing.T, s *Store, topic string) {
		t.Helper()
		existed, err := s.Put(t.Context(), topic, timers.PutKeep, []timers.Stored{{ID: "t004", At: hour, Due: hour}, {ID: "new", At: hour, Due: hour}})
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, existed)
	},
}

// TestCallThatWasStoppedIsRoutedAgain stops a process between reading the map and writing,
// while the topic gets other shards.
func TestCallThatWasStoppedIsRoutedAgain(t *testing.T) {
	t.Parallel()
	for _, counts := range [][2]int{{1, 4}, {4, 1}, {4, 3}} {
		for name, write := range writes {
			t.Run(fmt.Sprintf("%s %d to %d", name, counts[0], counts[1]), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, counts[0])
				f.schedule(t, timers.Entry{ID: "dead"})
				f.deadLetterAll(t)
				f.schedule(t, numbered(10)...)
				stopped := f.stopped(t)
				l := f.reshardAll(t, counts[1])
				write(t, stopped(), f.topic)
				require.Empty(t, f.in(t, sharding.Names(f.topic, counts[0])), "nodes do not poll it for ever")
				ids := f.in(t, l.Names(f.topic))
				require.Equal(t, slices.Compact(slices.Clone(ids)), ids)
				for _, id := range ids {
					_, err := f.Get(t.Context(), f.topic, id)
					require.NoError(t, err)
				}
			})
		}
	}
}

// TestBatchIsDividedAgainByNextLayout stops a client while timers move, before it pins.
func TestBatchIsDividedAgainByNextLayout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 4)
	f.schedule(t, numbered(10)...)
	l := f.startMoving(t, 2)
	stopped := f.stopped(t)
	f.moveAll(t, l)
	_, err := f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil })
	require.NoError(t, err)
	s, b := stopped(), timers.NewBatch("", 1)
	require.NoError(t, b.Add(f.topic, &timers.Entry{ID: "t004", At: hour}))
	_, err = s.Write(t.Context(), nil, b)
	require.NoError(t, err)
	require.Len(t, f.in(t, l.Names(f.topic)), 10)
}

// TestCallThatOutlivesItsPinsIsRoutedAgain stops a process between pinning a timer and
// writing it, until the timer has moved.
func TestCallThatOutlivesItsPinsIsRoutedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, numbered(10)...)
	l := f.startMoving(t, 4)
	b := timers.NewBatch("", 1)
	require.NoError(t, b.Add(f.topic, &timers.Entry{ID: "t004", Payload: []byte("new"), At: hour}))
	divided, _, err := f.divided(t.Context(), nil, b, nil)
	require.NoError(t, err)
	f.dropPins(t)
	f.moveAll(t, l)
	done, err := f.timers.Write(t.Context(), nil, divided)
	require.ErrorIs(t, err, scripts.ErrStaleLayout)
	require.Empty(t, done[0].ID)
	require.Empty(t, f.in(t, []string{f.topic}), "it is not in two places")
	done, err = f.Write(t.Context(), nil, b)
	require.NoError(t, err)
	require.Equal(t, wakebelltype.OutcomeReplaced, done[0].Outcome)
}

// TestReshardingThatWasStoppedTakesNothing goes on with the steps of a resharding after the
// topic has got other shards.
func TestReshardingThatWasStoppedTakesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
	f.schedule(t, numbered(20)...)
	stopped := f.startMoving(t, 4)
	process := f.toShards(f.topic, stopped)
	took, err := process.take(t.Context(), f.topic)
	require.NoError(t, err)
	f.moveAll(t, stopped)
	settle := func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil }
	_, err = f.layouts.change(t.Context(), f.topic, settle)
	require.NoError(t, err)
	l := f.reshardAll(t, 1)
	f.schedule(t, timers.Entry{ID: "later", At: hour})
	require.Len(t, f.in(t, l.Names(f.topic)), 21)
	for _, name := range sharding.Names(f.topic, 4) { // a day later
		require.NoError(t, f.timers.RDB.Del(t.Context(), f.timers.Keys().Of(name).Arrived()).Err())
	}

	_, err = process.take(t.Context(), f.topic)
	require.ErrorIs(t, err, scripts.ErrStaleLayout)
	require.ErrorIs(t, process.deliver(t.Context(), f.topic, took.token, took.batch), scripts.ErrStaleLayout)
	_, _, err = process.step(t.Context(), []string{f.topic})
	require.ErrorIs(t, err, scripts.ErrStaleLayout)
	require.Len(t, f.in(t, l.Names(f.topic)), 21)
	require.Empty(t, f.in(t, sharding.Names(f.topic, 4)))
	var p Progress
	_, err = f.ReshardStep(t.Context(), f.topic, 1, &p)
	require.NoError(t, err)
}

// TestLayoutThatFailoverHasLostIsRestored gives the map the values of before a resharding.
func TestLayoutThatFailoverHasLostIsRestored(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"settled", "moving", "announced", "all"} {
		for _, finder := range []string{"a client", "a node", "a resharding"} {
			t.Run(lost+" "+finder, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
				f.schedule(t, numbered(20)...)
				saved := map[string]map[string]string{"all": {}}
				save := func(name string) {
					saved[name] = f.timers.RDB.HGetAll(t.Context(), f.layouts.key()).Val()
				}
				_, err := f.advance(t.Context(), f.topic, 4)
				require.NoError(t, err)
				save("announced")
				l := f.startMoving(t, 4)
				save("moving")
				f.moveAll(t, l)
				_, err = f.layouts.change(t.Context(), f.topic, func(l sharding.Layout) (sharding.Layout, error) { return l.Settled(time.Now()), nil })
				require.NoError(t, err)
				save("settled")

				require.NoError(t, f.timers.RDB.Del(t.Context(), f.layouts.key()).Err())
				if len(saved[lost]) > 0 {
					require.NoError(t, f.timers.RDB.HSet(t.Context(), f.layouts.key(), saved[lost]).Err())
				}
				s := f.other(t)
				switch finder {
				case "a client":
					_, err = s.Schedule(t.Context(), f.topic, timers.Entry{ID: "t004", At: hour}, timers.Entry{ID: "new", At: hour})
				case "a node":
					var names []string
					names, err = s.Polled(t.Context(), f.topic)
					require.Subset(t, names, sharding.Names(f.topic, 4))
				default:
					for _, err = range s.Reshard(t.Context(), f.topic, 2) {
						break
					}
				}
				require.NoError(t, err)
				now, err := s.Layout(t.Context(), f.topic)
				require.NoError(t, err)
				require.Equal(t, 4, now.Count())
				require.Equal(t, finder == "a client", slices.Contains(f.in(t, sharding.Names(f.topic, 4)), "new"))
				require.Empty(t, f.in(t, []string{f.topic}))
			})
		}
	}
}

// TestLostVersionOfMapDoesNotComeBack has a client that has read a layout which is lost,
// with its records, in a failover, and another change after that.
func TestLostVersionOfMapDoesNotComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		s, client := newStore(t, rdb, wakebelltype.Keys{}), newStore(t, rdb, wakebelltype.Keys{})
		_, err := s.Divide(t.Context(), "other", 2)
		require.NoError(t, err)
		before := rdb.HGetAll(t.Context(), "timers_shards").Val()
		_, err = s.Divide(t.Context(), "orders", 4)
		require.NoError(t, err)
		names, err := client.all(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, names, 5)

		require.NoError(t, rdb.Del(t.Context(), "timers_shards").Err())
		require.NoError(t, rdb.HSet(t.Context(), "timers_shards", before).Err())
		for _, name := range names {
			require.NoError(t, rdb.Del(t.Context(), s.timers.Keys().Of(name).Layout()).Err())
		}
		_, err = newStore(t, rdb, wakebelltype.Keys{}).Divide(t.Context(), "orders", 8)
		require.NoError(t, err)
		<-time.After(Fresh)
		names, err = client.all(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, names, 9)
		_, err = client.Schedule(t.Context(), "orders", timers.Entry{ID: "a", In: time.Hour})
		require.NoError(t, err)
		require.Zero(t, rdb.Exists(t.Context(), "timers_timeline:orders").Val())
	})
}

// TestRedriveWhileTimersMoveMakesOneTimer redrives dead letters whose ids live in another
// shard, in both directions.
func TestRedriveWhileTimersMoveMakesOneTimer(t *testing.T) {
	t.Parallel()
	for _, overwrite := range []bool{false, true} {
		t.Run(fmt.Sprintf("overwrite %v", overwrite), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1)
			for _, id := range []string{"moved", "stays", "gone", "later"} {
				f.schedule(t, timers.Entry{ID: id})
			}
			f.deadLetterAll(t)
			f.schedule(t, timers.Entry{ID: "stays"})
			_, _ = f.claim(t)
			l := f.startMoving(t, 4)
			f.schedule(t, timers.Entry{ID: "moved", At: hour})
			require.Equal(t, []string{"moved"}, f.in(t, l.Names(f.topic)))
			for i := 0; ; i++ {
				done, err := f.Redrive(t.Context(), f.topic, wakebelltype.RedriveOptions{In: time.Hour, Rate: 10_000, Overwrite: overwrite})
				require.NoError(t, err)
				ids := f.in(t, f.names(t))
				require.Equal(t, []string{"gone", "later", "moved", "stays"}, ids, "one timer of each id")
				switch {
				case overwrite && i == 0:
					require.Equal(t, wakebelltype.RedriveResult{Redriven: 2, Overwritten: 2}, done)
				case overwrite:
					require.Zero(t, done)
				case i == 0:
					require.Equal(t, wakebelltype.RedriveResult{Redriven: 2, SkippedLive: 2}, done)
				default:
					require.Equal(t, wakebelltype.RedriveResult{SkippedLive: 2}, done)
				}
				if i == 1 {
					break
				}
				f.moveAll(t, l) // with the dead letters that are left
			}
		})
	}
}

// TestPlainTopicCostsCommandMore counts the commands of a schedule that a fence may refuse.
func TestPlainTopicCostsCommandMore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	s := newStore(t, rdb, wakebelltype.Keys{})
	calls := func(write func() error) int64 {
		t.Helper()
		require.NoError(t, write())
		require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
		require.NoError(t, write())
		text, err := rdb.Info(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		var n int64
		for _, found := range regexp.MustCompile(`calls=(\d+)`).FindAllStringSubmatch(text, -1) {
			count, err := strconv.ParseInt(found[1], 10, 64)
			require.NoError(t, err)
			n += count
		}
		return n
	}
	entry := timers.Entry{ID: "a", Payload: []byte("x"), In: time.Hour}
	without := calls(func() error { _, err := s.timers.Schedule(t.Context(), "orders", entry); return err })
	with := calls(func() error { _, err := s.Schedule(t.Context(), "orders", entry); return err })
	require.LessOrEqual(t, with, without+1)
}
