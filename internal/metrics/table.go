package metrics

import "go.opentelemetry.io/otel/attribute"

// Kind is the kind of an instrument.
type Kind string

// The kinds of instruments, as Prometheus names them.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	KindHistogram Kind = "histogram"
)

// Instrument describes a metric.
type Instrument struct {
	Group, Name, Unit, Description string
	Kind                           Kind
	Labels                         []attribute.Key
	Optional                       []attribute.Key // labels that only some series have
	Buckets                        []float64       // upper bounds, of a histogram
}

// The labels. A name of the OpenTelemetry conventions is used where there is one.
const (
	destination = attribute.Key("messaging.destination.name")
	partition   = attribute.Key("messaging.destination.partition.id")
	system      = attribute.Key("messaging.system")
	operation   = attribute.Key("messaging.operation.name")
	errorType   = attribute.Key("error.type")
	outcome     = attribute.Key("wakebell.outcome")
	attempt     = attribute.Key("wakebell.attempt")
	result      = attribute.Key("wakebell.result")
	part        = attribute.Key("wakebell.part")
	shard       = attribute.Key("wakebell.shard")
	overlap     = attribute.Key("wakebell.overlap")
	gateName    = attribute.Key("wakebell.gate")
	rpcMethod   = attribute.Key("rpc.method")
	rpcCode     = attribute.Key("rpc.response.status_code")
	direction   = attribute.Key("network.io.direction")
	bound       = attribute.Key("wakebell.bound")
	nodeRole    = attribute.Key("wakebell.role")
	version     = attribute.Key("version")
	goVersion   = attribute.Key("goversion")

	forecastWindow = attribute.Key("window")

	sessionKind = attribute.Key("wakebell.session")
	outboxTable = attribute.Key("wakebell.outbox")
	recordKind  = attribute.Key("wakebell.record")
)

// Labels describes the labels, in the order of the documentation.
var Labels = []struct {
	Key  attribute.Key
	Text string
}{
	{destination, "topic with its prefix, or queue; `_other` beyond the limit"},
	{partition, "number of the shard, with `--metric-shards`, in all series of a topic with shards"},
	{system, "`wakebell`"},
	{operation, "`process`, `schedule` or `publish`"},
	{errorType, "class of the failure; absent without one"},
	{outcome, "what became of what is counted"},
	{attempt, "`first` or `repeated`"},
	{result, "`ok`, or the class of the error"},
	{part, "`settled`, `extended` or `claimed`"},
	{shard, "master of a Cluster, or empty for a single server"},
	{overlap, "`skip` or `queue`: the rule of the schedule"},
	{gateName, "name of the gate; `_other` beyond the limit"},
	{rpcMethod, "method of a service, or kind of the message to the gateway"},
	{rpcCode, "`OK`, or the code of the error in capitals"},
	{direction, "`receive` or `transmit`"},
	{bound, "bound of docs/remote.md that was reached"},
	{outboxTable, "name of the table of an outbox"},
	{recordKind, "`audit`, or `topic` for counts and history"},
	{nodeRole, "`primary` or `fallback`"},
	{forecastWindow, "`1m`, `1h` or `24h`"},
	{version, "version of Wakebell"},
	{goVersion, "version of Go that built the program"},
	{sessionKind, "`stream` of Timers, or `link` of an actor system"},
}

// The bounds of buckets. Delays reach from a prefetched timer to a timer that
// waited for a node for a day. Those above a second are at most twice the one before: a
// quantile is interpolated between two of them. Each gate has series of its own for turns,
// which therefore have fewer.
var (
	seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	delays  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 3.5, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 14400, 21600, 43200, 86400}
	turns   = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 21600, 86400}
	sizes   = []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500}
)

// Table has all metrics, in the order of the documentation.
var Table []Instrument

func define(i Instrument) Instrument {
	Table = append(Table, i)
	return i
}

func counter(group, name, unit, text string, labels ...attribute.Key) Instrument {
	return define(Instrument{Group: group, Name: name, Unit: unit, Description: text, Kind: KindCounter, Labels: labels})
}

func gauge(group, name, unit, text string, labels ...attribute.Key) Instrument {
	return define(Instrument{Group: group, Name: name, Unit: unit, Description: text, Kind: KindGauge, Labels: labels})
}

func histogram(group, name, unit, text string, buckets []float64, labels ...attribute.Key) Instrument {
	return define(Instrument{Group: group, Name: name, Unit: unit, Description: text, Kind: KindHistogram, Buckets: buckets, Labels: labels})
}

