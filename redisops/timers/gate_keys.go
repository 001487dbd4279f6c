package timers

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
)

// GateKeys are the base names of what the gates keep. The key of gate N is the
// base name, a colon and N. By default all begin with the hash tag "{gates}":
// on a Redis Cluster all gates of one GateKeys must be in one slot.
type GateKeys struct {
	Stream    string // stream: the tickets in order; default "{gates}:stream"
	Group     string // consumer group of the streams, its pending entry is the turn; default "gates"
	Signal    string // a process's channel is this, a colon and its name; default "{gates}:signal"
	State     string // hash: who has the turn; default "{gates}:state"
	Guard     string // hash: resource → newest token seen; default "{gates}:guard"
	Exchange  string // last request of a process at a gate; default "{gates}:exchange"
	Presence  string // zset, one key for all: process → until when it lives; default "{gates}:presence"
	Deadlines string // zset, one key for all: gate in use → when to look at it; default "{gates}:deadlines"
	Mark      string // string, one key for all: the highest ticket of any gate; default "{gates}:mark"
}

// WithDefaults fills in the names that are empty.
func (k GateKeys) WithDefaults() GateKeys {
	for _, n := range k.names() {
		if *n.value == "" {
			*n.value = n.preset
		}
	}
	return k
}

// Validate reports all names that are empty or given twice; the error wraps
// [ErrInvalid].
func (k GateKeys) Validate() error {
	var errs []error
	first := map[string]string{}
	for _, n := range k.names() {
		switch other := first[*n.value]; {
		case *n.value == "":
			errs = append(errs, fmt.Errorf("%w: gate keys: %s is empty", redisops.ErrInvalid, n.field))
		case n.field == "Group": // no key
		case other != "":
			errs = append(errs, fmt.Errorf("%w: gate keys: %s and %s are both %q", redisops.ErrInvalid, other, n.field, *n.value))
		default:
			first[*n.value] = n.field
		}
	}
	return errors.Join(errs...)
}

// Bases are all base names.
func (k GateKeys) Bases() []string { return bases(k.names()) }

func (k *GateKeys) names() []keyName {
	return []keyName{
		{field: "Stream", preset: "{gates}:stream", value: &k.Stream},
		{field: "Group", preset: "gates", value: &k.Group},
		{field: "Signal", preset: "{gates}:signal", value: &k.Signal},
		{field: "State", preset: "{gates}:state", value: &k.State},
		{field: "Guard", preset: "{gates}:guard", value: &k.Guard},
		{field: "Exchange", preset: "{gates}:exchange", value: &k.Exchange},
		{field: "Presence", preset: "{gates}:presence", value: &k.Presence},
		{field: "Deadlines", preset: "{gates}:deadlines", value: &k.Deadlines},
		{field: "Mark", preset: "{gates}:mark", value: &k.Mark},
	}
}

// checkSlots says whether a Cluster keeps all keys in one slot.
func (k GateKeys) checkSlots(rdb redis.UniversalClient) error {
	if _, clustered := rdb.(*redis.ClusterClient); !clustered {
		return nil
	}
	for _, key := range []string{k.stream("x"), k.state("x"), k.guard("x"), k.exchange("x", "y"), k.Presence, k.Mark} {
		if a, b := slotOf(k.Deadlines), slotOf(key); a != b {
			return fmt.Errorf("%w: %q is in slot %d of the Cluster and %q in %d; begin all names of GateKeys with the same {tag}",
				redisops.ErrUnsupported, k.Deadlines, a, key, b)
		}
	}
	return nil
}

func (k GateKeys) stream(gate string) string { return k.Stream + ":" + gate }
func (k GateKeys) state(gate string) string  { return k.State + ":" + gate }
func (k GateKeys) guard(gate string) string  { return k.Guard + ":" + gate }
func (k GateKeys) channels() string          { return k.Signal + ":" }

// exchange escapes the colons of the process, which ends at the first one.
func (k GateKeys) exchange(gate, process string) string {
	return k.Exchange + ":" + escapeColons.Replace(process) + ":" + gate
}
