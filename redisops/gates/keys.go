package gates

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Keyspace derives the keys of gates from the base names.
type Keyspace struct{ wakebelltype.GateKeys }

// NewKeyspace returns the keyspace of k, whose empty names take their defaults. The
// error wraps [wakebelltype.ErrInvalid] and reports names that are used twice.
func NewKeyspace(k wakebelltype.GateKeys) (Keyspace, error) {
	if k.Holds == "" && k.State != "" { // in the slot of keys that were named before there was this one
		k.Holds = k.State + "-holds"
	}
	s := Keyspace{k}
	return s, layout.Complete("gate keys", s.names())
}

// Bases returns all base names.
func (k Keyspace) Bases() []string { return layout.Bases(k.names()) }

func (k *Keyspace) names() []layout.KeyName {
	return []layout.KeyName{
		{Field: "Stream", Preset: "{gates}:stream", Value: &k.Stream},
		{Field: "Group", Preset: "gates", Value: &k.Group, NotAKey: true},
		{Field: "Signal", Preset: "{gates}:signal", Value: &k.Signal},
		{Field: "State", Preset: "{gates}:state", Value: &k.State},
		{Field: "Guard", Preset: "{gates}:guard", Value: &k.Guard},
		{Field: "Exchange", Preset: "{gates}:exchange", Value: &k.Exchange},
		{Field: "Presence", Preset: "{gates}:presence", Value: &k.Presence},
		{Field: "Deadlines", Preset: "{gates}:deadlines", Value: &k.Deadlines},
		{Field: "Holds", Preset: "{gates}:holds", Value: &k.Holds},
		{Field: "Mark", Preset: "{gates}:mark", Value: &k.Mark},
	}
}

// Parts is into how many parts gates are divided on a Cluster. All processes that share
// gates must have the same number, so it never changes. A process sends a heartbeat for
// each part in which it has or waits for turns, therefore there are no more.
const Parts = 64

// of returns the keyspaces of the parts of gates on rdb. On a Cluster they are Parts
// copies of k with the number of the part in the hash tag, so that the keys of a gate are
// in one slot and those of different parts in different slots. Elsewhere k is the only
// part.
func (k Keyspace) of(rdb redis.UniversalClient) ([]Keyspace, error) {
	if _, clustered := rdb.(*redis.ClusterClient); !clustered {
		return []Keyspace{k}, nil
	}
	if err := k.checkSlots(); err != nil {
		return nil, err
	}
	parts := make([]Keyspace, Parts)
	for i := range parts {
		parts[i] = k.part(i)
	}
	return parts, nil
}

// part returns the keyspace of a part. The channels of processes stay the same: they are
// in no slot, and a process has one subscription for all parts.
func (k Keyspace) part(i int) Keyspace {
	part := k
	for _, n := range part.names() {
		if n.Value != &part.Group && n.Value != &part.Signal {
			*n.Value = layout.Numbered(*n.Value, i)
		}
	}
	return part
}

// Reserves reports whether a key of this name would be among those of gates, also of
// gates on a Cluster.
func (k Keyspace) Reserves(name string) bool {
	name = layout.Unnumbered(name)
	for _, base := range k.Bases() {
		if name == base || strings.HasPrefix(name, base+":") {
			return true
		}
	}
	return false
}

// checkSlots reports as an error that a Cluster would have the keys of a gate in several
// slots.
func (k Keyspace) checkSlots() error {
	for _, key := range []string{k.stream("x"), k.state("x"), k.guard("x"), k.holds("x"), k.exchange("x", "y"), k.Presence, k.Mark} {
		if a, b := layout.SlotOf(k.Deadlines), layout.SlotOf(key); a != b || !layout.HasTag(key) {
			return fmt.Errorf("%w: %q is in slot %d of the Cluster and %q in %d; begin all names of GateKeys with the same {tag}",
				wakebelltype.ErrUnsupported, k.Deadlines, a, key, b)
		}
	}
	return nil
}

func (k Keyspace) stream(gate string) string { return k.Stream + ":" + gate }
func (k Keyspace) state(gate string) string  { return k.State + ":" + gate }
func (k Keyspace) guard(gate string) string  { return k.Guard + ":" + gate }
func (k Keyspace) holds(gate string) string  { return k.Holds + ":" + gate }
func (k Keyspace) channels() string          { return k.Signal + ":" }

// exchange escapes the colons of the process, because the process ends at the first
// colon.
func (k Keyspace) exchange(gate, process string) string {
	return k.Exchange + ":" + layout.EscapeColons.Replace(process) + ":" + gate
}
