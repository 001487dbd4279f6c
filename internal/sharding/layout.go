package sharding

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Layout is how the timers of a topic are divided. The zero value is that of a topic that
// was never divided: one shard.
type Layout struct {
	Shards int   `json:"shards"`           // 1 to MaxShards; 0: 1
	From   int   `json:"from,omitempty"`   // the number of shards before; 0: there was no change
	Moving bool  `json:"moving,omitempty"` // timers may be in the shards of From
	Since  int64 `json:"since,omitempty"`  // when Moving last changed, in ms since 1970, by Redis's clock
	// Keyed says that a timer with a key was scheduled, so an id may be in a shard that
	// is not its own.
	Keyed bool `json:"keyed,omitempty"`
}

// Linger is how long the shards of From are handled after they were found empty: a client
// that had read an older layout may write there once more.
const Linger = 10 * time.Minute

// Count returns the number of shards.
func (l Layout) Count() int { return max(l.Shards, 1) }

// Plain reports whether the topic has one shard and no others hold its timers.
func (l Layout) Plain() bool { return l.Count() == 1 && !l.Moving }

// Lingers reports whether the shards of From are to be handled at an instant.
func (l Layout) Lingers(now time.Time) bool {
	return l.From > 0 && (l.Moving || now.Sub(time.UnixMilli(l.Since)) < Linger)
}

// Shard returns the physical topic in which a timer belongs.
func (l Layout) Shard(topic, id, key string) string {
	return Name(topic, l.Count(), ShardOf(id, key, l.Count()))
}

// Names returns the physical topics in which timers belong.
func (l Layout) Names(topic string) []string { return Names(topic, l.Count()) }

// Old returns the physical topics that may hold timers until they are moved; none: there
// are no such timers.
func (l Layout) Old(topic string) []string {
	if !l.Moving || l.From == l.Count() {
		return nil
	}
	return Names(topic, max(l.From, 1))
}

// All returns the physical topics that may hold data of the topic, those in which timers
// belong first.
func (l Layout) All(topic string) []string { return slices.Concat(l.Names(topic), l.Old(topic)) }

// Text returns the layout as it is stored.
func (l Layout) Text() string {
	text, _ := json.Marshal(l) // it has numbers and booleans
	return string(text)
}

// Read reads a stored layout.
func Read(text string) (Layout, error) {
	var l Layout
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return Layout{}, fmt.Errorf("layout %.64q: %w", text, err)
	}
	if l.Shards < 1 || l.Shards > MaxShards || l.From < 0 || l.From > MaxShards {
		return Layout{}, fmt.Errorf("layout %.64q: %d shards from %d, want 1 to %d", text, l.Shards, l.From, MaxShards)
	}
	return l, nil
}
