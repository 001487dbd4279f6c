package timers

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MaxOnce is the longest window of Once.
const MaxOnce = 100 * 365 * 24 * time.Hour

// Entry is one timer to schedule.
type Entry struct {
	ID      string // valid UTF-8, 1 to 512 bytes
	Payload []byte

	// At is the instant at which the timer becomes due, rounded up to the µs. A
	// past instant is due at once. It must be before the year 10000.
	At time.Time
	// In is used if At is zero: the timer becomes due In after Redis's now. 0 or a
	// negative value: it is due at once.
	In time.Duration

	// Key is the key of the timer, 1 to 512 bytes; empty: none. A timer that is scheduled
	// again without a key keeps the key that it has.
	Key string

	Policy wakebelltype.Policy
	// MaxDelay is for PolicyDebounce: the longest time from the first schedule to the
	// instant at which the timer is due; at least In, or 0 for no bound.
	MaxDelay time.Duration

	// Once, if not 0, makes the id fire once from now until Once after its instant;
	// 1 ms to MaxOnce. If the id is scheduled again with Once meanwhile, a timer that
	// was delivered or moved is unchanged, and a timer that is gone (handled,
	// dead-lettered, cancelled) is not written again. A small key is stored for the
	// id for as long.
	Once time.Duration

	// Replicas is how many replicas must confirm the timer before Schedule returns,
	// 0 to MaxReplicas. ReplicaTimeout is how long Schedule waits for them, 1 ms to
	// MaxReplicaTimeout. The largest values of its entries apply to a batch.
	Replicas       int
	ReplicaTimeout time.Duration
}

// Batch is timers of one or several topics, which Add has checked; [Timers.Write]
// stores them, and keeps their results there meanwhile: one call at a time may write it.
type Batch struct {
	prefix string
	room   int
	groups []part                    // usually all timers are of one topic
	named  map[string]int            // indexes of all groups by topic without prefix; nil while there is one
	after  func(ctx context.Context) // is called when all are written; nil: nothing is
	owners []int                     // indexes of the groups of all timers, in the order of Add; nil while there is one
}

// part is timers of one topic: all of a batch, or those that one call of the script carries,
// and their results.
type part struct {
	topic    string // with the prefix
	fence    *Fence // of the topic; nil: none
	key      *Key
	entries  []Entry
	places   []int32 // a hash table of the ids: index + 1; 0: free
	load     load
	counting bool // the call counts them
	done     []wakebelltype.Scheduled
	err      error // why they are not stored as the caller wants
}

// NewBatch returns a batch with room for n timers. The prefix precedes the names of
// their topics.
func NewBatch(prefix string, n int) Batch {
	return Batch{prefix: prefix, room: n}
}

