package gates

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
)

// Keys are the base names of the keys of gates. The key of gate N is the base name,
// a colon and N. By default all begin with the hash tag "{gates}", because on a
// Redis Cluster all gates of one Keys must be in one slot.
type Keys struct {
	Stream    string // stream: the tickets in order; default "{gates}:stream"
	Group     string // consumer group of the streams, whose pending entry is the turn; default "gates"
	Signal    string // prefix of a process's channel, before a colon and its name; default "{gates}:signal"
	State     string // hash: holder of the turn; default "{gates}:state"
	Guard     string // hash: resource → newest token used; default "{gates}:guard"
	Exchange  string // last request of a process at a gate; default "{gates}:exchange"
	Presence  string // zset, one key for all: process → when its presence expires; default "{gates}:presence"
	Deadlines string // zset, one key for all: gate in use → when to check it; default "{gates}:deadlines"
	Mark      string // string, one key for all: the highest ticket of any gate; default "{gates}:mark"
}

// WithDefaults sets the empty names to their defaults.
func (k Keys) WithDefaults() Keys {
	for _, n := range k.names() {
		if *n.Value == "" {
			*n.Value = n.Preset
		}
	}
	return k
}

// Validate reports all names that are empty or used twice; the error wraps
// [ErrInvalid].
func (k Keys) Validate() error { return layout.CheckNames("gate keys", k.names()) }

// Bases returns all base names.
func (k Keys) Bases() []string { return layout.Bases(k.names()) }

func (k *Keys) names() []layout.KeyName {
	return []layout.KeyName{
		{Field: "Stream", Preset: "{gates}:stream", Value: &k.Stream},
		{Field: "Group", Preset: "gates", Value: &k.Group, NotAKey: true},
		{Field: "Signal", Preset: "{gates}:signal", Value: &k.Signal},
		{Field: "State", Preset: "{gates}:state", Value: &k.State},
		{Field: "Guard", Preset: "{gates}:guard", Value: &k.Guard},
		{Field: "Exchange", Preset: "{gates}:exchange", Value: &k.Exchange},
		{Field: "Presence", Preset: "{gates}:presence", Value: &k.Presence},
		{Field: "Deadlines", Preset: "{gates}:deadlines", Value: &k.Deadlines},
		{Field: "Mark", Preset: "{gates}:mark", Value: &k.Mark},
	}
}

// checkSlots reports as an error that a Cluster has the keys in several slots.
func (k Keys) checkSlots(rdb redis.UniversalClient) error {
	if _, clustered := rdb.(*redis.ClusterClient); !clustered {
		return nil
	}
	for _, key := range []string{k.stream("x"), k.state("x"), k.guard("x"), k.exchange("x", "y"), k.Presence, k.Mark} {
		if a, b := layout.SlotOf(k.Deadlines), layout.SlotOf(key); a != b {
			return fmt.Errorf("%w: %q is in slot %d of the Cluster and %q in %d; begin all names of GateKeys with the same {tag}",
				redisops.ErrUnsupported, k.Deadlines, a, key, b)
		}
	}
	return nil
}

func (k Keys) stream(gate string) string { return k.Stream + ":" + gate }
func (k Keys) state(gate string) string  { return k.State + ":" + gate }
func (k Keys) guard(gate string) string  { return k.Guard + ":" + gate }
func (k Keys) channels() string          { return k.Signal + ":" }

// exchange escapes the colons of the process, because the process ends at the first
// colon.
func (k Keys) exchange(gate, process string) string {
	return k.Exchange + ":" + layout.EscapeColons.Replace(process) + ":" + gate
}
