//go:build unix

package life_test

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/recurring"
)

// BenchmarkBeatIdle measures a node whose scheduler has 100,000 schedules that are
// not due: its cost over 30 s in commands that Redis counts and in percent of a core
// for the node and for Redis. redis-alone-% is the cost of Redis with these keys and
// without clients.
func BenchmarkBeatIdle(b *testing.B) {
	const (
		schedules = 100_000
		span      = 30 * time.Second
		quiet     = 10 * time.Second
	)
	rdb := redistest.Start(b).Client(b)
	putLater(b, rdb, schedules)
	sys, err := wakebell.New(actor.NewActorSystem(), conntest.New(b, rdb, connection.Config{}), wakebell.Config{Scheduler: &recurring.SchedulerConfig{}})
	require.NoError(b, err)
	before := readCost(b, rdb)
	<-time.After(quiet)
	took, alone := readCost(b, rdb).since(before)
	require.NoError(b, sys.Start(b.Context()))
	for before := readCost(b, rdb); ; { // until all are loaded
		<-time.After(quiet)
		now := readCost(b, rdb)
		if _, spent := now.since(before); spent.commands < 100 {
			break
		}
		before = now
	}
	for b.Loop() {
		before := readCost(b, rdb)
		<-time.After(span)
		took, spent := readCost(b, rdb).since(before)
		b.ReportMetric((spent.commands-1)/took.Seconds(), "commands/s") // INFO is not counted
		b.ReportMetric(spent.node.Seconds()/took.Seconds()*100, "node-%")
		b.ReportMetric(spent.redis.Seconds()/took.Seconds()*100, "redis-%")
	}
	b.ReportMetric(alone.redis.Seconds()/took.Seconds()*100, "redis-alone-%")
	require.NoError(b, sys.Stop())
}

// putLater writes entries that are due tomorrow at the earliest.
func putLater(b *testing.B, rdb *redis.Client, n int) {
	b.Helper()
	const every = 48 * time.Hour
	now := time.Now()
	pipe := rdb.Pipeline()
	for i := range n {
		name := fmt.Sprintf("entry-%06d", i)
		e := recur.Entry{
			Definition: recur.Definition{Name: name, Task: fmt.Sprintf("topic-%d", i%10), Enabled: true},
			Meta:       recur.Meta{LastRunAt: now.Add(-time.Duration(i) * time.Second / 2)},
		}
		require.NoError(b, e.SetEvery(every, false))
		raw := e.Raw()
		due := float64(e.Meta.LastRunAt.Add(every).Unix())
		pipe.HSet(b.Context(), "redbeat:"+name, "definition", raw.Definition, "meta", raw.Meta)
		pipe.ZAdd(b.Context(), "redbeat::schedule", redis.Z{Score: due, Member: "redbeat:" + name})
		if i%5000 == 4999 || i == n-1 {
			_, err := pipe.Exec(b.Context())
			require.NoError(b, err)
		}
	}
}

// cost is the sum since the start.
type cost struct {
	at          time.Time
	commands    float64
	node, redis time.Duration // of CPU
}

func readCost(b *testing.B, rdb *redis.Client) cost {
	b.Helper()
	info, err := rdb.InfoMap(b.Context(), "stats", "cpu").Result()
	require.NoError(b, err)
	number := func(section, field string) float64 {
		f, err := strconv.ParseFloat(info[section][field], 64)
		require.NoError(b, err)
		return f
	}
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return cost{
		at: time.Now(), commands: number("Stats", "total_commands_processed"),
		node:  time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		redis: time.Duration((number("CPU", "used_cpu_user") + number("CPU", "used_cpu_sys")) * float64(time.Second)),
	}
}

func (c cost) since(before cost) (took time.Duration, spent cost) {
	return c.at.Sub(before.at), cost{
		commands: c.commands - before.commands, node: c.node - before.node, redis: c.redis - before.redis,
	}
}
