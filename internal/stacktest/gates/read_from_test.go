package gates_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/wakebelltype"
)

// reading is a set of servers with clients for writing and for reading.
type reading struct {
	masters, replicas redistest.Masters
	rdb, from         redis.UniversalClient
}

func readingFromCluster(t *testing.T) reading {
	t.Helper()
	masters, replicas := redistest.ReplicatedCluster(t, time.Minute)
	from := redis.NewClusterClient(&redis.ClusterOptions{Addrs: masters.Addrs(), ReadOnly: true})
	t.Cleanup(func() { require.NoError(t, from.Close()) })
	return reading{masters, replicas, masters.Client(t), from}
}

func readingFromSentinel(t *testing.T) reading {
	t.Helper()
	w := redistest.Sentinel(t)
	from := w.Client(t, func(o *redis.FailoverOptions) { o.ReplicaOnly, o.MaxRetries = true, -1 })
	return reading{redistest.Masters{w.Master}, redistest.Masters{w.Replica}, w.Client(t), from}
}

// read reads a listing to its end and returns how many items it has.
func read[T any](t *testing.T, items iter.Seq2[T, error]) (n int) {
	t.Helper()
	for _, err := range items {
		require.NoError(t, err)
		n++
	}
	return n
}

// readAll lists and counts everything, and requires that what was stored is there.
func readAll(t *testing.T, c *wakebell.Client, g *gate.Gates) {
	t.Helper()
	ctx, all, mail := t.Context(), wakebelltype.Page{}, wakebelltype.QueueKeys{Name: "mail"}
	for i := range 3 {
		topic := fmt.Sprint("orders-", i)
		require.Equal(t, 5, read(t, c.List(ctx, topic, wakebell.Filter{}, all)))
		info, _, err := c.Get(ctx, topic, "1")
		require.NoError(t, err)
		require.Equal(t, "1", info.ID)
		stats, err := c.Stats(ctx, topic)
		require.NoError(t, err)
		require.EqualValues(t, 5, stats.Total)
		require.Equal(t, 1, read(t, c.DeadLetters(ctx, topic, wakebelltype.DeadFilter{}, all)))
		dead, err := c.LastDead(ctx, topic, 10)
		require.NoError(t, err)
		require.Len(t, dead, 1)
		require.Zero(t, read(t, c.History(ctx, topic, wakebelltype.HistoryFilter{}, all)))
		_, err = c.Throughput(ctx, topic, time.Hour)
		require.NoError(t, err)
	}
	overviews, err := c.Overview(ctx, "orders-0", "orders-1", "orders-2")
	require.NoError(t, err)
	for _, o := range overviews {
		require.NoError(t, o.Err)
		require.EqualValues(t, 5, o.Stats.Total)
	}
	require.Equal(t, 3, read(t, c.Topics(ctx, false, all)))
	require.NotZero(t, read(t, c.Audit(ctx, wakebelltype.AuditFilter{}, all)))

	require.Equal(t, 1, read(t, c.Queues().List(ctx, all)))
	stats, err := c.Queues().Stats(ctx, mail)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Pending)
	require.Equal(t, 1, read(t, c.Queues().Messages(ctx, mail, false, all)))
	require.Zero(t, read(t, c.Queues().DeadLetters(ctx, mail, all)))

	require.Equal(t, 10, read(t, c.Schedules().List(ctx, all)))
	require.Equal(t, 10, read(t, g.List(ctx, all)))
	info, err := g.Show(ctx, "gate-0")
	require.NoError(t, err)
	require.NotZero(t, info.Holder.Fence)
}

// storeAll stores what readAll reads.
func storeAll(t *testing.T, rdb redis.UniversalClient, c *wakebell.Client) {
	t.Helper()
	ctx := t.Context()
	for i := range 3 {
		topic := wakebell.NewTopic[string](fmt.Sprint("orders-", i))
		for id := range 5 {
			_, err := c.Schedule(ctx, topic.Draft("x", wakebell.ID(fmt.Sprint(id)), wakebell.In(time.Hour)))
			require.NoError(t, err)
		}
		require.NoError(t, rdb.XAdd(ctx, &redis.XAddArgs{
			Stream: "timers_dead:" + braced(rdb, topic.Name()), Values: []string{"id", "d", "payload", "p", "claims", "1", "failures", "1", "reason", "r", "activation", "1", "at", "2"},
		}).Err())
	}
	_, err := c.Pause(ctx, "orders-0", "ann", "")
	require.NoError(t, err)
	_, err = queue.New[string]("mail").Publish(ctx, c.Queues(), "hello")
	require.NoError(t, err)
	for i := range 10 {
		r := wakebell.NewTopic[string]("orders-0").Recurring(fmt.Sprint("daily-", i), recurring.Rule{Every: 24 * time.Hour}, "run")
		require.NoError(t, c.Schedules().Put(ctx, r))
		stacktest.Mortal(t, rdb, fmt.Sprint("gate-", i), "host:1:x", time.Hour)
	}
}

func braced(rdb redis.UniversalClient, topic string) string {
	if _, clustered := rdb.(*redis.ClusterClient); clustered {
		return "{" + topic + "}"
	}
	return topic
}

