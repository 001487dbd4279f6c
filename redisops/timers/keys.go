package timers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/redisops"
)

// Keys are the base names of the keys of a topic. The key of topic T is the
// base name, a colon and T; with HashTag, T is put in braces.
type Keys struct {
	Timeline string // zset: id → instant; default "timers_timeline"
	Payloads string // hash: id → payload; default "timers_payloads"
	Leases   string // hash: id → lease record; default "timers_leases"
	Dead     string // stream of dead letters; default "timers_dead"
	Exchange string // last exchange of a stream; default "timers_exchange"
	Hint     string // outstanding hint, and the channel of hints; default "timers_hint"
	Control  string // hash: what is ordered of the topic; default "timers_control"
	Once     string // mark of a timer with Once; default "timers_once"
	Keyed    string // answer to a call with an idempotency key; default "timers_keyed"
	Events   string // channel of events; default "timers_events"
	Runs     string // hash: recurring schedule → last run put, in a Cluster; default "timers_runs"
	Topics   string // set of all topics, one key in all; default "timers_topics"
	Beat     string // put before the keys of recurring schedules; default "redbeat:"

	// HashTag writes topics in braces, so that Redis Cluster keeps all keys of a
	// topic in one slot. A Python peer then uses "{T}" as its topic.
	HashTag bool
}

// WithDefaults fills in the names that are empty.
func (k Keys) WithDefaults() Keys {
	for _, n := range k.names() {
		if *n.value == "" {
			*n.value = n.preset
		}
	}
	return k
}

// Validate reports all names that are empty or given twice; the error wraps
// [ErrInvalid].
func (k Keys) Validate() error {
	var errs []error
	first := map[string]string{}
	for _, n := range k.names() {
		switch other := first[*n.value]; {
		case *n.value == "":
			errs = append(errs, fmt.Errorf("%w: keys: %s is empty", redisops.ErrInvalid, n.field))
		case other != "":
			errs = append(errs, fmt.Errorf("%w: keys: %s and %s are both %q", redisops.ErrInvalid, other, n.field, *n.value))
		default:
			first[*n.value] = n.field
		}
	}
	return errors.Join(errs...)
}

// Bases are all base names.
func (k Keys) Bases() []string { return bases(k.names()) }

func (k *Keys) names() []keyName {
	return []keyName{
		{field: "Timeline", preset: "timers_timeline", value: &k.Timeline},
		{field: "Payloads", preset: "timers_payloads", value: &k.Payloads},
		{field: "Leases", preset: "timers_leases", value: &k.Leases},
		{field: "Dead", preset: "timers_dead", value: &k.Dead},
		{field: "Exchange", preset: "timers_exchange", value: &k.Exchange},
		{field: "Hint", preset: "timers_hint", value: &k.Hint},
		{field: "Control", preset: "timers_control", value: &k.Control},
		{field: "Once", preset: "timers_once", value: &k.Once},
		{field: "Keyed", preset: "timers_keyed", value: &k.Keyed},
		{field: "Events", preset: "timers_events", value: &k.Events},
		{field: "Runs", preset: "timers_runs", value: &k.Runs},
		{field: "Topics", preset: "timers_topics", value: &k.Topics},
		{field: "Beat", preset: "redbeat:", value: &k.Beat},
	}
}

func (k Keys) key(base, topic string) string {
	if k.HashTag {
		return base + ":{" + topic + "}"
	}
	return base + ":" + topic
}

// topicKeys are the keys of one topic.
type topicKeys struct {
	timeline, payloads, leases, dead, exchange, hint, control, once, keyed, events, runs string
}

func (k Keys) of(topic string) topicKeys {
	return topicKeys{
		timeline: k.key(k.Timeline, topic),
		payloads: k.key(k.Payloads, topic),
		leases:   k.key(k.Leases, topic),
		dead:     k.key(k.Dead, topic),
		exchange: k.key(k.Exchange, topic),
		hint:     k.key(k.Hint, topic),
		control:  k.key(k.Control, topic),
		once:     k.key(k.Once, topic),
		keyed:    k.key(k.Keyed, topic),
		events:   k.key(k.Events, topic),
		runs:     k.key(k.Runs, topic),
	}
}

// stream is the exchange key of one stream of an incarnation. What follows the
// topic comes after the hash tag, so it keeps the slot.
func (t topicKeys) stream(incarnation string, stream int) string {
	return t.exchange + ":" + incarnation + ":" + strconv.Itoa(stream)
}

// apart is where the payloads are within a transaction that writes a batch; no
// other command ever sees it.
func (t topicKeys) apart() string { return t.exchange + ":apart" }

// mark is the once key of an id. Colons of the id are escaped: otherwise the
// ids of one topic could meet those of another.
func (t topicKeys) mark(id string) string {
	return t.once + ":" + escapeColons.Replace(id)
}

// topicOf undoes key.
func (k Keys) topicOf(base, key string) (string, bool) {
	topic, ok := strings.CutPrefix(key, base+":")
	if ok && k.HashTag {
		if len(topic) < 2 || topic[0] != '{' || topic[len(topic)-1] != '}' {
			return "", false
		}
		topic = topic[1 : len(topic)-1]
	}
	return topic, ok && topic != ""
}
