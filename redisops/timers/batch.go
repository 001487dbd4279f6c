package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Batch is timers of one or several topics, which Add has checked; [Timers.Write]
// stores them.
type Batch struct {
	prefix string
	room   int
	first  group // usually all timers are of one topic
	others []group
	named  map[string]int            // indexes of all groups by topic without prefix; nil while there is one
	after  func(ctx context.Context) // is called when all are written; nil: nothing is
	owners []int                     // indexes of the groups of all timers, in the order of Add; nil while there is one
}

// group is the timers of one topic.
type group struct {
	topic   string // with the prefix
	fence   *Fence // of the topic; nil: none
	entries []Entry
	places  []int32 // a hash table of the ids: index + 1; 0: free
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
	b := Batch{first: group{topic: topic, entries: entries}}
	for i := range entries {
		if err := b.first.check(i); err != nil {
			return Batch{}, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return b, nil
}

// Add checks a timer and adds it. Nothing after it checks the timer again. The
// error wraps [wakebelltype.ErrInvalid]; the batch must not be used after it.
func (b *Batch) Add(topic string, e *Entry) error {
	at, err := b.groupOf(topic)
	if err != nil {
		return err
	}
	g := b.group(at)
	g.entries = append(g.entries, *e)
	if b.owners != nil {
		b.owners = append(b.owners, at)
	}
	return g.check(len(g.entries) - 1)
}

func (b *Batch) group(i int) *group {
	if i == 0 {
		return &b.first
	}
	return &b.others[i-1]
}

// groupOf returns the index of the group of a topic, which it adds if there is
// none.
func (b *Batch) groupOf(topic string) (int, error) {
	last := len(b.others)
	if g := b.group(last); g.topic != "" && g.topic[len(b.prefix):] == topic {
		return last, nil
	}
	if at, known := b.named[topic]; known {
		return at, nil
	}
	if topic == "" { // which the prefix would hide
		return 0, layout.CheckTopic(topic)
	}
	full := b.prefix + topic
	if err := layout.CheckTopic(full); err != nil {
		return 0, err
	}
	if b.first.topic == "" {
		b.first = group{topic: full, entries: make([]Entry, 0, b.room)}
		return 0, nil
	}
	if b.named == nil {
		n := len(b.first.entries)
		b.named, b.owners = map[string]int{b.first.topic[len(b.prefix):]: 0}, make([]int, n, max(b.room, n))
	}
	b.named[topic] = last + 1
	b.others = append(b.others, group{topic: full})
	return last + 1, nil
}

// Divided returns a batch with the timers in the topics that place returns for them; an
// empty one leaves the timer out. Place gets the index of the timer in the order of Add,
// and its topic with the prefix. The entries of both batches share their payloads.
func (b *Batch) Divided(place func(i int, topic string, e *Entry) string) Batch {
	n := 0
	for i := range 1 + len(b.others) {
		n += len(b.group(i).entries)
	}
	divided := Batch{named: map[string]int{}, owners: make([]int, 0, n)}
	next := make([]int, 1+len(b.others))
	for i := range n {
		owner := 0
		if b.owners != nil {
			owner = b.owners[i]
		}
		from := b.group(owner)
		e := &from.entries[next[owner]]
		next[owner]++
		topic := place(i, from.topic, e)
		if topic == "" {
			continue
		}
		at, known := divided.named[topic]
		if !known {
			if at = len(divided.named); at == 0 {
				divided.first.topic = topic
			} else {
				divided.others = append(divided.others, group{topic: topic})
			}
			divided.named[topic] = at
		}
		to := divided.group(at)
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

// Fence sets the fences of the topics of the batch.
func (b *Batch) Fence(of func(topic string) *Fence) {
	for i := range 1 + len(b.others) {
		if g := b.group(i); g.topic != "" {
			g.fence = of(g.topic)
		}
	}
}

// After sets what is called when all timers are written, or refused by a fence, and not
// after another error.
func (b *Batch) After(call func(ctx context.Context)) { b.after = call }

// Topics yields the topics of the batch, with the prefix.
func (b *Batch) Topics(yield func(string) bool) {
	for i := range 1 + len(b.others) {
		if g := b.group(i); g.topic != "" && !yield(g.topic) {
			return
		}
	}
}

// check is the only check of a timer: of the entry by itself, and that no entry
// before it has its id.
func (g *group) check(i int) error {
	e := &g.entries[i]
	if err := layout.CheckID(e.ID); err != nil {
		return err
	}
	if fault := e.fault(); fault != "" {
		return fmt.Errorf("%w: %s", wakebelltype.ErrInvalid, fault)
	}
	if g.repeats(i) {
		return fmt.Errorf("%w: ID: %q is given twice", wakebelltype.ErrInvalid, text.Cut(e.ID, 64))
	}
	return nil
}

var seed = maphash.MakeSeed()

// repeats reports whether an entry has the id of one before it. It uses a small
// hash table, because a map would cost a tenth of a schedule.
func (g *group) repeats(i int) bool {
	if i == 0 {
		return false
	}
	if 2*(i+1) > len(g.places) {
		g.places = make([]int32, 1<<bits.Len(uint(2*max(cap(g.entries), i+1)))) //nolint:gosec // not negative
		for j := range i {
			g.place(j)
		}
	}
	return g.place(i)
}

// place puts an entry into the hash table, unless its id is there.
func (g *group) place(i int) (taken bool) {
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

// roundTrip is the timers of one call of the script, and its result.
type roundTrip struct {
	topic   string
	fence   *Fence
	key     *Key
	entries []Entry
	done    []wakebelltype.Scheduled
	short   error // wraps ErrTooFewReplicas
	stale   error // wraps ErrStaleLayout: it was refused
}

// roundTrips divides the batch into calls of the script.
func (b *Batch) roundTrips(key *Key) []roundTrip {
	trips := make([]roundTrip, 0, 1+len(b.others))
	for i := range 1 + len(b.others) {
		g := b.group(i)
		for first := 0; first < len(g.entries); {
			n := fitting(g.entries[first:])
			trip := roundTrip{topic: g.topic, fence: g.fence, entries: g.entries[first : first+n]}
			if key != nil {
				trip.key = key.after(first)
			}
			trips = append(trips, trip)
			first += n
		}
	}
	return trips
}

// fitting returns how many of the entries one call carries. An entry with a key or a mark costs
// a script about twice as much as others.
func fitting(entries []Entry) int {
	size, costly := 0, 0
	for i := range entries {
		size += len(entries[i].Payload)
		if entries[i].Key != "" || entries[i].Once > 0 {
			costly++
		}
		if i == layout.BatchEntries || costly > layout.CostlyEntries || (i > 0 && size > layout.BatchBytes) {
			return i
		}
	}
	return len(entries)
}

// inOrder returns the results of the round trips in the order of Add, and why some of them
// are not as the caller wants.
func (b *Batch) inOrder(trips []roundTrip) (done []wakebelltype.Scheduled, short error) {
	if len(trips) == 1 {
		return trips[0].done, cmp.Or(trips[0].stale, trips[0].short)
	}
	results := make(map[string][]wakebelltype.Scheduled, 1+len(b.others)) // by topic
	for i := range trips {
		t := &trips[i]
		results[t.topic] = append(results[t.topic], t.done...)
		short = errors.Join(short, t.short, t.stale)
	}
	if b.owners == nil {
		return results[trips[0].topic], short
	}
	done = make([]wakebelltype.Scheduled, len(b.owners))
	for i, at := range b.owners {
		topic := b.group(at).topic
		done[i], results[topic] = results[topic][0], results[topic][1:]
	}
	return done, short
}
