package durable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/journal/journaltest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// machine is a clock that a test sets.
type machine struct{ clock int64 }

func (m *machine) now() int64              { return m.clock }
func (m *machine) advance(d time.Duration) { m.clock += d.Milliseconds() }

// The clock of the machine was an hour fast, as after a boot with a wrong one, and NTP sets
// it back while the store runs, or before it starts again.
func TestClockThatWasSetBackShiftsDueTimes(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"while it runs": false, "before it starts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, m := journaltest.New(), &machine{started}
			s := openOn(t, disk, Options{now: m.now})
			schedule(t, s, "before")
			m.advance(-time.Hour)
			if restarts {
				require.NoError(t, s.Close())
				s = openOn(t, disk, Options{now: m.now})
			}
			defer func() { require.NoError(t, s.Close()) }()
			rdb := clientOf(t, s)
			schedule(t, s, "after")
			require.Equal(t, time.UnixMilli(m.clock).UTC(), rdb.Time(t.Context()).Val().UTC())
			require.Empty(t, due(t, s, 1))
			m.advance(50 * time.Millisecond)
			require.Equal(t, []string{"after"}, due(t, s, 2))
			m.advance(time.Hour)
			require.Equal(t, []string{"before"}, due(t, s, 3), "its instant has come again")
		})
	}
}

func TestClockWaitsForOneThatIsLittleBehind(t *testing.T) {
	t.Parallel()
	m := &machine{started}
	s := openOn(t, journaltest.New(), Options{now: m.now})
	defer func() { require.NoError(t, s.Close()) }()
	rdb := clientOf(t, s)
	require.Equal(t, int64(started), rdb.Time(t.Context()).Val().UnixMilli())
	m.advance(-time.Second)
	require.Equal(t, int64(started), rdb.Time(t.Context()).Val().UnixMilli())
	m.advance(-time.Millisecond)
	require.Equal(t, m.clock, rdb.Time(t.Context()).Val().UnixMilli())
}

// A key expires by a clock that only a read has seen, and that is then set back. What is
// written later relies on it, so the next start has to find it expired too.
func TestReplayExpiresWhatReadsHaveSeenExpire(t *testing.T) {
	t.Parallel()
	disk, m := journaltest.New(), &machine{started}
	s := openOn(t, disk, Options{now: m.now})
	rdb := clientOf(t, s)
	require.NoError(t, rdb.Set(t.Context(), "n", 41, time.Minute).Err())
	m.advance(time.Hour)
	require.Zero(t, rdb.Exists(t.Context(), "n").Val())
	m.advance(-time.Hour)
	require.EqualValues(t, 1, rdb.Incr(t.Context(), "n").Val())
	m.advance(time.Second)
	expected := dump(t, s)
	require.NoError(t, s.Close())

	s = openOn(t, disk, Options{now: m.now})
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, expected, dump(t, s))
	require.Equal(t, "1", clientOf(t, s).Get(t.Context(), "n").Val())
}

func schedule(t *testing.T, s *Store, id string) {
	t.Helper()
	_, err := timersOf(t, s).Schedule(t.Context(), "topic", timers.Entry{ID: id, Payload: []byte("x"), In: 50 * time.Millisecond})
	require.NoError(t, err)
}

func timersOf(t *testing.T, s *Store) *timers.Timers {
	t.Helper()
	of, err := timers.New(clientOf(t, s), wakebelltype.Keys{})
	require.NoError(t, err)
	return of
}

// due claims what is due.
func due(t *testing.T, s *Store, sequence uint64) (ids []string) {
	t.Helper()
	source := timersOf(t, s).Source("topic", timers.SourceOptions{})
	reply, err := source.Exchange(t.Context(), &exchange.Request{Incarnation: "x", Sequence: sequence, Want: 9, LeaseTTL: 24 * time.Hour})
	require.NoError(t, err)
	for _, l := range reply.Leases {
		ids = append(ids, l.ID)
	}
	return ids
}
