package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/internal/meter"
)

// deliveryCounts counts the deliveries to the benchmark's handler, at a cost that
// is negligible beside that of a delivery.
type deliveryCounts struct {
	seen     []atomic.Int32 // deliveries by number of the timer
	lateness []int64        // of the first delivery, in µs; written before left goes down
	unknown  atomic.Int64   // deliveries with ids that were not loaded
	left     atomic.Int64
	done     chan struct{} // closed when every timer was handled
}

func newDeliveryCounts(n int) *deliveryCounts {
	c := &deliveryCounts{seen: make([]atomic.Int32, n), lateness: make([]int64, n), done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

func (c *deliveryCounts) handle(_ context.Context, timer wakebell.Timer[[]byte]) error {
	i, err := strconv.Atoi(timer.ID)
	if err != nil || i < 0 || i >= len(c.seen) {
		c.unknown.Add(1)
		return nil
	}
	if c.seen[i].Add(1) > 1 {
		return nil
	}
	c.lateness[i] = timer.Lateness().Microseconds()
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
	return nil
}

// totals returns the number of distinct timers handled, and of deliveries beyond
// the first.
func (c *deliveryCounts) totals() (handled, duplicates int) {
	for i := range c.seen {
		if n := int(c.seen[i].Load()); n > 0 {
			handled, duplicates = handled+1, duplicates+n-1
		}
	}
	return handled, duplicates + int(c.unknown.Load())
}

// reading is a snapshot of the measured counters.
type reading struct {
	at      time.Time
	cpu     time.Duration // of this process; -1: unknown
	mallocs uint64
	calls   int64
	redis   *redisReading // nil: not available
}

type redisReading struct {
	cpu      float64 // seconds
	commands float64
}

func takeReading(ctx context.Context, conn *cli.Connection) (reading, error) {
	var r reading
	if conn.Measured() {
		info, err := conn.Redis.InfoMap(ctx, "cpu", "stats").Result()
		if err != nil {
			return r, fmt.Errorf("read INFO of redis: %w", err)
		}
		r.redis = readInfo(info)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.at, r.cpu, r.mallocs, r.calls = time.Now(), meter.ProcessCPU(), memory.Mallocs, conn.Calls.Count()
	return r, nil
}

// readInfo takes the CPU time of the main thread, which executes the commands,
// if the server reports it (since 6.2).
func readInfo(info map[string]map[string]string) *redisReading {
	field := func(section, name string) (float64, bool) {
		value, err := strconv.ParseFloat(info[section][name], 64)
		return value, err == nil
	}
	user, ok := field("CPU", "used_cpu_user_main_thread")
	sys, ok2 := field("CPU", "used_cpu_sys_main_thread")
	if !ok || !ok2 {
		user, ok = field("CPU", "used_cpu_user")
		sys, ok2 = field("CPU", "used_cpu_sys")
	}
	commands, ok3 := field("Stats", "total_commands_processed")
	if !ok || !ok2 || !ok3 {
		return nil
	}
	return &redisReading{user + sys, commands}
}

func (b *benchRun) result(before, after reading) resultLine {
	n := float64(b.n)
	seconds := after.at.Sub(before.at).Seconds()
	slices.Sort(b.counts.lateness)
	handled, duplicates := b.counts.totals()
	r := resultLine{
		N: b.n, PayloadBytes: b.payload, MaxConcurrent: b.maxConcurrent,
		Seconds:            output.Rounded(seconds),
		TimersPerS:         output.Rounded(n / seconds),
		RedisCallsPerTimer: output.Rounded(float64(after.calls-before.calls) / n),
		AllocsPerTimer:     output.Rounded(float64(after.mallocs-before.mallocs) / n),
		LatenessMSP50:      output.Rounded(quantile(b.counts.lateness, 0.5) / 1000),
		LatenessMSP99:      output.Rounded(quantile(b.counts.lateness, 0.99) / 1000),
		Handled:            handled,
		Duplicates:         duplicates,
	}
	if before.cpu >= 0 && after.cpu >= 0 {
		r.ClientCPUUsPerTimer = new(output.Rounded(float64((after.cpu - before.cpu).Microseconds()) / n))
	}
	if before.redis != nil && after.redis != nil {
		r.RedisCPUUsPerTimer = new(output.Rounded((after.redis.cpu - before.redis.cpu) * 1e6 / n))
		r.RedisCommandsPerTimer = new(output.Rounded((after.redis.commands - before.redis.commands) / n))
	}
	return r
}

// quantile returns the q-quantile of a sorted, non-empty list.
func quantile(sorted []int64, q float64) float64 {
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}
