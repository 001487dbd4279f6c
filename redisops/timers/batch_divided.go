package timers

import (
	"errors"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Divided returns a batch with the timers in the topics that place returns for them; an
// empty one leaves the timer out. Place gets the index of the timer in the order of Add,
// and its topic with the prefix. The entries of both batches share their payloads.
func (b *Batch) Divided(place func(i int, topic string, e *Entry) string) Batch {
	n := 0
	for i := range b.groups {
		n += len(b.groups[i].entries)
	}
	divided := Batch{named: map[string]int{}, owners: make([]int, 0, n)}
	next := make([]int, len(b.groups))
	for i := range n {
		owner := 0
		if b.owners != nil {
			owner = b.owners[i]
		}
		from := &b.groups[owner]
		e := &from.entries[next[owner]]
		next[owner]++
		topic := place(i, from.topic, e)
		if topic == "" {
			continue
		}
		at, known := divided.named[topic]
		if !known {
			at = len(divided.groups)
			divided.groups, divided.named[topic] = append(divided.groups, part{topic: topic}), at
		}
		to := &divided.groups[at]
		to.entries = append(to.entries, *e)
		divided.owners = append(divided.owners, at)
	}
	return divided
}

// Each calls do with the timers, their indexes in the order of Add, and their topics with
// the prefix.
func (b *Batch) Each(do func(i int, topic string, e *Entry)) {
	b.Divided(func(i int, topic string, e *Entry) string {
		do(i, topic, e)
		return ""
	})
}

// inOrder returns the results of several parts in the order of Add, and why some of them
// are not as the caller wants.
func (b *Batch) inOrder(parts []part) (done []wakebelltype.Scheduled, err error) {
	results := make(map[string][]wakebelltype.Scheduled, len(b.groups)) // by topic
	for i := range parts {
		p := &parts[i]
		results[p.topic] = append(results[p.topic], p.done...)
		err = errors.Join(err, p.err)
	}
	if b.owners == nil {
		return results[parts[0].topic], err
	}
	done = make([]wakebelltype.Scheduled, len(b.owners))
	for i, at := range b.owners {
		topic := b.groups[at].topic
		done[i], results[topic] = results[topic][0], results[topic][1:]
	}
	return done, err
}