// checkedBatch returns a batch that takes over checked entries of one topic.
func checkedBatch(topic string, entries []Entry) (Batch, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return Batch{}, err
	}
	b := Batch{groups: []part{{topic: topic, entries: entries}}}
	for i := range entries {
		if err := b.groups[0].check(i); err != nil {
			return Batch{}, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return b, nil
}

// Add checks a timer and adds it. Nothing after it checks the timer or the name of its
// topic again. The error wraps [wakebelltype.ErrInvalid]; the batch must not be used after it.
func (b *Batch) Add(topic string, e *Entry) error {
	at, err := b.groupOf(topic)
	if err != nil {
		return err
	}
	g := &b.groups[at]
	g.entries = append(g.entries, *e)
	if b.owners != nil {
		b.owners = append(b.owners, at)
	}
	return g.check(len(g.entries) - 1)
}

// groupOf returns the index of the group of a topic, which it adds if there is
// none.
func (b *Batch) groupOf(topic string) (int, error) {
	n := len(b.groups)
	if n > 0 && b.groups[n-1].topic[len(b.prefix):] == topic {
		return n - 1, nil
	}
	if at, known := b.named[topic]; known {
		return at, nil
	}
	if topic == "" { // which the prefix would hide
		return 0, layout.CheckTopic(topic)
	}
	full, room := b.prefix+topic, b.room
	err := layout.CheckTopic(full)
	if err == nil && strings.Contains(full, sharding.Separator) {
		err = layout.CheckLogical(full)
	}
	if err != nil {
		return 0, err
	}
	if n > 0 {
		if room = 0; b.named == nil {
			first := &b.groups[0]
			b.named, b.owners = map[string]int{first.topic[len(b.prefix):]: 0}, make([]int, len(first.entries), max(b.room, len(first.entries)))
		}
		b.named[topic] = n
	}
	b.groups = append(b.groups, part{topic: full, entries: make([]Entry, 0, room)})
	return n, nil
}

// Fence sets the fences of the topics of the batch.
func (b *Batch) Fence(of func(topic string) (*Fence, error)) (err error) {
	for i := range b.groups {
		g := &b.groups[i]
		if g.fence, err = of(g.topic); err != nil {
			return err
		}
	}
	return nil
}

// After sets what is called when all timers are written, or refused by a fence, and not
// after another error.
func (b *Batch) After(call func(ctx context.Context)) { b.after = call }

// Topics yields the topics of the batch, with the prefix.
func (b *Batch) Topics(yield func(string) bool) {
	for i := range b.groups {
		if !yield(b.groups[i].topic) {
			return
		}
	}
}

// check is the only check of a timer: of the entry by itself, and that no entry
// before it has its id.
func (g *part) check(i int) error {
	e := &g.entries[i]
	fault := cmp.Or(layout.FaultOf(e.ID), e.fault())
	if fault == "" && i > 0 && g.repeats(i) {
		fault = fmt.Sprintf("ID: %q is given twice", text.Cut(e.ID, 64))
	}
	if fault != "" {
		return fmt.Errorf("%w: %s", wakebelltype.ErrInvalid, fault)
	}
	return nil
}

var seed = maphash.MakeSeed()

// repeats reports whether an entry has the id of one before it. It uses a small
// hash table, because a map would cost a tenth of a schedule.
func (g *part) repeats(i int) bool {
	if 2*(i+1) > len(g.places) {
		g.places = make([]int32, 1<<bits.Len(uint(2*max(cap(g.entries), i+1)))) //nolint:gosec // not negative
		for j := range i {
			g.place(j)
		}
	}
	return g.place(i)
}

// place puts an entry into the hash table, unless its id is there.
func (g *part) place(i int) (taken bool) {
	mask := uint64(len(g.places) - 1)
	at := maphash.String(seed, g.entries[i].ID) & mask
	for ; g.places[at] != 0; at = (at + 1) & mask {
		if g.entries[g.places[at]-1].ID == g.entries[i].ID {
			return true
		}
	}
	g.places[at] = int32(i + 1) //nolint:gosec // so many entries do not fit into memory
	return false
}

// fault describes what is wrong with an entry, apart from its id; empty means
// valid.
func (e *Entry) fault() string {
	switch {
	case len(e.Key) > MaxKey:
		return fmt.Sprintf("key: %d bytes, want at most %d", len(e.Key), MaxKey)
	case e.Policy > wakebelltype.PolicyDebounce:
		return fmt.Sprintf("policy: %d is unknown", e.Policy)
	case e.At.After(scripts.LastInstant):
		return fmt.Sprintf("at: %s, want at most %s", e.At.UTC().Format(time.RFC3339Nano), scripts.LastInstant.Format(time.RFC3339))
	case e.Once != 0 && (e.Once < time.Millisecond || e.Once > MaxOnce):
		return fmt.Sprintf("once: %v, want 1ms to 100 years", e.Once)
	case e.Replicas < 0 || e.Replicas > MaxReplicas:
		return fmt.Sprintf("replicas: %d, want 0 to %d", e.Replicas, MaxReplicas)
	case e.Replicas > 0 && (e.ReplicaTimeout < time.Millisecond || e.ReplicaTimeout > MaxReplicaTimeout):
		return fmt.Sprintf("replica timeout: %v, want 1ms to %v", e.ReplicaTimeout, MaxReplicaTimeout)
	case e.Policy != wakebelltype.PolicyDebounce:
		if e.MaxDelay != 0 {
			return "max delay: only Debounce has one"
		}
	case !e.At.IsZero() || e.In <= 0:
		return "debounce: want a delay above 0, not an instant"
	case e.MaxDelay != 0 && e.MaxDelay < e.In:
		return fmt.Sprintf("debounce: max delay %v is less than the delay %v", e.MaxDelay, e.In)
	}
	return ""
}

// load is what a call carries.
type load struct {
	entries, costly int32 // costly are those with a key or a mark
	replicas        int32 // that must confirm it within timeout: the most that an entry requires
	keyed           bool
	timeout         time.Duration
	bytes           int
}

// join adds what another call carries, if one call can carry both.
func (l *load) join(other *load) bool {
	entries, costly, bytes := l.entries+other.entries, l.costly+other.costly, l.bytes+other.bytes
	if l.entries > 0 && (entries > layout.BatchEntries || costly > layout.CostlyEntries || bytes > layout.BatchBytes) {
		return false
	}
	*l = load{entries, costly, max(l.replicas, other.replicas), l.keyed || other.keyed, max(l.timeout, other.timeout), bytes}
	return true
}

// carried returns how many of the entries one call carries, and what they are together. An
// entry with a key or a mark costs a script about twice as much as others.
func carried(entries []Entry) (n int, all load) {
	for n = range entries {
		e := &entries[n]
		one := load{entries: 1, bytes: len(e.Payload), keyed: e.Key != "", replicas: int32(e.Replicas), timeout: e.ReplicaTimeout}
		if e.Key != "" || e.Once > 0 {
			one.costly = 1
		}
		if n == 0 {
			all = one
		} else if !all.join(&one) {
			return n, all
		}
	}
	return len(entries), all
}

// parts divides the batch into calls of the script. Usually one carries all of it.
func (b *Batch) parts(key *Key) []part {
	if len(b.groups) == 1 {
		g := &b.groups[0]
		if n, load := carried(g.entries); n > 0 && n == len(g.entries) {
			g.key, g.load, g.done, g.err = key, load, nil, nil
			return b.groups
		}
	}
	parts := make([]part, 0, len(b.groups))
	for i := range b.groups {
		g := &b.groups[i]
		for first := 0; first < len(g.entries); {
			n, load := carried(g.entries[first:])
			parts = append(parts, part{topic: g.topic, fence: g.fence, key: key.after(first), entries: g.entries[first : first+n], load: load})
			first += n
		}
	}
	return parts
}
