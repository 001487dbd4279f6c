package main

import "math"

// goal is a bound that Wakebell must reach, and one that it aims at.
type goal struct {
	what      string
	must, aim float64
	atMost    bool // upper bounds; else lower bounds
	unit      string
	value     func(*results) float64 // NaN: not measured
}

// verdict says which bound is reached.
func (g goal) verdict(value float64) string {
	reached := func(bound float64) bool {
		if g.atMost {
			return value <= bound
		}
		return value >= bound
	}
	switch {
	case math.IsNaN(value):
		return "not measured"
	case reached(g.aim):
		return "aim"
	case reached(g.must):
		return "must"
	default:
		return "**missed**"
	}
}

// figure returns the median of a contender's figure.
func figure(trial, contender, name string) func(*results) float64 {
	return func(r *results) float64 { return r.median(trial, contender, name) }
}

// against returns the ratio of a contender's rate to that of another, or to the best of
// those whose names have the prefix other.
func against(trial, contender, other string) func(*results) float64 {
	return func(r *results) float64 {
		below := r.values(trial, other, rate)
		if below == nil {
			below = r.values(trial, r.best(trial, other), rate)
		}
		return medianRatio(r.values(trial, contender, rate), below)
	}
}

// costs returns the ratio of a contender's CPU time per timer to that of Wakebell.
func costs(trial, contender string) func(*results) float64 {
	return cpuAgainst(trial, contender, "wakebell")
}

// cpuAgainst returns the ratio of a contender's CPU time per timer to that of another.
func cpuAgainst(trial, contender, other string) func(*results) float64 {
	return func(r *results) float64 {
		return medianRatio(r.values(trial, contender, bothUS), r.values(trial, other, bothUS))
	}
}

// times scales a value.
func times(factor float64, value func(*results) float64) func(*results) float64 {
	return func(r *results) float64 { return factor * value(r) }
}

// worse is the larger of two values.
func worse(a, b func(*results) float64) func(*results) float64 {
	return func(r *results) float64 { return math.Max(a(r), b(r)) }
}

const node200 = "wakebell-200"

