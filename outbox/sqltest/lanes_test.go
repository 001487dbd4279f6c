//go:build unix

package sqltest

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/outbox"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/wakebelltype"
)

// fill commits messages for a queue that is full after the first one.
func (w *world) fill(t testing.TB, messages int) queue.Queue[string] {
	t.Helper()
	q := queue.New[string](redistest.Name(t), queue.PendingCap(1, queue.FullFails))
	w.publish(t, q, messages)
	return q
}

// publish commits messages.
func (w *world) publish(t testing.TB, q queue.Queue[string], messages int) {
	t.Helper()
	for n := 0; n < messages; n += 1000 {
		drafts := make([]queue.Draft, min(messages-n, 1000))
		for i := range drafts {
			drafts[i] = q.Draft(fmt.Sprint(n + i))
		}
		w.commit(t, func(tx *sql.Tx) { require.NoError(t, w.box.Publish(t.Context(), tx, drafts...)) })
	}
}

// rows returns the result of a query for a number.
func (w *world) rows(t testing.TB, query string) (n int) {
	t.Helper()
	require.NoError(t, w.db.QueryRowContext(t.Context(), w.rebind(query)).Scan(&n))
	return n
}

// A relay does not read the rows of a parked lane again, neither to relay others nor to
// try the lane.
func testParkedRowsAreNotRead(t *testing.T, w *world) {
	const blocked, others = 3000, 40
	w.fill(t, blocked+1)
	counted := w.server.counting(t)
	observer := w.db
	w.db = counted.db
	relay := w.relay(t, w.system(t), quick())
	w.db = observer
	parked := func() bool { return w.stats(t).Deferred == blocked }
	require.Eventually(t, parked, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return relay.Status().Deferred >= 2 }, patience, 10*time.Millisecond)

	before := counted.bodies.Load()
	for i := range others {
		w.schedule(t, "x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
	}
	tried := relay.Status().Deferred
	require.Eventually(t, func() bool { return len(w.timers(t)) == others && relay.Status().Deferred >= tried+2 }, patience, 10*time.Millisecond)
	require.True(t, parked())
	attempts := relay.Status().Deferred - tried + 1
	require.LessOrEqual(t, counted.bodies.Load()-before, others+8*attempts, "rows of claims")
}

// A lane that is not refused any more is relayed in its order, and is not parked then.
func testUnparked(t *testing.T, w *world) {
	const timers = 300
	key := "timers_timeline:" + w.topic.Name()
	require.NoError(t, w.rdb.Set(t.Context(), key, "not a sorted set", 0).Err())
	other := wakebell.NewTopic[string](redistest.Name(t))
	for i := range timers {
		w.schedule(t, "first", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
	}
	w.commit(t, func(tx *sql.Tx) {
		require.NoError(t, w.box.Schedule(t.Context(), tx, other.Draft("x", wakebell.ID("x"), wakebell.In(time.Hour))))
	})
	relays := []*outbox.Relay{w.relay(t, w.system(t), quick()), w.relay(t, w.system(t), quick())}
	require.Eventually(t, func() bool { return w.stats(t).Waiting == timers && w.stats(t).Deferred == timers }, patience, 10*time.Millisecond)
	require.Equal(t, 1, w.rows(t, "SELECT COUNT(*) FROM {table}_parked"))
	for i := range timers {
		w.commit(t, func(tx *sql.Tx) {
			require.NoError(t, w.box.Cancel(t.Context(), tx, w.topic.Name(), fmt.Sprint(i)))
			if i%2 == 0 {
				require.NoError(t, w.box.Schedule(t.Context(), tx, w.topic.Draft("last", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))))
			}
		})
	}
	require.NoError(t, w.rdb.Del(t.Context(), key).Err())
	w.awaitRelayed(t)
	found := w.timers(t)
	require.Len(t, found, timers/2)
	for id, body := range found {
		require.Equal(t, "last", body, id)
	}
	require.Eventually(t, func() bool { return w.rows(t, "SELECT COUNT(*) FROM {table}_parked") == 0 }, patience, 10*time.Millisecond)
	for _, relay := range relays {
		require.NoError(t, relay.Status().Err)
	}
}

// Rows of a lane whose row in the table of parked lanes is missing are found when a relay
// starts.
func testAdoptedLanes(t *testing.T, w *world) {
	w.schedule(t, "x", wakebell.ID("x"), wakebell.In(time.Hour))
	_, err := w.db.ExecContext(t.Context(), w.rebind("UPDATE {table} SET retry_at = -5"))
	require.NoError(t, err)
	w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Len(t, w.timers(t), 1)
}

