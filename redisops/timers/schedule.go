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
)

// MaxOnce is the longest window of Once.
const MaxOnce = 100 * 365 * 24 * time.Hour

// Policy says what a schedule does when the id exists.
type Policy uint8

const (
	// Replace gives the id the new payload and instant; a handler that runs
	// is superseded.
	Replace Policy = iota
	// Keep changes nothing.
	Keep
	// Earliest replaces where the new instant is before the one at which the
	// timer is due next, else it changes nothing; a handler that runs is
	// superseded.
	Earliest
	// Debounce moves the timer to In from now with the new payload, but never
	// later than MaxDelay after it was first scheduled; a handler that runs is
	// superseded. A delivery that failed ends the count from the first.
	Debounce
)

const policyLetters = "rked"

// Entry is one timer to schedule.
type Entry struct {
	ID      string // valid UTF-8, 1 to 512 bytes
	Payload []byte

	// At is the instant at which the timer becomes due, rounded up to the µs;
	// the past is due at once. It lies before the year 10000.
	At time.Time
	// In is used when At is zero: the delay from Redis's now. Negative: none.
	In time.Duration

	Policy Policy
	// MaxDelay is Debounce's: how long after it was first scheduled the timer is
	// due at the latest; at least In, or 0 for no bound.
	MaxDelay time.Duration

	// Once, if not 0, has the id fire once from now until Once after its
	// instant: scheduled again with Once meanwhile, a timer that was delivered or
	// moved is kept, and one that is gone (handled, dead, cancelled) is not
	// written again. 1 ms to 100 years. The id keeps a small key for as long.
	Once time.Duration

	// Replicas is how many replicas are to confirm the timer before Schedule
	// returns, at most MaxReplicas, and ReplicaTimeout for how long it waits for
	// them, 1 ms to MaxReplicaTimeout; 0: none. Of a batch the most that one of
	// its entries asks for counts.
	Replicas       int
	ReplicaTimeout time.Duration
}

// Outcome says what a schedule did.
type Outcome uint8

// What a schedule found under the id and did.
const (
	Created     Outcome = iota + 1 // the id was absent
	Replaced                       // it was pending and has the new payload and instant
	Superseded                     // the same; a handler runs and is superseded
	KeptPending                    // it was pending and is unchanged
	KeptRunning                    // a handler runs; nothing changed
	KeptEarlier                    // it was pending, due as early or earlier, and is unchanged
	Moved                          // it was pending and has a new instant
	AlreadyDone                    // it was scheduled with Once and is gone; nothing changed
)

const outcomeLetters = "crspkemo"

func (o Outcome) String() string {
	switch o {
	case Created:
		return "created"
	case Replaced:
		return "replaced"
	case Superseded:
		return "superseded"
	case KeptPending:
		return "kept pending"
	case KeptRunning:
		return "kept running"
	case KeptEarlier:
		return "kept earlier"
	case Moved:
		return "moved"
	case AlreadyDone:
		return "already done"
	default:
		return "unknown"
	}
}

// Scheduled tells what became of an Entry.
type Scheduled struct {
	ID string
	// Due is when the timer is due, by Redis's clock; of one that was kept, the
	// activation it had; of one that is done, the instant at which it was due.
	Due time.Time
	// Outcome says whether the timer is new, or what was found under its id.
	Outcome Outcome
	// Found is the instant at which the timer that was found was due next (of a
	// running one, the end of its lease); zero where there was none.
	Found time.Time
	// Replicas is how many replicas confirmed it; 0 where none were asked.
	Replicas int
}

// Schedule writes timers, at most 500 and about 1 MiB of payload in a round
// trip. All entries are checked before the first is written: an id that is
// empty, too long, not UTF-8 or given twice is an error that wraps
// [ErrInvalid]. Of several round trips two are under way at a time; when one
// fails, the answers of those before it are returned beside the error, and one
// after it may have been written.
func (s *Timers) Schedule(ctx context.Context, topic string, entries ...Entry) ([]Scheduled, error) {
	return s.ScheduleKeyed(ctx, topic, nil, entries...)
}

// ScheduleKeyed is Schedule with an idempotency key; nil: none.
func (s *Timers) ScheduleKeyed(ctx context.Context, topic string, key *Key, entries ...Entry) ([]Scheduled, error) {
	if err := checkEntries(topic, entries); err != nil {
		return nil, err
	}
	var done []Scheduled
	var err error
	if key == nil {
		done, err = s.scheduleAll(ctx, topic, entries)
	} else {
		done, err = s.scheduleInTurn(ctx, topic, key, entries)
	}
	if err != nil && !errors.Is(err, ErrTooFewReplicas) {
		return done, fmt.Errorf("schedule on %q: %w", topic, err)
	}
	if len(done) > 0 {
		s.Remember(ctx, topic)
	}
	if err != nil { // it is stored, all of it
		err = fmt.Errorf("schedule on %q: %w", topic, err)
	}
	return done, err
}

// scheduleSafely calls the script for a batch, and again while Redis is
// unavailable: each caller for as long as its own context says, whoever travels
// with it. Who waits for replicas travels alone.
func (s *Timers) scheduleSafely(ctx context.Context, topic string, entries []Entry) (done []Scheduled, err error) {
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

// Twice returns the index of the first entry whose id one before it has; -1:
// there is none. It is a small hash table, as a map would cost a tenth of a
// schedule.
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
		places[place] = int32(i + 1) //nolint:gosec // as many entries do not fit into memory
	}
	return -1
}

// Validate reports what is wrong with an entry by itself; the error wraps
// [ErrInvalid].
func (e *Entry) Validate() error {
	if err := layout.CheckID(e.ID); err != nil {
		return err
	}
	if fault := e.fault(); fault != "" {
		return fmt.Errorf("%w: %s", redisops.ErrInvalid, fault)
	}
	return nil
}

// fault says what is wrong with an entry beside its id; empty: nothing.
func (e *Entry) fault() string {
	switch {
	case e.Policy > Debounce:
		return fmt.Sprintf("policy: %d is unknown", e.Policy)
	case e.At.After(scripts.LastInstant):
		return fmt.Sprintf("at: year %d, want at most 9999", e.At.Year())
	case e.Once != 0 && (e.Once < time.Millisecond || e.Once > MaxOnce):
		return fmt.Sprintf("once: %v, want 1ms to 100 years", e.Once)
	case e.Replicas < 0 || e.Replicas > MaxReplicas:
		return fmt.Sprintf("replicas: %d, want 0 to %d", e.Replicas, MaxReplicas)
	case e.Replicas > 0 && (e.ReplicaTimeout < time.Millisecond || e.ReplicaTimeout > MaxReplicaTimeout):
		return fmt.Sprintf("replica timeout: %v, want 1ms to %v", e.ReplicaTimeout, MaxReplicaTimeout)
	case e.Policy != Debounce:
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

// batch is how many of the entries go in one call.
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