// or adds labels that only some series have. It replaces the last row of Table.
func (i Instrument) or(optional ...attribute.Key) Instrument {
	i.Optional = optional
	Table[len(Table)-1] = i
	return i
}

const (
	deliveries = "Deliveries"
	exchanges  = "Redis"
	backlogs   = "Backlog"
	clients    = "Clients"
	dead       = "Dead letters"
	queues     = "Queues"
	recurring  = "Recurring schedules"
	gates      = "Gates"
	reminders  = "Reminders"
	remote     = "Remote access"
	process    = "Process"
	outbox     = "Outbox"
)

var (
	consumed        = counter(deliveries, "messaging.client.consumed.messages", "{message}", "Deliveries to a handler, by whether it is the first attempt.", system, operation, attempt)
	settled         = counter(deliveries, "wakebell.deliveries", "{delivery}", "Ends of deliveries: ack, retry, snoozed, expired, dead, rejected, discarded, released, crashed, superseded, cancelled, lease_lost, hung.", destination, outcome)
	processDuration = histogram(deliveries, "messaging.process.duration", "s", "Duration of handlers, middleware included.", seconds, system, operation).or(errorType)
	lateness        = histogram(deliveries, "wakebell.delivery.lateness", "s", "Time from the instant of a timer, or the publishing of a message, to the start of its handler. First attempts only.", delays)
	late99          = gauge(deliveries, "wakebell.delivery.lateness.p99", "s", "99th percentile of the lateness of a topic on this node, of the last 5 to 10 minutes; none if nothing began.", destination)
	took99          = gauge(deliveries, "wakebell.handler.duration.p99", "s", "99th percentile of the duration of handlers of a topic on this node, of the last 5 to 10 minutes; none if none ended.", destination)
	oldestRun       = gauge(deliveries, "wakebell.handler.oldest.age", "s", "Age of the handler of the topic that runs for longest on this node; none if none runs.", destination)
	batchSize       = histogram(deliveries, "wakebell.batch.size", "{delivery}", "Deliveries of a call of a batch handler.", sizes)
	leasesHeld      = gauge(deliveries, "wakebell.leases.held", "{lease}", "Leases that the node holds.")
	leasesLost      = counter(deliveries, "wakebell.leases.lost", "{lease}", "Leases that expired before they were extended or settled.", destination)
	heartbeats      = counter(deliveries, "wakebell.heartbeats.failed", "{heartbeat}", "Heartbeats that failed, came too late, or could not be sent before the lease expired.", destination)
	prefetched      = counter(deliveries, "wakebell.prefetch.returned", "{lease}", "Prefetched leases returned because no handler was free.", destination)
	throttled       = counter(deliveries, "wakebell.deliveries.throttled", "{exchange}", "Exchanges from which a rate limit or a maximum in flight held timers back.", destination)
	keyThrottled    = counter(deliveries, "wakebell.deliveries.throttled.by_key", "{timer}", "Times that a rate limit of its key made a timer wait.", destination)
	byFallbacks     = counter(deliveries, "wakebell.deliveries.fallback", "{delivery}", "Deliveries claimed although another node is the topic's primary.", destination)
	helpRequests    = counter(deliveries, "wakebell.help.requests", "{request}", "Requests of this busy node to others to claim as well.", destination)
	divisionRole    = gauge(deliveries, "wakebell.division.role", "{topic}", "Topics that are divided among nodes, by this node's role; shards count as topics.", nodeRole)
	handlerRestarts = counter(deliveries, "wakebell.handler.restarts", "{restart}", "Restarts of handlers, each after a panic.", destination)
	concurrency     = gauge(deliveries, "wakebell.concurrency.limit", "{handler}", "Handlers that may run at once, if that is adaptive.", destination)
	breakerOpen     = gauge(deliveries, "wakebell.breaker.open", "{breaker}", "1 while the circuit breaker is open or half-open.", destination)
	breakerOpened   = counter(deliveries, "wakebell.breaker.opened", "{event}", "Times that the circuit breaker opened.", destination)
	pollerRestarts  = counter(deliveries, "wakebell.poller.restarts", "{restart}", "Restarts of pollers.", destination)
	joins           = counter(deliveries, "wakebell.joins", "{join}", "Joins that this process made, cancelled, or began to handle: complete, timed_out.", destination, outcome)
	joinParts       = counter(deliveries, "wakebell.join.parts", "{part}", "Ends of parts that this process noted: done, dead, cancelled, missing.", destination, outcome)
	joinAudits      = counter(deliveries, "wakebell.join.audits", "{audit}", "Audits of joins, by what they found late: nothing, ends, timer.", destination, outcome)

	exchangeDuration = histogram(exchanges, "wakebell.exchange.duration", "s", "Duration of exchanges, which settle, extend and claim in one round trip.", seconds, result)
	exchangeSize     = histogram(exchanges, "wakebell.exchange.size", "{lease}", "Leases that an exchange settled, extended and claimed.", sizes, part)
	scriptErrors     = counter(exchanges, "wakebell.redis.errors", "{error}", "Scripts that failed: unavailable, memory_full, denied, wrong_type, stale, timeout, cancelled, other.", errorType)
	outage           = gauge(exchanges, "wakebell.redis.outage", "{outage}", "1 while the pollers wait for Redis to come back, else 0.", shard)
	reconnects       = counter(exchanges, "wakebell.redis.reconnects", "{reconnect}", "Outages of Redis that ended.", shard)
	clockSteps       = counter(exchanges, "wakebell.redis.clock.steps", "{step}", "Jumps of Redis's clock.")
	recordsFailed    = counter(exchanges, "wakebell.records.failed", "{record}", "Entries of the audit, attempts of the history and batches of counts that could not be written.", recordKind)

	backlogDue      = gauge(backlogs, "wakebell.backlog.due", "{timer}", "Timers that are due and not claimed.", destination)
	backlogParked   = gauge(backlogs, "wakebell.backlog.parked", "{timer}", "Timers that are due and wait for others of their key.", destination)
	backlogPending  = gauge(backlogs, "wakebell.backlog.pending", "{timer}", "Timers that are not due, including those that a handler has.", destination)
	backlogRunning  = gauge(backlogs, "wakebell.backlog.running", "{timer}", "Timers that a handler has or that wait on a node for one; of pending. Estimated from 100 leases of a topic that has more.", destination)
	backlogRetrying = gauge(backlogs, "wakebell.backlog.retrying", "{timer}", "Timers that wait for another attempt after a failure; of pending, and estimated likewise.", destination)
	backlogDead     = gauge(backlogs, "wakebell.backlog.dead", "{timer}", "Dead letters that are stored.", destination)
	backlogOldest   = gauge(backlogs, "wakebell.backlog.oldest_due.age", "s", "Time since the first unclaimed timer became due; 0 if none is due.", destination)
	backlogNodes    = gauge(backlogs, "wakebell.topic.nodes", "{node}", "Nodes that listen for hints of the topic.", destination)
	topicPaused     = gauge(backlogs, "wakebell.topic.paused", "{topic}", "1 while the topic is paused on all nodes.", destination)
	topicFault      = gauge(backlogs, "wakebell.topic.fault", "{topic}", "1 while the keys of the topic cannot be read, with the class of the error.", destination, errorType)
	topicFaults     = gauge(backlogs, "wakebell.topics.unreadable", "{topic}", "Topics whose keys cannot be read.")
	forecastDue     = gauge(backlogs, "wakebell.forecast.due", "{timer}", "Timers of all topics that become due within the window.", forecastWindow)
	backlogAge      = gauge(backlogs, "wakebell.backlog.age", "s", "Age of the backlog that is reported.")

	sent              = counter(clients, "messaging.client.sent.messages", "{message}", "Timers that were scheduled, and messages that were published.", system, operation, destination).or(errorType)
	operationDuration = histogram(clients, "messaging.client.operation.duration", "s", "Duration of calls that schedule or publish, retries included.", seconds, system, operation).or(errorType)

	deadAdded      = counter(dead, "wakebell.dead_letters.added", "{timer}", "Timers that the node dead-lettered.", destination)
	deadMissing    = counter(dead, "wakebell.dead_letters.payload_missing", "{timer}", "Due timers without a payload in Redis that the node dead-lettered.", destination)
	orphansRemoved = counter(dead, "wakebell.orphans.removed", "{entry}", "Payloads, lease records and keys without a timer that the node removed.", destination)
	orphansHeld    = gauge(dead, "wakebell.orphans.held", "{payload}", "Payloads without a timer that the node leaves, because so many have none that timers were lost.", destination)
	deadRedriven   = counter(dead, "wakebell.dead_letters.redriven", "{timer}", "Dead letters that this process made timers again.", destination)
	deadDeleted    = counter(dead, "wakebell.dead_letters.deleted", "{timer}", "Dead letters that this process deleted.", destination)

	queueDepth      = gauge(queues, "wakebell.queue.depth", "{message}", "Messages that wait in a queue.", destination)
	queueInFlight   = gauge(queues, "wakebell.queue.in_flight", "{message}", "Messages that are being handled.", destination)
	queueDead       = gauge(queues, "wakebell.queue.dead", "{message}", "Dead letters of a queue.", destination)
	queueOldest     = gauge(queues, "wakebell.queue.oldest.age", "s", "Time since the next message to be claimed was published; 0 if none waits, or if its id does not say when.", destination)
	queueNodes      = gauge(queues, "wakebell.queue.nodes", "{node}", "Nodes that listen for hints of the queue. Consumers of other programs do not.", destination)
	queueDuplicates = counter(queues, "wakebell.queue.duplicates", "{message}", "Messages that were not published because of their deduplication key.", destination)

	scheduleFires    = counter(recurring, "wakebell.schedule.fires", "{run}", "Runs that this process fired.", destination)
	scheduleMisfires = counter(recurring, "wakebell.schedule.misfires", "{run}", "Runs that no beat fired at their instant: they are fired late or skipped, as the rule says. Instants that are skipped together count once.", destination)
	scheduleDelay    = histogram(recurring, "wakebell.schedule.delay", "s", "Time from the instant of a run to its firing.", delays)
	scheduleCount    = gauge(recurring, "wakebell.schedules", "{schedule}", "Recurring schedules of all prefixes, those of Python included.")
	scheduleBeats    = gauge(recurring, "wakebell.beats", "{beat}", "Connected beats: those of Wakebell, and a beat of Python that holds RedBeat's lock.")
	scheduleOverdue  = gauge(recurring, "wakebell.schedule.overdue.age", "s", "Time since the instant of the run that waits longest for a beat; 0 if none is due.")
	scheduleOverlaps = counter(recurring, "wakebell.schedule.overlaps", "{run}", "Runs that were skipped or delayed because the timer of the previous run existed.", destination, overlap)

	gateWait     = histogram(gates, "wakebell.gate.wait", "s", "Time from a request to its turn.", turns, gateName)
	gateHold     = histogram(gates, "wakebell.gate.hold", "s", "Duration of turns.", turns, gateName)
	gateHandOver = counter(gates, "wakebell.gate.handovers", "{turn}", "Turns that were passed on inside the process.", gateName)
	gateLost     = counter(gates, "wakebell.gate.turns.lost", "{turn}", "Turns that ended before they were released.", gateName)
	gateQueueLen = gauge(gates, "wakebell.gate.queue.length", "{request}", "Requests of this process that wait for a turn.", gateName)
	gateHeldAge  = gauge(gates, "wakebell.gate.held.age", "s", "Age of the turn of any process; 0 without one.", gateName)
	gateWaiting  = gauge(gates, "wakebell.gate.waiting", "{request}", "Requests of all processes that wait for a turn, of gates in use.", gateName)

	reminderDeliveries = counter(reminders, "wakebell.reminder.deliveries", "{reminder}", "Deliveries of reminders to actors: ack, retry, rejected, unreachable, abandoned.", outcome)
	reminderRequests   = counter(reminders, "wakebell.reminder.requests", "{request}", "Requests about reminders.", result)

	remoteSessions     = gauge(remote, "wakebell.remote.sessions", "{session}", "Sessions of remote peers.", sessionKind)
	remoteRequests     = counter(remote, "wakebell.remote.requests", "{request}", "Calls of peers to a service, and requests of peers and actors to the gateway.", rpcMethod, rpcCode)
	remoteRejected     = counter(remote, "wakebell.remote.frames.rejected", "{frame}", "Frames, messages, calls and connections of peers that were refused.")
	remoteIO           = counter(remote, "wakebell.remote.io", "By", "Bytes of the connections of peers.", direction)
	remoteBackPressure = counter(remote, "wakebell.remote.backpressure", "{refusal}", "Requests that were refused or had to wait because of a bound.", bound)

	buildInfo = gauge(process, "wakebell.build.info", "{process}", "1, with the versions of the program.", version, goVersion)

	outboxLag     = gauge(outbox, "wakebell.outbox.lag", "s", "Age of the oldest row that waits in an outbox; 0 if none does. All relays of a table report the same.", outboxTable)
	outboxWaiting = gauge(outbox, "wakebell.outbox.waiting", "{row}", "Rows that wait in an outbox, counted up to 10,000.", outboxTable)
	outboxFailed  = gauge(outbox, "wakebell.outbox.failed", "{row}", "Rows of an outbox set aside with their error, counted up to 10,000.", outboxTable)
	outboxRelayed = counter(outbox, "wakebell.outbox.relayed", "{row}", "Rows that this relay settled: relayed, deferred, rejected.", outboxTable, outcome)
)