// A relay whose clock was ahead has left a lane, and a timer alone, to wait for years.
func testClockAhead(t *testing.T, w *world) {
	w.schedule(t, "first", wakebell.ID("x"), wakebell.In(time.Hour))
	ahead := time.Now().AddDate(10, 0, 0).UnixMicro()
	_, err := w.db.ExecContext(t.Context(), w.rebind("UPDATE {table} SET retry_at = ?"), ahead)
	require.NoError(t, err)
	w.schedule(t, "last", wakebell.ID("x"), wakebell.In(time.Hour))
	w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Equal(t, map[string]string{"x": "last"}, w.timers(t))

	_, err = w.db.ExecContext(t.Context(), w.rebind("INSERT INTO {table}_parked (lane, kind, target, retry_at, attempts, outage, error) VALUES (-5, '', '', ?, 3, 0, '')"), ahead)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.rows(t, "SELECT COUNT(*) FROM {table}_parked") == 0 }, patience, 10*time.Millisecond, "it has no rows")
}

// A table of the first version is brought up to date, with its rows, and again.
func testUpgrade(t *testing.T, w *world) {
	box, err := outbox.New(nil, w.server.dialect, outbox.Config{Table: "upgraded"})
	require.NoError(t, err)
	steps, err := box.Migrations()
	require.NoError(t, err)
	exec := func(query string) {
		_, err := w.db.ExecContext(t.Context(), query)
		require.NoError(t, err, query)
	}
	for _, statement := range statements(steps[0].SQL) {
		exec(statement)
	}
	exec("CREATE TABLE upgraded_migrations (version int PRIMARY KEY, applied_at bigint NOT NULL)")
	exec("INSERT INTO upgraded_migrations (version, applied_at) VALUES (1, 0)")
	w.box = box
	w.schedule(t, "deferred", wakebell.ID("deferred"), wakebell.In(time.Hour))
	exec(fmt.Sprintf("UPDATE upgraded SET retry_at = %d, attempts = 1, error = 'full'", time.Now().Add(time.Second).UnixMicro()))
	w.schedule(t, "ready", wakebell.ID("ready"), wakebell.In(time.Hour))

	require.NoError(t, box.Migrate(t.Context(), w.db))
	require.NoError(t, box.Migrate(t.Context(), w.db))
	exec("DELETE FROM upgraded_migrations WHERE version > 0") // as if the process ended before it recorded them
	require.NoError(t, box.Migrate(t.Context(), w.db))
	require.Equal(t, len(steps), w.rows(t, "SELECT MAX(version) FROM upgraded_migrations"))
	for _, f := range box.Check(t.Context(), w.db) {
		require.Equal(t, wakebelltype.GradeGood, f.Grade, "%+v", f)
	}
	require.Equal(t, outbox.Stats{Waiting: 2, Deferred: 1}, withoutLag(w.stats(t)))
	w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Len(t, w.timers(t), 2)
}

func withoutLag(s outbox.Stats) outbox.Stats {
	s.Lag = 0
	return s
}

// A reserved word is a name like others.
func testReservedWord(t *testing.T, w *world) {
	box, err := outbox.New(nil, w.server.dialect, outbox.Config{Table: "select"})
	require.NoError(t, err)
	require.NoError(t, box.Migrate(t.Context(), w.db))
	w.box = box
	w.schedule(t, "x", wakebell.ID("x"), wakebell.In(time.Hour))
	w.relay(t, w.system(t), quick())
	w.awaitRelayed(t)
	require.Len(t, w.timers(t), 1)
}

// Rows of topics whose master of a Redis Cluster is away wait, and those of others pass.
func TestOutboxPassesDeadMaster(t *testing.T) {
	t.Parallel()
	masters := redistest.Cluster(t, "--cluster-require-full-coverage", "no")
	rdb := masters.Client(t)
	w := newWorld(t, sqlite(t))
	w.rdb = rdb
	sys := w.system(t)
	topics := map[int]wakebell.Topic[string]{} // by master
	for i := 0; len(topics) < len(masters); i++ {
		name := fmt.Sprintf("%s%d", redistest.Name(t), i)
		slot, err := rdb.ClusterKeySlot(t.Context(), name).Result()
		require.NoError(t, err)
		topics[int(slot)*len(masters)/16384] = wakebell.NewTopic[string](name)
	}
	masters[0].Kill()
	const each = 120 // more than a batch
	for master := range masters {
		for i := range each {
			w.commit(t, func(tx *sql.Tx) {
				draft := topics[master].Draft("x", wakebell.ID(fmt.Sprint(i)), wakebell.In(time.Hour))
				require.NoError(t, w.box.Schedule(t.Context(), tx, draft))
			})
		}
	}
	cfg := quick()
	cfg.Timeout = time.Second
	relay := w.relay(t, sys, cfg)
	require.Eventually(t, func() bool { return relay.Status().Relayed == 2*each }, patience, 10*time.Millisecond, "the rows of the masters that are there")
	require.Eventually(t, func() bool { return relay.Status().Err != nil }, patience, 10*time.Millisecond)
	require.Equal(t, outbox.Stats{Waiting: each, Deferred: each}, withoutLag(w.stats(t)))
	masters[0].Restart(t)
	w.awaitRelayed(t)
	require.Eventually(t, func() bool { return relay.Status().Err == nil }, patience, 10*time.Millisecond)
}
