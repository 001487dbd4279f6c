package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// slowly is a client hook, in virtual time, that makes each script take 10 ms, or
// less if its context ends.
type slowly struct {
	calls, ended atomic.Int64
	takes        time.Duration // instead of 10 ms
	fail         error
}

const scriptTakes = 10 * time.Millisecond

func (s *slowly) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowly) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := s.pass(ctx, cmds...); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

func (s *slowly) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := s.pass(ctx, cmd); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (s *slowly) pass(ctx context.Context, cmds ...redis.Cmder) (err error) {
	if !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "evalsha" }) {
		return nil
	}
	s.calls.Add(1)
	select {
	case <-time.After(cmp.Or(s.takes, scriptTakes)):
		err = s.fail
	case <-ctx.Done():
		s.ended.Add(1)
		err = ctx.Err()
	}
	if err != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
	return err
}

// withSlowRedis runs a test on a slow Redis that has the script loaded.
func withSlowRedis(t *testing.T, test func(t *testing.T, f *fixture, s *slowly)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		f, s := newFixture(t, rdb), &slowly{}
		_, err := f.Schedule(t.Context(), f.topic, Entry{ID: "first", In: time.Hour})
		require.NoError(t, err)
		rdb.AddHook(s)
		test(t, f, s)
	})
}

type scheduling struct {
	done wakebelltype.Scheduled
	err  error
}

// schedules calls Schedule for each id at the same time.
func (f *fixture) schedules(ctx context.Context, ids ...string) <-chan scheduling {
	answers := make(chan scheduling, len(ids))
	for _, id := range ids {
		go func() {
			done, err := f.Schedule(ctx, f.topic, Entry{ID: id, Payload: []byte(id), In: time.Hour})
			if err != nil {
				answers <- scheduling{err: err}
				return
			}
			answers <- scheduling{done: done[0]}
		}()
	}
	return answers
}

func idsUpTo(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("id ", i)
	}
	return ids
}

func TestConcurrentSchedulesAreBatched(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		began := time.Now()
		answers, seen := f.schedules(t.Context(), idsUpTo(50)...), map[string]bool{}
		for range 50 {
			a := <-answers
			require.NoError(t, a.err)
			require.Equal(t, wakebelltype.OutcomeCreated, a.done.Outcome)
			seen[a.done.ID] = true
		}
		require.Len(t, seen, 50, "each has its own answer")
		require.EqualValues(t, maxInFlight+1, s.calls.Load(), "calls")
		require.Equal(t, 2*scriptTakes, time.Since(began))
		for id := range seen {
			got, err := f.Get(t.Context(), f.topic, id)
			require.NoError(t, err)
			require.Equal(t, id, string(got.Payload))
		}
	})
}

func TestScheduleWindowGathersCalls(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		const window = 50 * time.Millisecond
		f.ScheduleWindow = window
		began := time.Now()
		var answers []<-chan scheduling
		for i := range 8 { // one by one: four in each window, or five
			answers = append(answers, f.schedules(t.Context(), fmt.Sprint(i)))
			<-time.After(window / 4)
		}
		for _, each := range answers {
			require.NoError(t, (<-each).err)
		}
		require.EqualValues(t, 2, s.calls.Load(), "calls")
		require.Less(t, time.Since(began), 3*window)
	})
}

func TestLargeScheduleOpensNoWindow(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, _ *slowly) {
		f.ScheduleWindow = time.Second
		entries := make([]Entry, windowEntries)
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprint(i), In: time.Hour}
		}
		began := time.Now()
		_, err := f.Schedule(t.Context(), f.topic, entries...)
		require.NoError(t, err)
		require.Equal(t, scriptTakes, time.Since(began))
	})
}

func TestEndedCallerLeavesWindow(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		f.ScheduleWindow = time.Second
		ctx, cancel := context.WithCancel(t.Context())
		answer := f.schedules(ctx, "given up")
		synctest.Wait()
		cancel()
		require.ErrorIs(t, (<-answer).err, context.Canceled)
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Zero(t, s.calls.Load(), "nothing is left to send")
		require.Zero(t, f.sender.servers[""].inFlight)
		require.Empty(t, f.sender.topics[f.topic].waiting)
	})
}

