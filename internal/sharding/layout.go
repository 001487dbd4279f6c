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
	// ID identifies the layout: a random text, so that no other one has it, also after a
	// failover that has lost the last changes. Empty: that of a topic without shards, or
	// one of an earlier version.
	ID string `json:"id,omitempty"`
	// Number counts the changes of a layout. It says which of two layouts is the later one.
	Number int `json:"n,omitempty"`

	Shards int  `json:"shards"`           // 1 to MaxShards; 0: 1
	To     int  `json:"to,omitempty"`     // announces the next number of shards; 0: none. Calls already look there
	From   int  `json:"from,omitempty"`   // the number of shards before; 0: there was no change
	Moving bool `json:"moving,omitempty"` // timers may be in the shards of From
	// Live says that the topic had timers when the number changed: those in the shards of
	// From are moved, and until then they are written where they are.
	Live  bool  `json:"live,omitempty"`
	Since int64 `json:"since,omitempty"` // when To or Moving last changed, in ms since 1970, by Redis's clock
	// Keyed says that a timer with a key was scheduled, so an id may be in a shard that
	// is not its own.
	Keyed bool `json:"keyed,omitempty"`
	// Past has the numbers of shards before From, as Before returns them: of each the
	// number, "@" and the instant until which it applied, in ms since 1970.
	Past string `json:"past,omitempty"`
}

// Linger is how long the shards of From are handled after they were found empty: a client
// that had read an older layout may write there once more.
const Linger = 10 * time.Minute

// Count returns the number of shards.
func (l Layout) Count() int { return max(l.Shards, 1) }

// Plain reports whether the topic has one shard and no others hold its timers.
func (l Layout) Plain() bool { return l.Shards <= 1 && !l.Moving && l.To == 0 }

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

// Others returns the other numbers of shards with which timers may have been stored: the
// next one, when it is announced, and the one before, while timers move.
func (l Layout) Others() []int {
	var counts []int
	if l.To > 0 && l.To != l.Count() {
		counts = append(counts, l.To)
	}
	if l.Moving && l.From > 0 && l.From != l.Count() {
		counts = append(counts, l.From)
	}
	return counts
}

// All returns the physical topics that may hold data of the topic, those in which timers
// belong first.
func (l Layout) All(topic string) []string {
	names := l.Names(topic)
	for _, n := range l.Others() {
		names = append(names, Names(topic, n)...)
	}
	return names
}

// Polled returns the physical topics that nodes handle at an instant.
func (l Layout) Polled(topic string, now time.Time) []string {
	if !l.Moving && l.Lingers(now) && l.From != l.Count() && l.From != l.To {
		return slices.Concat(l.All(topic), Names(topic, l.From))
	}
	return l.All(topic)
}

// Left returns the physical topics that nodes handle at an instant, and those of From at any
// instant: a move to another Redis that began while nodes handled these has its notes and
// batches there, also when it goes on after that.
func (l Layout) Left(topic string, now time.Time) []string {
	names := l.Polled(topic, now)
	if l.From == 0 {
		return names
	}
	for _, name := range Names(topic, l.From) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Next returns the layout with another number of shards, whose timers are yet to move.
func (l Layout) Next(n int, now time.Time) Layout {
	return Layout{
		ID: l.ID, Number: l.Number, Shards: n, From: l.Count(), Moving: true, Since: now.UnixMilli(), Keyed: l.Keyed, Past: l.past(now),
	}
}

// Resharded returns the layout Next of a topic with timers.
func (l Layout) Resharded(n int, now time.Time) Layout {
	next := l.Next(n, now)
	next.Live = true
	return next
}

// Moves reports whether timers are to be written where they are, because they move.
func (l Layout) Moves() bool { return l.Live && l.Moving && l.From > 0 && l.From != l.Count() }

// Old returns the physical topic in which a timer was before the last change.
func (l Layout) Old(topic, id, key string) string {
	return Name(topic, l.From, ShardOf(id, key, l.From))
}

// Announced returns the layout that announces n shards.
func (l Layout) Announced(n int, now time.Time) Layout {
	l.To, l.Since = n, now.UnixMilli()
	return l
}

// Settled returns the layout after all timers have moved.
func (l Layout) Settled(now time.Time) Layout {
	l.Moving, l.Since = false, now.UnixMilli()
	return l
}

// Routes reports whether calls are routed by a layout as by another one.
func (l Layout) Routes(other Layout) bool {
	l.ID, l.Number, l.Keyed = other.ID, other.Number, other.Keyed
	return l == other
}

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
	if l.Shards < 1 || l.Shards > MaxShards || min(l.From, l.To) < 0 || max(l.From, l.To) > MaxShards {
		return Layout{}, fmt.Errorf("layout %.64q: %d shards, want 1 to %d", text, l.Shards, MaxShards)
	}
	return l, nil
}
