package incidents

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
)

// incident is something that goes wrong, and what an operator sees of it. Empty signs are
// not asked for.
type incident struct {
	name    string
	title   string // of its row in docs/operations.md
	strike  func(*world)
	alerts  []string      // that fire
	path    string        // of the page; empty: the overview
	page    string        // what it shows, as a regular expression, as the next two
	doctor  string        // a line of doctor --all
	explain []string      // the command that names the cause
	says    string        // what it says
	within  time.Duration // until all of this is seen
}

// long ago is due for longer than every alert waits.
const longAgo = "2020-01-01T00:00:00Z"

// late schedules timers of a topic that are due, with the ids late-1 and so on.
func (w *world) late(topic string, n int, args ...string) {
	for i := range n {
		w.must(append([]string{"schedule", "-t", topic, "--id", fmt.Sprint("late-", i+1), "--at", longAgo}, args...)...)
	}
}

// inSuite is the incident that the suite produces too. It needs no time of its own.
const inSuite = "paused"

// table has the incidents. The bounds on the times are for a machine that runs several of
// them at once.
var table = []incident{
	{
		name: "total-silence", title: "all nodes and beats die", // all nodes and beats die at once
		strike: func(w *world) {
			w.nodes[0].kill()
			w.nodes[1].kill()
			w.beat.kill()
			w.late("mail", 1)
		},
		alerts: []string{"WakebellNoNode", "WakebellProcessDown"},
		page:   `topic with due timers and no node`,
		doctor: `(?s)bad +nodes +mail: none, and 1 timers are due.*|bad +beats +none`, explain: []string{"explain", "mail", "late-1"}, says: `no node handles its topic`,
		within: 5 * time.Minute, // Prometheus looks back so far for the series of a dead process
	},
	{
		name: "node-dead", title: "a node dies",
		strike: func(w *world) { w.nodes[0].kill() },
		alerts: []string{"WakebellProcessDown"},
		doctor: `good +nodes +mail: 1\n`,
		within: time.Minute,
	},
	{
		name: "beat-dead", title: "no beat",
		strike: func(w *world) { w.beat.kill() },
		alerts: []string{"WakebellNoBeat", "WakebellProcessDown"},
		page:   `Beats: none, and 1 recurring schedules`,
		doctor: `bad +beats +none, and 1 recurring schedules`,
		within: time.Minute,
	},
	{
		name: "redis-outage", title: "outage of Redis",
		strike: func(w *world) { w.redis.Kill() },
		alerts: []string{"WakebellRedisDown"},
		page:   `(?i)redis[^<]*(unavailable|not reachable|does not answer|cannot be reached|refused)|503`,
		doctor: `bad +reachable`, explain: []string{"explain", "mail", "later"}, says: `(?i)refuses|unavailable`,
		within: 2 * time.Minute,
	},
	{
		name: "hot-key", title: "hot key", // the timers of a key wait for one that runs long
		strike: func(w *world) {
			w.node("-t", "keyed", "--per-key", "1", "--max-concurrent", "10", "--exec", "sleep 600")
			w.late("keyed", 3, "--key", "customer")
		},
		page: `wait for their key`, doctor: `good +progress +keyed: .*2 wait for their keys`,
		explain: []string{"explain", "keyed", "late-3"}, says: `(?i)key`,
		within: time.Minute,
	},
	{
		name: "paused", title: "paused topic",
		strike: func(w *world) {
			w.must("pause", "-t", "mail", "--reason", "drill", "--by", "ada")
			w.late("mail", 1)
		},
		alerts: []string{"WakebellTimersLate"}, page: `by ada: drill`,
		doctor: `warn +orders +mail: paused by ada: drill`, explain: []string{"explain", "mail", "late-1"}, says: `paused by ada: drill`,
		within: time.Minute,
	},
	{
		name: "wrong-type", title: "key of another type", // another program wrote a key of a topic
		strike: func(w *world) {
			w.redisCommand("SADD", "timers_topics", "broken")
			w.redisCommand("SET", "timers_timeline:broken", "text")
		},
		alerts: []string{"WakebellTopicUnreadable"}, page: `Topics that cannot be read`,
		doctor: `bad +types +broken: "timers_timeline:broken" holds a string, want zset`,
		within: time.Minute,
	},
	{
		name: "topic-without-node", title: "topic without nodes",
		strike: func(w *world) { w.late("alone", 2) },
		alerts: []string{"WakebellTopicWithoutNode", "WakebellTimersLate"}, page: `topic with due timers and no node`,
		doctor: `bad +nodes +alone: none, and 2 timers are due`, explain: []string{"explain", "alone", "late-1"}, says: `no node handles its topic`,
		within: time.Minute,
	},
	{
		name: "queue-unattended", title: "queue without consumers",
		strike: func(w *world) { w.must("queue", "publish", "--queue", "jobs", "--text", "a") },
		alerts: []string{"WakebellQueueUnattended"}, path: "queues", page: `jobs`,
		doctor: `bad +queue +jobs: no consumer takes its 1 messages`,
		within: 3 * time.Minute,
	},
	{
		name: "stuck-handler", title: "stuck handler",
		strike: func(w *world) {
			w.node("-t", "stuck", "--max-concurrent", "1", "--exec", "sleep 3600")
			w.late("stuck", 2)
		},
		alerts: []string{"WakebellHandlerStuck", "WakebellTimersLate"}, page: `class="late"`,
		doctor:  `warn +progress +stuck: stuck: 1 timers are due, .* 1 handlers run, the first, of late-[12] on `,
		explain: []string{"ls", "-t", "stuck", "--running"}, says: `late-[12] +running .*/\d+`,
		within: 5 * time.Minute,
	},
	{
		name: "memory-full", title: "memory full",
		strike: func(w *world) { // the beat stores a timer every second
			w.must("schedules", "put", "often", "-t", "mail", "--every", "1s")
			w.redisCommand("CONFIG", "SET", "maxmemory", "1mb")
		},
		alerts:  []string{"WakebellMemoryFull"},
		doctor:  `bad +memory +.* of 1.0 MiB used`,
		explain: []string{"schedule", "-t", "mail"}, says: `(?i)memory`,
		within: time.Minute,
	},
	{
		name: "records-refused", title: "records refused", // another program wrote the key of counts
		strike: func(w *world) {
			w.redisCommand("SET", "timers_counts:mail", "text")
			w.must("schedules", "put", "often", "-t", "mail", "--every", "1s")
		},
		alerts: []string{"WakebellRecordsFailed"},
		doctor: `bad +types +mail: "timers_counts:mail" holds a string, want hash`,
		within: 2 * time.Minute,
	},
	{
		name: "slow-handler", title: "slow handler", // more is due than the handlers take
		strike: func(w *world) {
			w.late("slow", 20)
			w.node("-t", "slow", "--max-concurrent", "1", "--exec", "sleep 6")
		},
		alerts: []string{"WakebellTimersLate"}, page: `class="late"`,
		doctor: `(warn|bad) +progress +slow: (late|stuck)`, explain: []string{"explain", "slow", "late-20"}, says: `due timers come before it`,
		within: time.Minute,
	},
	{
		name: "breaker-open", title: "open breaker",
		strike: func(w *world) {
			w.late("failing", 10)
			w.node("-t", "failing", "--breaker", "0.5", "--breaker-deliveries", "3", "--breaker-open-for", "1h", "--retry-initial", "1h", "--exec", "echo refused >&2; exit 1")
		},
		alerts:  []string{"WakebellBreakerOpen"},
		doctor:  `warn +progress +failing: .*the circuit breaker of .* is open`,
		explain: []string{"explain", "failing", "late-10"}, says: `circuit breakers`,
		within: time.Minute,
	},
	{
		name: "dead-letters-grow", title: "dead letters grow",
		strike: func(w *world) {
			p := w.node("-t", "rejected", "--max-attempts", "1", "--exec", "exit 1")
			w.await("the node is scraped", startLimit, func() bool { return len(w.prom.Query(`up{instance="`+p.metrics+`"} == 1`)) > 0 })
			for range 3 { // an increase is seen between two scrapes
				w.must("schedule", "-t", "rejected", "--count", "5")
				w.await("it is counted", startLimit, func() bool { return len(w.prom.Query("sum(wakebell_dead_letters_added_total) > 0")) > 0 })
			}
		},
		alerts: []string{"WakebellDeadLettersGrow"}, page: `15 dead letters`,
		doctor: `warn +dead +rejected: 15 dead letters, \d+ of the last 30 min`,
		within: 2 * time.Minute,
	},
	{
		name: "settings-differ", title: "nodes differ",
		strike: func(w *world) { w.node("-t", "mail", "--max-concurrent", "9", "--exec", "exit 0") },
		doctor: `warn +settings +mail: differ: max_concurrent 5 \(2 nodes\), 9 \(1 nodes\)`,
		within: time.Minute,
	},
	{
		name: "versions-differ", title: "nodes of two versions",
		strike: func(w *world) {
			other, err := stamped()
			require.NoError(w, err, other)
			w.path, other = other, w.path
			w.node("-t", "mail", "--exec", "exit 0")
			w.path = other
		},
		doctor: `warn +versions +.*differ`,
		within: time.Minute,
	},
}
