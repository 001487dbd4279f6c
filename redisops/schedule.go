package redisops

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	batchEntries = 500     // entries of one script call
	batchBytes   = 1 << 20 // payload of one script call, unless one entry alone has more
)

// Policy says what a schedule does when the id exists.
type Policy uint8

const (
	// Replace gives the id the new payload and instant; a handler that runs
	// is superseded.
	Replace Policy = iota
	// Keep changes nothing.
	Keep
)

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
)

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
	default:
		return "unknown"
	}
}

// Scheduled answers an Entry.
type Scheduled struct {
	ID string
	// Due is the instant at which the timer is due; of one that was kept, the
	// activation it had.
	Due     time.Time
	Outcome Outcome
}

// Schedule writes timers, at most 500 and about 1 MiB of payload in a round
// trip. All entries are checked before the first is written: an id that is
// empty, too long, not UTF-8 or given twice is an error that wraps
// [ErrInvalid]. When a later round trip fails, the answers of those before it
// are returned beside the error.
func (s *Timers) Schedule(ctx context.Context, topic string, entries ...Entry) ([]Scheduled, error) {
	if err := checkEntries(topic, entries); err != nil {
		return nil, err
	}
	done := make([]Scheduled, 0, len(entries))
	for len(entries) > 0 {
		n := batch(entries)
		part, err := s.scheduleBatch(ctx, topic, entries[:n])
		if err != nil {
			return done, fmt.Errorf("schedule on %q: %w", topic, err)
		}
		done = append(done, part...)
		entries = entries[n:]
	}
	if len(done) > 0 {
		s.remember(ctx, topic)
	}
	return done, nil
}

func checkEntries(topic string, entries []Entry) error {
	if err := checkTopic(topic); err != nil {
		return err
	}
	seen := make(map[string]struct{}, len(entries))
	for i, e := range entries {
		if err := e.Validate(); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if _, twice := seen[e.ID]; twice {
			return fmt.Errorf("entry %d: %w: id %q is given twice", i, ErrInvalid, e.ID)
		}
		seen[e.ID] = struct{}{}
	}
	return nil
}

// Validate reports what is wrong with an entry by itself; the error wraps
// [ErrInvalid].
func (e Entry) Validate() error {
	if err := checkID(e.ID); err != nil {
		return err
	}
	if e.Policy > Keep {
		return fmt.Errorf("%w: policy %d, want Replace or Keep", ErrInvalid, e.Policy)
	}
	if e.At.After(lastInstant) {
		return fmt.Errorf("%w: at: year %d, want at most 9999", ErrInvalid, e.At.Year())
	}
	return nil
}

// batch is how many of the entries go in one call.
func batch(entries []Entry) int {
	size := 0
	for i, e := range entries {
		size += len(e.Payload)
		if i == batchEntries || (i > 0 && size > batchBytes) {
			return i
		}
	}
	return len(entries)
}

func (s *Timers) scheduleBatch(ctx context.Context, topic string, entries []Entry) ([]Scheduled, error) {
	n := len(entries)
	policies := make([]byte, n)
	args := make([]any, 1+3*n)
	for i := range entries {
		e := &entries[i]
		policies[i] = "rk"[e.Policy]
		args[1+i] = &e.ID
		args[1+n+i] = e.Payload
		if e.At.IsZero() {
			args[1+2*n+i] = "+" + delayMicros(e.In)
		} else {
			args[1+2*n+i] = scoreText(e.At)
		}
	}
	args[0] = policies
	k := s.keys.of(topic)
	reply, err := s.runText(ctx, scheduleScript, []string{k.timeline, k.payloads, k.leases, k.hint}, args...)
	if err != nil {
		return nil, err
	}
	out := make([]Scheduled, 0, n)
	for i, line := range strings.SplitN(reply, "\n", n+1)[:n] {
		outcome, due, _ := strings.Cut(line, " ")
		score, err := readScore(due)
		if err != nil {
			return nil, err
		}
		out = append(out, Scheduled{
			ID: entries[i].ID, Due: instant(score),
			Outcome: Outcome(strings.Index("crspk", outcome) + 1),
		})
	}
	return out, nil
}
