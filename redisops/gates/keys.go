package gates

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Keyspace derives the keys of gates from the base names.
type Keyspace struct{ wakebelltype.GateKeys }

// NewKeyspace returns the keyspace of k, whose empty names take their defaults. The
// error wraps [redisops.ErrInvalid] and reports names that are used twice.
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

// checkSlots reports as an error that a Cluster has the keys in several slots.
func (k Keyspace) checkSlots(rdb redis.UniversalClient) error {
	if _, clustered := rdb.(*redis.ClusterClient); !clustered {
		return nil
	}
	for _, key := range []string{k.stream("x"), k.state("x"), k.guard("x"), k.holds("x"), k.exchange("x", "y"), k.Presence, k.Mark} {
		if a, b := layout.SlotOf(k.Deadlines), layout.SlotOf(key); a != b {
			return fmt.Errorf("%w: %q is in slot %d of the Cluster and %q in %d; begin all names of GateKeys with the same {tag}",
				redisops.ErrUnsupported, k.Deadlines, a, key, b)
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