// ranOn returns the commands that servers have run since their statistics were reset, but
// for those of connections, of replication and of the test.
func ranOn(t *testing.T, servers redistest.Masters) (commands []string) {
	t.Helper()
	for _, server := range servers {
		stats, err := server.Client(t).InfoMap(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		for name := range stats["Commandstats"] {
			name = strings.TrimPrefix(name, "cmdstat_")
			base, _, _ := strings.Cut(name, "|")
			if !slices.Contains([]string{
				"info", "config", "ping", "hello", "client", "command", "cluster", "replconf", "psync", "readonly", "role",
				"publish", "subscribe", "select", "wait", "pubsub", "time",
			}, base) {
				commands = append(commands, name)
			}
		}
	}
	slices.Sort(commands)
	return slices.Compact(commands)
}

// synchronize waits until the replicas have all writes of their masters.
func (r reading) synchronize(t *testing.T) {
	t.Helper()
	for _, master := range r.masters {
		stacktest.Eventually(t, func() bool {
			stats, err := master.Client(t).InfoMap(t.Context(), "replication").Result()
			require.NoError(t, err)
			own := stats["Replication"]["master_repl_offset"]
			return strings.Contains(stats["Replication"]["slave0"], "offset="+own+",")
		})
	}
}

func TestListingsReadFromReplicas(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) reading{"cluster": readingFromCluster, "sentinel": readingFromSentinel} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			c, err := wakebell.NewClient(conntest.New(t, r.rdb, connection.Config{Logger: stacktest.Quiet, ReadFrom: r.from}))
			require.NoError(t, err)
			g := stacktest.GatesWith(t, conntest.New(t, r.rdb, connection.Config{ReadFrom: r.from}), gate.Config{})
			storeAll(t, r.rdb, c)
			r.synchronize(t)
			readAll(t, c, g) // loads the scripts, and the client's view of the servers
			for _, server := range slices.Concat(r.masters, r.replicas) {
				require.NoError(t, server.Client(t).ConfigResetStat(t.Context()).Err())
			}
			readAll(t, c, g)
			require.Empty(t, ranOn(t, r.masters), "the masters ran nothing")
			ran := ranOn(t, r.replicas)
			require.Contains(t, ran, "evalsha_ro")
			require.NotContains(t, ran, "evalsha")

			// Writes go to the master, and the replica refuses those of scripts.
			_, err = c.Cancel(t.Context(), "orders-0", "0")
			require.NoError(t, err)
			require.Contains(t, ranOn(t, r.masters), "evalsha")

			_, err = c.Schedule(t.Context(), wakebell.NewTopic[string]("orders-0").Draft("x", wakebell.ID("0"), wakebell.In(time.Hour)))
			require.NoError(t, err)
			for _, replica := range r.replicas {
				replica.Kill()
			}
			readAll(t, c, g)
			require.NotEmpty(t, ranOn(t, r.masters))
		})
	}
}

// A client that cannot run EVALSHA_RO, as on Redis 6, reads from the master.
func TestReadsWithoutReadOnlyCommands(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t, "--rename-command", "EVALSHA_RO", "", "--rename-command", "EVAL_RO", "")
	r := reading{redistest.Masters{w.Master}, redistest.Masters{w.Replica}, w.Client(t), w.Client(t, func(o *redis.FailoverOptions) { o.ReplicaOnly = true })}
	c, err := wakebell.NewClient(conntest.New(t, r.rdb, connection.Config{Logger: stacktest.Quiet, ReadFrom: r.from}))
	require.NoError(t, err)
	storeAll(t, r.rdb, c)
	r.synchronize(t)
	readAll(t, c, stacktest.GatesWith(t, conntest.New(t, r.rdb, connection.Config{ReadFrom: r.from}), gate.Config{}))
}

func TestReadFromIsOfSameKind(t *testing.T) {
	t.Parallel()
	single := redis.NewClient(&redis.Options{})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{})
	t.Cleanup(func() { require.NoError(t, single.Close()); require.NoError(t, cluster.Close()) })
	for rdb, from := range map[redis.UniversalClient]redis.UniversalClient{single: cluster, cluster: single} {
		_, err := connection.New(rdb, connection.Config{ReadFrom: from})
		require.ErrorIs(t, err, wakebell.ErrInvalid)
		require.ErrorContains(t, err, "ReadFrom")
	}
}

// Every command is asked of the master at most once, also if several clients share ReadFrom.
func TestReadFromIsSharedByClients(t *testing.T) {
	t.Parallel()
	server, down := redistest.Start(t), redistest.Start(t)
	from := down.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	rdb := server.Client(t)
	for range 3 {
		_, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{Logger: stacktest.Quiet, ReadFrom: from}))
		require.NoError(t, err)
	}
	require.NoError(t, rdb.Ping(t.Context()).Err()) // it is connected
	down.Kill()
	counter := &stacktest.CallCount{}
	rdb.AddHook(counter)
	require.ErrorIs(t, from.Get(t.Context(), "absent").Err(), redis.Nil)
	require.EqualValues(t, 1, counter.Load())
	require.EqualValues(t, 0, from.Exists(t.Context(), "absent").Val())
	require.EqualValues(t, 2, counter.Load())
}
