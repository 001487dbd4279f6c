package shards

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// The kinds of batches, with which their texts begin.
const (
	ofTimers  = "t"
	ofPart    = "p" // timers of a key that moves in several steps
	ofDead    = "d"
	ofHistory = "h"
	ofCounts  = "c"
)

const (
	timerFields = 8 // in a batch: id, score, payload, record, key, place, held, rate
	keyField    = 4
)

var errBatch = fmt.Errorf("%w: a batch of an outbox is malformed", scripts.ErrReply)

// content is what a batch has.
type content struct {
	kind  string
	items [][]string // the fields of each

	// Of timers of a key that moves in several steps: the key, and whether others follow.
	part string
	more bool
}

// hasTimers reports whether the items are timers.
func (c content) hasTimers() bool { return c.kind == ofTimers || c.kind == ofPart }

// readBatch reads the content of a batch.
func readBatch(text string) (c content, err error) {
	if text == "" {
		return c, errBatch
	}
	c.kind, text = text[:1], text[1:]
	for text != "" {
		head, rest, found := strings.Cut(text, "\n")
		if !found {
			return c, errBatch
		}
		var item []string
		for length := range strings.SplitSeq(head, " ") {
			n, err := strconv.Atoi(length)
			if err != nil || n < 0 || n > len(rest) {
				return c, errBatch
			}
			item = append(item, rest[:n])
			rest = rest[n:]
		}
		text = rest
		switch {
		case c.kind == ofPart && c.part == "":
			if len(item) != 2 || item[0] == "" {
				return c, errBatch
			}
			c.part, c.more = item[0], item[1] == "1"
			continue
		case c.hasTimers() && len(item) != timerFields:
			return c, errBatch
		}
		c.items = append(c.items, item)
	}
	if c.kind == ofPart && c.part == "" {
		return c, errBatch
	}
	return c, nil
}

// spread are the parts of a batch by the physical topics in which they belong, as
// arguments, and the fields that its timers have in the index of the outbox.
func (s *Store) spread(topic string, l sharding.Layout, c content) (parts map[string][]any, index []any) {
	parts = map[string][]any{}
	keys := map[string]bool{}
	note := func(key string) {
		if key != "" && !keys[key] {
			keys[key] = true
			index = append(index, "k"+key)
		}
	}
	if note(c.part); c.part != "" {
		parts[l.Shard(topic, "", c.part)] = nil // it may be the last step, without timers
	}
	for _, item := range c.items {
		id, key := item[0], ""
		switch {
		case c.kind == ofCounts: // of which the sum matters
			id = ""
		case c.hasTimers():
			key = item[keyField]
			index = append(index, "i"+id)
			note(key)
		default:
			id, key = fieldOf(item, "id"), fieldOf(item, "key")
		}
		name := l.Shard(topic, id, key)
		if c.kind == ofDead || c.kind == ofHistory {
			parts[name] = append(parts[name], len(item))
		}
		for _, field := range item {
			parts[name] = append(parts[name], field)
		}
	}
	return parts, index
}

// fieldOf returns the value of a field of an entry of a stream.
func fieldOf(entry []string, name string) string {
	for i := 0; i+1 < len(entry); i += 2 {
		if entry[i] == name {
			return entry[i+1]
		}
	}
	return ""
}