func TestSchedulesOfOneIDAreNotBatchedTogether(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		ids := make([]string, 12)
		for i := range ids {
			ids[i] = "same"
		}
		answers, outcomes := f.schedules(t.Context(), ids...), map[wakebelltype.Outcome]int{}
		for range ids {
			a := <-answers
			require.NoError(t, a.err)
			outcomes[a.done.Outcome]++
		}
		require.Equal(t, map[wakebelltype.Outcome]int{wakebelltype.OutcomeCreated: 1, wakebelltype.OutcomeReplaced: len(ids) - 1}, outcomes)
		require.EqualValues(t, len(ids), s.calls.Load())
	})
}

func TestLargeScheduleDoesNotDelayOthers(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		first := f.schedules(t.Context(), idsUpTo(maxInFlight)...)
		synctest.Wait()
		large := make([]Entry, 3)
		for i := range large {
			large[i] = Entry{ID: fmt.Sprint("large ", i), Payload: make([]byte, layout.BatchBytes/2), In: time.Hour}
		}
		done := make(chan error, len(large))
		for _, e := range large {
			go func() {
				_, err := f.Schedule(t.Context(), f.topic, e)
				done <- err
			}()
		}
		for range large {
			require.NoError(t, <-done)
		}
		for range maxInFlight {
			require.NoError(t, (<-first).err)
		}
		require.EqualValues(t, maxInFlight+2, s.calls.Load(), "two in a call, and one")
	})
}

func TestScheduleWhoseContextEndsWhileWaiting(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		first := f.schedules(t.Context(), idsUpTo(maxInFlight)...)
		synctest.Wait()
		ctx, giveUp := context.WithCancel(t.Context())
		waits, patient := f.schedules(ctx, "waits"), f.schedules(t.Context(), "patient")
		synctest.Wait()
		giveUp()
		require.ErrorIs(t, (<-waits).err, context.Canceled)
		require.NoError(t, (<-patient).err)
		for range maxInFlight {
			require.NoError(t, (<-first).err)
		}
		_, err := f.Get(t.Context(), f.topic, "waits")
		require.ErrorIs(t, err, wakebelltype.ErrNotFound, "the waiting schedule was not sent")
	})
}

// TestCallWithoutWaitersIsCancelled checks that a call is cancelled when all of
// its callers have given up, not when one has.
func TestCallWithoutWaitersIsCancelled(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		first := f.schedules(t.Context(), idsUpTo(maxInFlight)...)
		synctest.Wait()
		ctx, giveUp := context.WithCancel(t.Context())
		longer, giveUpToo := context.WithCancel(t.Context())
		one, other := f.schedules(ctx, "one"), f.schedules(longer, "other")
		for range maxInFlight {
			require.NoError(t, (<-first).err)
		}
		synctest.Wait() // both are sent
		giveUp()
		require.ErrorIs(t, (<-one).err, context.Canceled)
		require.Zero(t, s.ended.Load())
		giveUpToo()
		require.ErrorIs(t, (<-other).err, context.Canceled)
		synctest.Wait()
		require.EqualValues(t, 1, s.ended.Load())
	})
}

func TestCallThatFailsFailsForAll(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		s.fail = errors.New("as the test wants it")
		answers := f.schedules(t.Context(), idsUpTo(20)...)
		for range 20 {
			require.ErrorIs(t, (<-answers).err, s.fail)
		}
		s.fail = nil
		require.NoError(t, (<-f.schedules(t.Context(), "after")).err)
	})
}

func TestWithoutCoalescingEveryScheduleIsSentAlone(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		f.NoCoalescing = true
		began, ids := time.Now(), idsUpTo(5*maxInFlight)
		answers := f.schedules(t.Context(), ids...)
		for range ids {
			require.NoError(t, (<-answers).err)
		}
		require.EqualValues(t, len(ids), s.calls.Load())
		require.Equal(t, scriptTakes, time.Since(began), "none waits for another")
	})
}