// goals has the goals, as ratios where machines differ.
var goals = []goal{
	{"handled/s against the floor, a loop over the same exchanges", 0.75, 0.90, false, "×", against("deliver", node200, "floor")},
	{"… against the bare loop", 0.70, 0.90, false, "×", against("deliver", node200, "bare")},
	{"… against asynq at its best concurrency", 14, 18, false, "×", against("deliver", node200, "asynq")},
	{"… against BullMQ at its best concurrency", 8, 10, false, "×", against("deliver", node200, "bullmq")},
	{"… against River at its best", 14, 20, false, "×", against("deliver", node200, "river")},
	{"… against graphile-worker", 2, 4, false, "×", against("deliver", node200, "graphile")},
	{"… with appendfsync everysec against none", 0.75, 0.90, false, "×", against("persistence-deliver", "wakebell-everysec", "wakebell-none")},
	{"CPU of the client per timer", 2.8, 2.2, true, "µs", figure("deliver", node200, clientUS)},
	{"allocations per timer", 12, 5, true, "", figure("deliver", node200, allocsPer)},
	{"CPU of Redis per timer", 5, 4.2, true, "µs", figure("deliver", node200, redisUS)},
	{"max_concurrent 5, handled/s", 25_000, 150_000, false, "/s", figure("deliver", "wakebell-5", rate)},
	{"1 KiB bodies against the floor with 1 KiB", 0.75, 0.90, false, "×", against("deliver-1k", node200, "floor")},
	{"CPU of Redis per timer with 1 KiB", 7, 5.5, true, "µs", figure("deliver-1k", node200, redisUS)},
	{"batches of 100 against single timers, one round trip for each call", 1.2, 5, false, "×", against("deliver-write", "batch-100", node200)},
	{"… 5 µs of CPU for each call", 1.2, 1.5, false, "×", against("deliver-compute", "batch-100", node200)},
	{"timers of one key/s, an exchange for each", 8000, 20_000, false, "/s", figure("hot-key", "wakebell", rate)},
	{"… leased together and run one after the other, with `KeyRun(100)`", 8000, 20_000, false, "/s", figure("hot-key", "key-run", rate)},
	{"reminders set/s by 50 callers", 20_000, 50_000, false, "/s", figure("reminders", "set", rate)},
	{"reminders fired/s", 20_000, 50_000, false, "/s", figure("reminders", "fired", rate)},
	{"recurring schedules fired/s", 35_000, 50_000, false, "/s", figure("recurring", "fired", rate)},
	{"30,000 timers/s for 10 min with 10 M pending: lateness p99", 20, 10, true, "ms", figure("sustained", "wakebell", lateP99)},
	{"with metrics against without", 0.95, 0.98, false, "×", against("observe", "metrics", "off")},
	{"one schedule call against a bare EVALSHA", 0.85, 0.95, false, "×", against("schedule", "wakebell", "evalsha")},
	{"50 schedule calls at once against asynq", 1.1, 2, false, "×", against("schedule-50", "wakebell", "asynq")},
	{"batches of 500 against one variadic MULTI each", 0.7, 0.9, false, "×", against("schedule-batch", "wakebell", "multi")},
	{"10,000 in a call against one variadic MULTI", 0.7, 0.9, false, "×", against("schedule-bulk", "wakebell", "multi")},
	{"batches of 500 against BullMQ addBulk", 4, 6, false, "×", against("schedule-batch", "wakebell", "bullmq")},
	{"lateness p50, planned and due at once", 3, 1.2, true, "ms", worse(figure("lateness", "now", lateP50), figure("lateness", "in-20ms", lateP50))},
	{"lateness p99, planned and due at once", 10, 4, true, "ms", worse(figure("lateness", "now", lateP99), figure("lateness", "in-20ms", lateP99))},
	{"2,000 timers/s on one topic: CPU of client and Redis per timer", 50, 35, true, "µs", figure("steady-2000", "wakebell", bothUS)},
	{"… asynq against Wakebell", 2.5, 4.5, false, "×", costs("steady-2000", "asynq")},
	{"… BullMQ against Wakebell", 2.5, 4.5, false, "×", costs("steady-2000", "bullmq")},
	{"10,000 timers/s on one topic: CPU of client and Redis per timer", 30, 15, true, "µs", figure("steady-10000", "wakebell", bothUS)},
	{"… asynq against Wakebell", 5, 10, false, "×", costs("steady-10000", "asynq")},
	{"… BullMQ against Wakebell", 5, 10, false, "×", costs("steady-10000", "bullmq")},
	{"1,000 topics with 20 timers/s: CPU of client and Redis per timer", 60, 30, true, "µs", figure("topics", "wakebell", bothUS)},
	{"… lateness p99", 15, 10, true, "ms", figure("topics", "wakebell", lateP99)},
	{"schedule and delivery at 2,000/s: CPU of client and Redis per timer", 100, 50, true, "µs", figure("life", "wakebell", bothUS)},
	{"CPU per timer, 4 shards on 4 masters against 1 on 1, all due at once", 1.1, 1, true, "×", cpuAgainst("shards", "4-on-4", "1-on-1")},
	{"… 2,000 timers/s of each shard", 1.1, 1, true, "×", cpuAgainst("shards-steady", "4-on-4", "1-on-1")},
	{"early", 0, 0, true, "", worse(figure("lateness", "now", earlyOnes), figure("lateness", "in-20ms", earlyOnes))},
	{"one idle topic: commands/s", 1, 0.3, true, "/s", figure("idle", "1", idleCommands)},
	{"one idle topic: CPU of the client", 0.1, 0.03, true, "% of a core", times(100, figure("idle", "1", idleClient))},
	{"1,000 idle topics: commands/s a topic", 0.3, 0.1, true, "/s", figure("idle", "1000", idleCommands)},
	{"1,000 idle topics: CPU of the client", 15, 5, true, "% of a core", times(100, figure("idle", "1000", idleClient))},
	{"10,000 idle topics: commands/s a topic", 0.3, 0.1, true, "/s", figure("idle", "10000", idleCommands)},
	{"10,000 idle topics: CPU of the client", 7, 4, true, "% of a core", times(100, figure("idle", "10000", idleClient))},
	{"10,000 idle topics: memory a topic", 9, 6, true, "KiB", times(1.0/1024, figure("idle", "10000", idleBytes))},
	{"20 nodes on one topic, 500 timers/s: empty exchanges per timer", 2, 0.5, true, "", figure("nodes", "20", emptyPer)},
	{"Redis per pending timer, 1 M of them", 420, 380, true, "bytes", figure("memory", "1M", bytesPer)},
	{"Redis µs per timer with 5 M pending against 1 k", 1.25, 1.1, true, "×", figure("depth", "5M", deepRedis)},
	{"elapsed per timer with 5 M pending against 1 k", 1.25, 1.1, true, "×", figure("depth", "5M", deepWall)},
}
