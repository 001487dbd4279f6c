package timers

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"time"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MaxOnce is the longest window of Once.
const MaxOnce = 100 * 365 * 24 * time.Hour

const policyCodes = "rked"

// Entry is one timer to schedule.
type Entry struct {
	ID      string // valid UTF-8, 1 to 512 bytes
	Payload []byte

	// At is the instant at which the timer becomes due, rounded up to the µs. A
	// past instant is due at once. It must be before the year 10000.
	At time.Time
	// In is the delay from Redis's now; it is used if At is zero. Negative means
	// none.
	In time.Duration

	Policy wakebelltype.Policy
	// MaxDelay is for Debounce: the longest time from the first schedule to the
	// instant at which the timer is due; at least In, or 0 for no bound.
	MaxDelay time.Duration

	// Once, if not 0, makes the id fire once from now until Once after its instant.
	// If it is scheduled again with Once meanwhile, a timer that was delivered or
	// moved is unchanged, and a timer that is gone (handled, dead-lettered,
	// cancelled) is not written again. 1 ms to 100 years. A small key is stored for
	// the id for as long.
	Once time.Duration

	// Replicas is how many replicas must confirm the timer before Schedule returns,
	// 0 to MaxReplicas. ReplicaTimeout is how long Schedule waits for them, 1 ms to
	// MaxReplicaTimeout. The largest values of its entries apply to a batch.
	Replicas       int
	ReplicaTimeout time.Duration
}

const outcomeCodes = "crspkemo"

// Schedule writes timers, at most 500 and about 1 MiB of payload in a round trip.
// It checks all entries before it writes the first: an id that is empty, too long,
// not UTF-8 or given twice is an error that wraps [ErrInvalid]. Two round trips are
// in flight at a time. If one fails, Schedule returns the results of the earlier
// ones with the error; a later one may have been written.
func (s *Timers) Schedule(ctx context.Context, topic string, entries ...Entry) ([]wakebelltype.Scheduled, error) {
	return s.ScheduleKeyed(ctx, topic, nil, entries...)
}

// ScheduleKeyed is Schedule with an idempotency key; nil means none.
func (s *Timers) ScheduleKeyed(ctx context.Context, topic string, key *Key, entries ...Entry) ([]wakebelltype.Scheduled, error) {
	if err := checkEntries(topic, entries); err != nil {
		return nil, err
	}
	var done []wakebelltype.Scheduled
	var err error
	if key == nil {
		done, err = s.scheduleAll(ctx, topic, entries)
	} else {
		done, err = s.scheduleInTurn(ctx, topic, key, entries)
	}
	if err != nil && !errors.Is(err, wakebelltype.ErrTooFewReplicas) {
		return done, fmt.Errorf("schedule on %q: %w", topic, err)
	}
	if len(done) > 0 {
		s.Remember(ctx, topic)
	}
	if err != nil { // all entries are stored
		err = fmt.Errorf("schedule on %q: %w", topic, err)
	}
	return done, err
}

// scheduleSafely calls the script for a batch and retries while Redis is
// unavailable. Each caller retries for as long as its own context allows, even if
// its batch is sent with others. A batch that waits for replicas is sent alone.
func (s *Timers) scheduleSafely(ctx context.Context, topic string, entries []Entry) (done []wakebelltype.Scheduled, err error) {
	call := s.schedule
	if confirmationOf(entries).replicas > 0 {
		call = s.scheduleUnkeyed
	}
	err = s.Again(ctx, func() (err error) {
		done, err = call(ctx, topic, entries)
		return err
	})
	return done, err
}

func checkEntries(topic string, entries []Entry) error {
	if err := layout.CheckTopic(topic); err != nil {
		return err
	}
	for i := range entries {
		if err := entries[i].Validate(); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	if i := Twice(entries); i >= 0 {
		return fmt.Errorf("entry %d: %w: id %q is given twice", i, redisops.ErrInvalid, entries[i].ID)
	}
	return nil
}

var seed = maphash.MakeSeed()

// Twice returns the index of the first entry whose id occurs before, or -1. It uses
// a small hash table, because a map would cost a tenth of a schedule.
func Twice(entries []Entry) int {
	if len(entries) < 2 {
		return -1
	}
	places := make([]int32, 1<<bits.Len(uint(2*len(entries)))) // index + 1; 0: free
	mask := uint64(len(places) - 1)
	for i := range entries {
		place := maphash.String(seed, entries[i].ID) & mask
		for places[place] != 0 {
			if entries[places[place]-1].ID == entries[i].ID {
				return i
			}
			place = (place + 1) & mask
		}
		places[place] = int32(i + 1) //nolint:gosec // so many entries do not fit into memory
	}
	return -1
}

// Validate checks an entry by itself; the error wraps [ErrInvalid].
func (e *Entry) Validate() error {
	if err := layout.CheckID(e.ID); err != nil {
		return err
	}
	if fault := e.fault(); fault != "" {
		return fmt.Errorf("%w: %s", redisops.ErrInvalid, fault)
	}
	return nil
}

// fault describes what is wrong with an entry, apart from its id; empty means
// valid.
func (e *Entry) fault() string {
	switch {
	case e.Policy > wakebelltype.PolicyDebounce:
		return fmt.Sprintf("policy: %d is unknown", e.Policy)
	case e.At.After(scripts.LastInstant):
		return fmt.Sprintf("at: year %d, want at most 9999", e.At.Year())
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

// batch returns how many of the entries one call carries.
func batch(entries []Entry) int {
	size := 0
	for i, e := range entries {
		size += len(e.Payload)
		if i == layout.BatchEntries || (i > 0 && size > layout.BatchBytes) {
			return i
		}
	}
	return len(entries)
}