// TestTopicsShareFlights checks that the schedules of several topics that wait for a server
// are sent together, each topic in its turn, and that a topic with many does not hold up
// others.
func TestTopicsShareFlights(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, s *slowly) {
		busy := f.schedules(t.Context(), idsUpTo(maxInFlight)...)
		synctest.Wait()
		const topics = 10
		large := f.on(f.topic+" large").schedulesOf(t.Context(), 3*layout.BatchEntries, layout.BatchEntries-topics)
		synctest.Wait()
		var small []<-chan scheduling
		for i := range topics {
			small = append(small, f.on(fmt.Sprint(f.topic, i)).schedules(t.Context(), "a"))
			synctest.Wait()
		}
		ctx, giveUp := context.WithCancel(t.Context())
		given := f.on(f.topic+" given up").schedules(ctx, "a")
		synctest.Wait()
		giveUp()
		require.ErrorIs(t, (<-given).err, context.Canceled)
		began := time.Now()
		for _, each := range small {
			require.NoError(t, (<-each).err)
		}
		require.LessOrEqual(t, time.Since(began), 2*scriptTakes, "they share a flight with the large one")
		for range maxInFlight {
			require.NoError(t, (<-busy).err)
		}
		for range cap(large) {
			require.NoError(t, (<-large).err)
		}
		synctest.Wait() // the last call is over
		require.Zero(t, f.sender.servers[""].inFlight)
		require.Zero(t, f.rdb.Exists(t.Context(), f.keys.Of(f.topic+" given up").Timeline).Val())
	})
}

// schedulesOf calls Schedule for n timers at the same time, each call for as many as given.
func (f *fixture) schedulesOf(ctx context.Context, n, each int) <-chan scheduling {
	answers := make(chan scheduling, (n+each-1)/each)
	for first := 0; first < n; first += each {
		entries := make([]Entry, min(each, n-first))
		for i := range entries {
			entries[i] = Entry{ID: fmt.Sprint(first + i), In: time.Hour}
		}
		go func() {
			_, err := f.Schedule(ctx, f.topic, entries...)
			answers <- scheduling{err: err}
		}()
	}
	return answers
}

// TestFlightIsBounded checks the bounds of a pipeline: those of one script, and its scripts.
func TestFlightIsBounded(t *testing.T) {
	t.Parallel()
	waits := func(topics int, e Entry) *outlet {
		to := &outlet{}
		for i := range topics {
			e.ID = fmt.Sprint(i)
			p := &part{entries: []Entry{e}}
			_, p.load = carried(p.entries)
			l := &line{to: to, waiting: []*waiter{{part: p}}}
			l.queue()
		}
		return to
	}
	for name, test := range map[string]struct {
		of   Entry
		most int
	}{
		"scripts": {Entry{}, maxScripts},
		"bytes":   {Entry{Payload: make([]byte, layout.BatchBytes/3)}, 3},
		"large":   {Entry{Payload: make([]byte, 2*layout.BatchBytes)}, 1},
	} {
		to := waits(maxScripts+1, test.of)
		for left := maxScripts + 1; left > 0; left -= test.most {
			require.Len(t, to.take().calls, min(left, test.most), name)
		}
		require.Nil(t, to.take(), name)
	}
}

// TestCallsOfFlightAreJudgedAlone checks that a call of a flight that Redis refuses does not
// fail the others.
func TestCallsOfFlightAreJudgedAlone(t *testing.T) {
	withSlowRedis(t, func(t *testing.T, f *fixture, _ *slowly) {
		broken := f.on(f.topic + " broken")
		require.NoError(t, f.rdb.Set(t.Context(), broken.key.Timeline, "x", 0).Err())
		busy := f.schedules(t.Context(), idsUpTo(maxInFlight)...)
		synctest.Wait()
		bad, good := broken.schedules(t.Context(), "a", "b"), f.on(f.topic+" good").schedules(t.Context(), "a", "b")
		for range 2 {
			require.ErrorIs(t, (<-bad).err, wakebelltype.ErrWrongType)
			require.NoError(t, (<-good).err)
		}
		for range maxInFlight {
			require.NoError(t, (<-busy).err)
		}
	})
}
