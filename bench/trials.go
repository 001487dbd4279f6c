package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/wakebell/wakebell/internal/opened"
)

// allTrials are the trials in the order in which they run.
func allTrials() []trial {
	deliver := trial{name: "deliver", about: "timers that are due, 100 B bodies, a handler that does nothing", contenders: []contender{
		{"floor", floor(100)},
		{"bare", bare(bareText)},
		{"bare-classes", bare(classesText)},
		{"wakebell-200", node(200, 100)},
		{"wakebell-5", node(5, 100)},
		{"batch-100", nodeHandling(100, used{}, inBatches(100, 5, nil))},
		{"wakebell-100", node(100, 100)},
		{"batch-100-alone", nodeHandling(100, used{}, inBatches(100, 1, nil))},
		{"inline", nodeInline(200, 100)},
	}}
	for _, c := range []int{10, 50, 200, 500} {
		deliver.contenders = append(deliver.contenders, contender{fmt.Sprintf("asynq-%d", c), asynqServer(c)})
	}
	for _, c := range []int{100, 500} {
		deliver.contenders = append(deliver.contenders, contender{fmt.Sprintf("bullmq-%d", c), bullMQ("handle", c)})
	}
	deliver.contenders = append(deliver.contenders,
		contender{"river-100", riverWorkers(100, 0)}, contender{"river-2000", riverWorkers(2000, 2*time.Millisecond)}, contender{"graphile-24", graphile(24)},
		contender{"faststream-default", faststream(0)}, contender{"faststream-500", faststream(500)})
	concurrent := trial{name: "concurrency", about: "the same by max_concurrent"}
	for _, c := range plotConcurrent {
		concurrent.contenders = append(concurrent.contenders, contender{concurrencyName(c), node(c, 100)})
	}
	load := trial{name: "load", about: "timers on one topic, one after the other, by timers/s"}
	for _, r := range plotRates {
		load.contenders = append(load.contenders, contender{strconv.Itoa(r), steady{topics: 1, rate: float64(r), bytes: 100, window: automatic}.run})
	}
	return append([]trial{
		deliver,
		concurrent,
		load,
		{name: "deliver-1k", about: "the same with bodies of 1 KiB", contenders: []contender{
			{"floor", floor(1024)}, {"wakebell-200", node(200, 1024)}, {"inline", nodeInline(200, 1024)},
		}},
		{name: "deliver-write", about: "the same with a handler that makes one round trip to Redis", contenders: []contender{
			{"wakebell-200", nodeHandling(100, used{}, single(200, increment))},
			{"wakebell-5", nodeHandling(100, used{}, single(5, increment))},
			{"batch-10", nodeHandling(100, used{}, inBatches(10, 5, increment))},
			{"batch-100", nodeHandling(100, used{}, inBatches(100, 5, increment))},
		}},
		{name: "deliver-compute", about: "the same with a handler that takes 5 µs of CPU for each call", contenders: []contender{
			{"wakebell-200", nodeHandling(100, used{}, single(200, compute))},
			{"batch-100", nodeHandling(100, used{}, inBatches(100, 5, compute))},
		}},
		{name: "flow", about: "the same with flow control that never holds a timer back", contenders: flowControl()},
		{name: "hot-key", about: "timers that are due, all of one key", contenders: []contender{{"wakebell", oneKey}, {"key-run", oneKeyRun}}},
		{name: "limited", about: "timers that are due, at most 1,000 a second", contenders: []contender{
			{"wakebell", limited}, {"bullmq", limitedBullMQ},
		}},
		{name: "observe", about: "the same with what observes deliveries", contenders: []contender{
			{"off", nodeWith(200, 100, used{meters: noop.NewMeterProvider()})}, {"metrics", measured(200, 100)},
		}},
		{name: "schedule", about: "one timer a call, one caller", contenders: []contender{
			{"wakebell", scheduleCalls(singleCalls, 1)}, {"evalsha", bareEvalsha},
		}},
		{name: "schedule-50", about: "one timer a call, 50 callers", contenders: []contender{
			{"wakebell", scheduleCalls(concurrentCalls, concurrency)}, {"asynq", enqueueCalls}, {"river", insertRiver},
		}},
		{name: "schedule-batch", about: "batches of 500", contenders: []contender{
			{"wakebell", scheduleBatches(batchSize)},
			{"multi", variadicMulti(batchSize)},
			{"bullmq", bullMQ("add", 100)},
			{"river", insertRiverBatches(batchSize)},
		}},
		{name: "schedule-bulk", about: "10,000 timers a call", contenders: []contender{
			{"wakebell", scheduleBatches(bulkSize)}, {"multi", variadicMulti(bulkSize)},
		}},
		{name: "lateness", about: "one timer at a time on an idle topic", contenders: []contender{
			{"now", lateness(0)}, {"in-20ms", lateness(20 * time.Millisecond)},
		}},
		{name: "steady-2000", about: "2,000 timers/s on one topic, one after the other", contenders: []contender{
			{"wakebell", steady{topics: 1, rate: 2000, bytes: 100, window: automatic}.run},
			{"window-0", steady{topics: 1, rate: 2000, bytes: 100}.run},
			{"asynq", steadyAsynq(2000, 0)},
			{"asynq-5ms", steadyAsynq(2000, 5*time.Millisecond)},
			{"bullmq", steadyBullMQ(2000)},
			{"river", steadyRiver(2000)},
		}},
		{name: "steady-10000", about: "10,000 timers/s on one topic, one after the other", contenders: []contender{
			{"wakebell", steady{topics: 1, rate: 10_000, bytes: 100, window: automatic}.run},
			{"window-0", steady{topics: 1, rate: 10_000, bytes: 100}.run},
			{"asynq", steadyAsynq(10_000, 0)},
			{"asynq-5ms", steadyAsynq(10_000, 5*time.Millisecond)},
			{"bullmq", steadyBullMQ(10_000)},
			{"river", steadyRiver(10_000)},
		}},
		{name: "topics", about: "1,000 topics with 20 timers/s each, at random instants", contenders: []contender{
			{"wakebell", steady{topics: 1000, rate: 20, bytes: 100, random: true, warm: warmUp, window: automatic}.run},
			{"window-0", steady{topics: 1000, rate: 20, bytes: 100, random: true, warm: warmUp}.run},
			{"alone", steady{topics: 1000, rate: 20, bytes: 100, random: true, warm: warmUp, window: automatic, use: used{switches: opened.Switches{NoCoalescing: true}}}.run},
		}},
		{name: "topics-100", about: "100 topics with 20 timers/s each, at random instants", contenders: []contender{
			{"wakebell", steady{topics: 100, rate: 20, bytes: 100, random: true, warm: warmUp, window: automatic}.run},
			{"window-0", steady{topics: 100, rate: 20, bytes: 100, random: true, warm: warmUp}.run},
			{"alone", steady{topics: 100, rate: 20, bytes: 100, random: true, warm: warmUp, window: automatic, use: used{switches: opened.Switches{NoCoalescing: true}}}.run},
		}},
		{name: "life", about: "2,000 timers/s, each scheduled by one of 50 callers for 300 ms later, and handled", contenders: []contender{
			{"wakebell", life(lifePerSecond, 0)},
			{"window-0", life(lifePerSecond, -1)},
			{"callers", callers(lifePerSecond)},
		}},
		{name: "shards", about: "timers of a topic that are due, by its shards and the masters of the Cluster", contenders: spread(false)},
		{name: "shards-steady", about: "2,000 timers/s of each shard, one after the other", contenders: spread(true)},
		{name: "nodes", about: "20 nodes on one topic, 500 timers/s", contenders: []contender{
			{"20", competing{nodes: 20, topics: 1, perSecond: 500}.run},
			{"undivided", competing{nodes: 20, topics: 1, perSecond: 500, undivided: true}.run},
		}},
		{name: "nodes-16", about: "20 nodes on 16 topics, 2,000 timers/s together", contenders: []contender{
			{"20", competing{nodes: 20, topics: 16, perSecond: 2000}.run},
			{"undivided", competing{nodes: 20, topics: 16, perSecond: 2000, undivided: true}.run},
		}},
		{name: "memory", about: "Redis's memory for pending timers", once: true, contenders: []contender{
			{"1M", pendingBytes(1_000_000)},
		}},
		{name: "depth", about: "cost of a timer with many pending timers, against a Redis with a thousand", once: true, contenders: []contender{
			{"5M", depth(5_000_000)},
		}},
		{name: "idle", about: "topics without timers in one node", once: true, contenders: []contender{
			{"1", idleNode(1)}, {"1000", idleNode(1000)}, {"10000", idleNode(10_000)},
		}},
	}, slices.Concat(edges(), bulk(), features(), persistence(), growth())...)
}
