package shards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// snoozing is a node that claims one timer of a key at a time.
type snoozing struct {
	*fixture
	t      *testing.T
	source *timers.TimerSource
	stream *storetest.Stream
}

func newSnoozing(t *testing.T, f *fixture) *snoozing {
	t.Helper()
	s := &snoozing{fixture: f, t: t}
	s.on(f.topic)
	return s
}

// on makes the node look at a physical topic.
func (s *snoozing) on(name string) {
	s.source = s.timers.Source(name, timers.SourceOptions{})
	s.stream = storetest.NewStream(s.source)
}

func (s *snoozing) exchange(want int, settle ...exchange.Settlement) *exchange.Reply {
	s.t.Helper()
	r := s.stream.Request(want, time.Minute)
	r.Settle, r.Flow.PerKey = settle, 1
	reply := s.stream.Run(s.t, r)
	require.Empty(s.t, reply.Refused)
	return reply
}

func (s *snoozing) claim() []exchange.Lease { return s.exchange(10).Leases }

// nack makes a timer due again in d, as after a failure.
func (s *snoozing) nack(l exchange.Lease, d time.Duration) { s.wait(l, d, false) }

// snooze makes it due again in d without a failure.
func (s *snoozing) snooze(l exchange.Lease, d time.Duration) { s.wait(l, d, true) }

func (s *snoozing) wait(l exchange.Lease, d time.Duration, snoozed bool) {
	s.t.Helper()
	settle := storetest.Verdict(exchange.Nack, l)
	settle.Delay, settle.Reason, settle.Snoozed = d, "not yet", snoozed
	s.exchange(0, settle)
}

func (s *snoozing) get(id string) timers.Timer {
	s.t.Helper()
	timer, err := s.Get(s.t.Context(), s.topic, id)
	require.NoError(s.t, err)
	return timer
}

// eachWay runs a test with a timer that was snoozed, and with one that has failed: both wait for
// their next delivery in the same way.
func eachWay(t *testing.T, test func(t *testing.T, s *snoozing, wait func(l exchange.Lease, d time.Duration))) {
	t.Helper()
	for _, snoozes := range []bool{false, true} {
		t.Run(map[bool]string{false: "failed", true: "snoozed"}[snoozes], func(t *testing.T) {
			t.Parallel()
			s := newSnoozing(t, newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1))
			test(t, s, map[bool]func(exchange.Lease, time.Duration){false: s.nack, true: s.snooze}[snoozes])
		})
	}
}

func TestTimerThatWaitsForItsNextDeliveryHoldsItsKeyWhenItMoves(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *snoozing, wait func(exchange.Lease, time.Duration)) {
		s.schedule(t, timers.Entry{ID: "first", Key: "k"})
		wait(s.claim()[0], time.Hour)
		l := s.startMoving(t, 4)
		s.moveAll(t, l)
		s.schedule(t, timers.Entry{ID: "second", Key: "k"})
		for _, name := range l.Names(s.topic) {
			s.on(name)
			require.Empty(t, storetest.IDs(s.claim()), "the first timer of the key waits")
		}
	})
}

func TestRunNowKeepsPlaceOfTimerThatWasDelivered(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *snoozing, wait func(exchange.Lease, time.Duration)) {
		at := time.Now().Add(-time.Hour).Truncate(time.Second)
		s.schedule(t, timers.Entry{ID: "z-first", Key: "k", At: at}, timers.Entry{ID: "a-second", Key: "k", At: at.Add(time.Minute)})
		wait(s.claim()[0], time.Hour)
		require.Empty(t, s.claim())
		_, err := s.RunNow(t.Context(), s.topic, "z-first")
		require.NoError(t, err)
		require.Equal(t, []string{"z-first"}, storetest.IDs(s.claim()))
		require.WithinDuration(t, at, s.get("z-first").Activation, time.Millisecond)
	})
}

// A lease of a later delivery that is given back leaves the timer as it was: it has begun, so it
// does not expire, and is late from its first instant.
func TestReleaseKeepsActivationOfTimerThatWasDelivered(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *snoozing, wait func(exchange.Lease, time.Duration)) {
		at := time.Now().Add(-time.Hour).Truncate(time.Second)
		s.schedule(t, timers.Entry{ID: "a", At: at})
		wait(s.claim()[0], time.Hour)
		_, err := s.RunNow(t.Context(), s.topic, "a")
		require.NoError(t, err)
		s.exchange(0, storetest.Verdict(exchange.Release, s.claim()[0]))
		require.WithinDuration(t, at, s.get("a").Activation, time.Millisecond)
		require.Equal(t, "not yet", s.get("a").LastError)
	})
}

func TestExportKeepsNextDeliveryAndKey(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *snoozing, wait func(exchange.Lease, time.Duration)) {
		s.schedule(t, timers.Entry{ID: "first", Key: "k"})
		wait(s.claim()[0], time.Hour)
		d, err := s.Dump(t.Context(), s.topic)
		require.NoError(t, err)
		into := newSnoozing(t, newFixture(t, redistest.Shared(t), wakebelltype.Keys{}, 1))
		for stored, err := range d.EachTimer(t.Context()) {
			require.NoError(t, err)
			require.WithinDuration(t, s.get("first").Due, stored.Due, time.Millisecond)
			_, err = into.timers.Put(t.Context(), into.topic, timers.PutKeep, []timers.Stored{stored})
			require.NoError(t, err)
		}
		into.schedule(t, timers.Entry{ID: "second", Key: "k"})
		require.Empty(t, storetest.IDs(into.claim()), "the first timer of the key waits")
	})
}

func TestSnoozeCountsNoFailureWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s := newSnoozing(t, newFixture(t, rdb, wakebelltype.Keys{}, 1))
	s.schedule(t, timers.Entry{ID: "a"})
	l := s.claim()[0]
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	s.snooze(l, time.Hour)
	require.Zero(t, s.get("a").Failures)
}
