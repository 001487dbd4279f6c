package timers

import (
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Keyspace derives the keys of topics from the base names.
type Keyspace struct {
	wakebelltype.Keys
	Names
	clustered bool   // names without a hash tag are put in braces
	database  string // "@" and the number of the database, "" for 0
}

// Names are the base names that only Wakebell uses. Users cannot change them; tests that
// share a Redis do. An empty name stands for its default.
type Names struct {
	Leases    string // hash: id → lease record; default "timers_leases"
	Dead      string // stream: dead letters; default "timers_dead"
	Exchange  string // string: last exchange of a stream of a poller; default "timers_exchange"
	Hint      string // string: outstanding hint; also the channel of hints; default "timers_hint"
	Flow      string // zset: state of the flow control of the topic, if it has any; default "timers_flow"
	TimerKeys string // hash: id → place and key of a timer with a key; default "timers_keys"
	KeyOrder  string // zset: timers of keys that have several, in their order; default "timers_order"
	KeyStates string // hash: key → the timers that hold it; default "timers_busy"
	KeyRates  string // zset: key → when all its tokens are back, with RateLimitByKey; default "timers_rates"
	KeyTurns  string // zset: key → when its next turn is, with FairKeys; default "timers_turns"
	Control   string // hash: pause and overrides of the topic; default "timers_control"
	Once      string // string: mark of a timer with Once; default "timers_once"
	Keyed     string // string: answer to a call with an idempotency key; default "timers_keyed"
	Events    string // channel: events; default "timers_events"
	Runs      string // hash: recurring schedule → last run scheduled, in a Cluster; default "timers_runs"
	Counts    string // hash: counts per minute and day; default "timers_counts"
	History   string // stream: attempts; default "timers_history"
	Nodes     string // zset: nodes that divide the topic → when their announcements expire; default "timers_nodes"
	Results   string // hash: progress and result of a timer; default "timers_results"
	Join      string // hash: a join of timers; default "timers_join"
	Reports   string // hash: node → its state for the topic, see Overview.Reports; default "timers_reports"
	Topics    string // set: all topics, a single key; default "timers_topics"
	Queues    string // set: all queues, a single key; default "timers_queues"
	Shards    string // hash: topic with shards → its layout, a single key; default "timers_shards"
	Joins     string // zset: joins → when to check them next, a single key; default "timers_joins"
	Backlog   string // string: backlog of all topics as metrics last read it, a single key; default "timers_backlog"
}

// NewKeyspace returns the keyspace of k, whose empty names take their defaults. The
// error wraps [wakebelltype.ErrInvalid] and reports names that are used twice.
func NewKeyspace(k wakebelltype.Keys, others ...Names) (Keyspace, error) {
	s := Keyspace{Keys: k}
	for _, n := range others {
		s.Names = n
	}
	return s, layout.Complete("keys", s.names())
}

// OnCluster returns the keyspace for a Cluster. Names that have a hash tag of their own
// stay as they are, as do all names if the base names have one.
func (k Keyspace) OnCluster() Keyspace {
	k.clustered = !layout.HasTag(k.Timeline)
	return k
}

// InDatabase returns the keyspace for a database of a server. All of them share the
// channels, so the names of channels have the number, unless it is 0.
func (k Keyspace) InDatabase(n int) Keyspace {
	if k.database = ""; n != 0 {
		k.database = "@" + strconv.Itoa(n)
	}
	return k
}

// Channel returns the name of a channel that is no topic's.
func (k Keyspace) Channel(name string) string { return name + k.database }

// channel is key for names that are channels too: the number of the database is before
// the topic, where the rights of channels by their beginning allow it.
func (k Keyspace) channel(base, topic string) string {
	if k.database == "" {
		return k.key(base, topic)
	}
	return k.key(base+":"+k.database, topic)
}

// Tagged returns the name of a topic or queue as its keys have it: in braces with
// HashTag, and on a Cluster where its keys would be in several slots without.
func (k Keyspace) Tagged(name string) string {
	if k.braces(name) {
		return "{" + name + "}"
	}
	return name
}

func (k Keyspace) braces(name string) bool {
	return k.HashTag || k.clustered && !layout.HasTag(name)
}

// Bases returns all base names.
func (k Keyspace) Bases() []string { return layout.Bases(k.names()) }

func (k *Keyspace) names() []layout.KeyName {
	return []layout.KeyName{
		{Field: "Timeline", Preset: "timers_timeline", Value: &k.Timeline},
		{Field: "Payloads", Preset: "timers_payloads", Value: &k.Payloads},
		{Field: "Leases", Preset: "timers_leases", Value: &k.Leases},
		{Field: "Dead", Preset: "timers_dead", Value: &k.Dead},
		{Field: "Exchange", Preset: "timers_exchange", Value: &k.Exchange},
		{Field: "Hint", Preset: "timers_hint", Value: &k.Hint},
		{Field: "TimerKeys", Preset: "timers_keys", Value: &k.TimerKeys},
		{Field: "KeyOrder", Preset: "timers_order", Value: &k.KeyOrder},
		{Field: "KeyStates", Preset: "timers_busy", Value: &k.KeyStates},
		{Field: "KeyRates", Preset: "timers_rates", Value: &k.KeyRates},
		{Field: "KeyTurns", Preset: "timers_turns", Value: &k.KeyTurns},
		{Field: "Flow", Preset: "timers_flow", Value: &k.Flow},
		{Field: "Control", Preset: "timers_control", Value: &k.Control},
		{Field: "Once", Preset: "timers_once", Value: &k.Once},
		{Field: "Keyed", Preset: "timers_keyed", Value: &k.Keyed},
		{Field: "Events", Preset: "timers_events", Value: &k.Events},
		{Field: "Runs", Preset: "timers_runs", Value: &k.Runs},
		{Field: "Counts", Preset: "timers_counts", Value: &k.Counts},
		{Field: "History", Preset: "timers_history", Value: &k.History},
		{Field: "Nodes", Preset: "timers_nodes", Value: &k.Nodes},
		{Field: "Results", Preset: "timers_results", Value: &k.Results},
		{Field: "Join", Preset: "timers_join", Value: &k.Join},
		{Field: "Reports", Preset: "timers_reports", Value: &k.Reports},
		{Field: "Topics", Preset: "timers_topics", Value: &k.Topics},
		{Field: "Queues", Preset: "timers_queues", Value: &k.Queues},
		{Field: "Shards", Preset: "timers_shards", Value: &k.Shards},
		{Field: "Joins", Preset: "timers_joins", Value: &k.Joins},
		{Field: "Backlog", Preset: "timers_backlog", Value: &k.Backlog},
		{Field: "Beat", Preset: "redbeat:", Value: &k.Beat},
	}
}

func (k Keyspace) key(base, topic string) string {
	if k.braces(topic) { // without Tagged, which would copy the name twice
		return base + ":{" + topic + "}"
	}
	return base + ":" + topic
}

// TopicKeys are the keys of one topic.
type TopicKeys struct {
	Timeline, Payloads, Leases, Dead, exchange, Hint, Flow, TimerKeys, KeyOrder, KeyStates, KeyRates, KeyTurns, Control, once, Keyed, events, Runs, Counts, History, Nodes, Reports string
}

// Of returns the keys of a topic.
func (k Keyspace) Of(topic string) TopicKeys {
	return TopicKeys{
		Timeline:  k.key(k.Timeline, topic),
		Payloads:  k.key(k.Payloads, topic),
		Leases:    k.key(k.Leases, topic),
		Dead:      k.key(k.Dead, topic),
		exchange:  k.key(k.Exchange, topic),
		Hint:      k.channel(k.Hint, topic),
		Flow:      k.key(k.Flow, topic),
		TimerKeys: k.key(k.TimerKeys, topic),
		KeyOrder:  k.key(k.KeyOrder, topic),
		KeyStates: k.key(k.KeyStates, topic),
		KeyRates:  k.key(k.KeyRates, topic),
		KeyTurns:  k.key(k.KeyTurns, topic),
		Control:   k.key(k.Control, topic),
		once:      k.key(k.Once, topic),
		Keyed:     k.key(k.Keyed, topic),
		events:    k.channel(k.Events, topic),
		Runs:      k.key(k.Runs, topic),
		Counts:    k.key(k.Counts, topic),
		History:   k.key(k.History, topic),
		Nodes:     k.key(k.Nodes, topic),
		Reports:   k.key(k.Reports, topic),
	}
}

// Stream returns the exchange key of one stream of an incarnation. The suffix comes
// after the hash tag, so the key stays in the topic's slot.
func (t TopicKeys) Stream(incarnation string, stream int) string {
	return t.exchange + ":" + incarnation + ":" + strconv.Itoa(stream)
}

// swept is the key that says that a node has looked at many parked timers of late.
func (t TopicKeys) swept() string { return t.exchange + ":swept" }

// Cancelled is the key of the marks of the runs that were cancelled.
func (t TopicKeys) Cancelled() string { return t.exchange + ":cancelled" }

// counted is the key with the last counts that an incarnation of a node has written.
func (t TopicKeys) counted(incarnation string) string {
	return t.exchange + ":" + incarnation + ":counts"
}

// Moving is the key of the outbox of a topic whose timers move to other shards: its
// batches.
func (t TopicKeys) Moving() string { return t.exchange + ":moving" }

// Taken is the key of the ids and keys of the timers in the outbox.
func (t TopicKeys) Taken() string { return t.exchange + ":taken" }

// Leaving is the key of the outbox of a topic that is moved to another Redis.
func (t TopicKeys) Leaving() string { return t.exchange + ":leaving" }

// Left is the key of the ids and keys of the timers in that outbox, and of the move.
func (t TopicKeys) Left() string { return t.exchange + ":left" }

// Arriving is the key of the batches of a move from another Redis that have arrived.
func (t TopicKeys) Arriving(move string) string { return t.exchange + ":arriving:" + move }

// Pins is the key of the timers that do not move, because they are being written.
func (t TopicKeys) Pins() string { return t.exchange + ":pins" }

// Layout is the key of the layout with which calls may write to a physical topic.
func (t TopicKeys) Layout() string { return t.exchange + ":layout" }

// Arrived is the key of the batches that have arrived in a topic.
func (t TopicKeys) Arrived() string { return t.exchange + ":arrived" }

// Result returns the key of what the handlers of a timer of a topic have reported.
func (k Keyspace) Result(topic, id string) string {
	return k.key(k.Results, topic) + ":" + layout.EscapeColons.Replace(id)
}

// JoinOf returns the key of a join, which has a slot of its own, and with which those of its
// parts begin.
func (k Keyspace) JoinOf(join string) string { return k.key(k.Join, join) }

// Mark returns the once key of an id. Colons of the id are escaped; otherwise keys
// of different topics could collide.
func (t TopicKeys) Mark(id string) string {
	return t.once + ":" + layout.EscapeColons.Replace(id)
}

// topicOf is the inverse of key.
func (k Keyspace) topicOf(base, key string) (string, bool) {
	topic, ok := strings.CutPrefix(key, base+":")
	inside := len(topic) >= 2 && topic[0] == '{' && topic[len(topic)-1] == '}'
	switch {
	case inside && k.braces(topic[1:len(topic)-1]):
		topic = topic[1 : len(topic)-1]
	case k.braces(topic): // a topic would have braces
		return "", false
	}
	return topic, ok && topic != ""
}
