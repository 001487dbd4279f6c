package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/text"
)

// queueMark precedes the names of queues that look like those of shards.
const queueMark = "\x00"

// key returns the name under which a topic or a queue is measured: of a shard that of its
// topic, unless shards are measured by themselves. The name of a queue may look like that of
// a shard.
func (m *Metrics) key(name string, queue bool) string {
	switch {
	case queue && sharding.Reserved(name):
		return queueMark + name
	case queue || m.byShard:
		return name
	default:
		return sharding.Topic(name)
	}
}

// destinationOf returns the labels of a key.
func destinationOf(key string) []attribute.KeyValue {
	if queue, marked := strings.CutPrefix(key, queueMark); marked {
		return []attribute.KeyValue{destination.String(queue)}
	}
	topic, n, k := sharding.Split(key)
	if n == 1 {
		return []attribute.KeyValue{destination.String(key)}
	}
	return []attribute.KeyValue{destination.String(topic), partition.String(strconv.Itoa(k))}
}

// labels are those of a topic or a queue in one collection.
type labels struct {
	own   []attribute.KeyValue
	plain []metric.ObserveOption
}

func newLabels(key string) *labels {
	own := destinationOf(key)
	return &labels{own, newOption(own...).observe}
}

// with returns the option of the labels and another one; zero: no other.
func (l *labels) with(other attribute.KeyValue) []metric.ObserveOption {
	if !other.Valid() {
		return l.plain
	}
	return newOption(append(slices.Clone(l.own), other)...).observe
}

// need says how much a topic or a queue deserves a label of its own.
type need struct {
	key   string
	class int           // 0: nothing is wrong
	late  time.Duration // how late it is
	dead  int64
}

// The classes of needs, the worst last.
const (
	well = iota
	attention
	waits
	unattended
	broken
)

// waitsAfter is how late a topic is that needs a label.
const waitsAfter = time.Minute

func (b Backlog) need(key string) need {
	n := need{key: key, late: b.OldestDue, dead: b.Dead}
	switch {
	case b.Unreadable:
		n.class = broken
	case b.Nodes == 0 && b.Due+b.Pending > 0:
		n.class = unattended
	case b.OldestDue >= waitsAfter:
		n.class = waits
	case b.Dead > 0 || b.Paused:
		n.class = attention
	}
	return n
}

func (q Queue) need(key string) need {
	n := need{key: key, late: q.Oldest, dead: q.Dead}
	switch {
	case q.Nodes == 0 && q.Depth > 0:
		n.class = unattended
	case q.Oldest >= waitsAfter:
		n.class = waits
	case q.Dead > 0:
		n.class = attention
	}
	return n
}

// worse orders needs, the worst first. It depends on nothing but what all nodes read, so
// that all of them choose the same.
func worse(a, b need) int {
	return cmp.Or(cmp.Compare(b.class, a.class), cmp.Compare(b.late, a.late), cmp.Compare(b.dead, a.dead), cmp.Compare(a.key, b.key))
}

// naming says which topics and queues have a label of their own in a collection. The others
// share that of Other.
type naming struct {
	named map[string]*labels
	other *labels
}

// choose gives the worst up to the limit a label.
func choose(limit int, needs map[string]need) naming {
	all := slices.SortedFunc(maps.Values(needs), worse)
	n := naming{named: make(map[string]*labels, min(limit, len(all))), other: newLabels(Other)}
	for _, each := range all[:min(limit, len(all))] {
		n.named[each.key] = newLabels(text.Escaped(each.key))
	}
	return n
}

// of returns the labels of a key, and whether they are its own.
func (n naming) of(key string) (l *labels, own bool) {
	if l := n.named[key]; l != nil {
		return l, true
	}
	return n.other, false
}

// needs are those of all that is read and of what this node handles. A topic with several
// parts has that of the worst.
func (m *Metrics) needs(topics []Backlog, queues []Queue, handled []string) map[string]need {
	all := make(map[string]need, len(topics)+len(queues))
	add := func(n need) {
		if known, found := all[n.key]; !found || worse(n, known) < 0 {
			all[n.key] = n
		}
	}
	for _, b := range topics {
		add(b.need(m.key(b.Topic, false)))
	}
	for _, q := range queues {
		add(q.need(m.key(q.Name, true)))
	}
	for _, key := range handled {
		add(need{key: key})
	}
	return all
}
