package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/usercode"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// MaxOnce is the longest window of Once.
const MaxOnce = 100 * 365 * 24 * time.Hour

// policyCodes has the code of lua/schedule.lua for each Policy, in their order.
const policyCodes = "rked"

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

// outcomeCodes has the code of lua/schedule.lua for each Outcome, in their order.
const outcomeCodes = "crspkemo"

// Schedule writes timers of one topic. It checks all of them before it writes the
// first: an id that is empty, too long, not UTF-8 or given twice is an error that
// wraps [wakebelltype.ErrInvalid]. See [Timers.Write].
func (s *Timers) Schedule(ctx context.Context, topic string, entries ...Entry) ([]wakebelltype.Scheduled, error) {
	b, err := checkedBatch(topic, entries)
	if err != nil {
		return nil, err
	}
	return s.Write(ctx, nil, b)
}

// Write stores the timers of a batch, at most 500 of one topic, of which 200 may have keys
// or Once, and about 1 MiB of payload in a round trip, and returns the results in the order
// in which they were added. A round trip is retried while Redis is unavailable; with an idempotency
// key, it takes effect once. After an error a part of several round trips may be
// stored, but after one that wraps [wakebelltype.ErrTooFewReplicas] all timers are,
// and the results are valid. After one that wraps [scripts.ErrStaleLayout] those timers
// are not stored whose results have no ID.
func (s *Timers) Write(ctx context.Context, key *Key, b Batch) ([]wakebelltype.Scheduled, error) {
	trips := b.roundTrips(key)
	send := func(ctx context.Context, t *roundTrip) error {
		began := s.Metrics.Begin(ctx)
		err := s.Again(ctx, func() (err error) {
			t.done, err = s.coalesce(ctx, t.topic, t.fence, t.key, t.entries)
			return err
		})
		if errors.Is(err, scripts.ErrStaleLayout) { // the other trips may have other fences
			t.stale, t.done = err, make([]wakebelltype.Scheduled, len(t.entries))
			return nil
		}
		if err != nil {
			err = fmt.Errorf("schedule on %q: %w", t.topic, err)
		}
		if errors.Is(err, wakebelltype.ErrTooFewReplicas) { // it is stored, so the others can be as well
			t.short, err = err, nil
		}
		if err == nil {
			s.Remember(ctx, t.topic)
		}
		s.Metrics.Sent(ctx, metrics.Schedule, t.topic, len(t.entries), began, err)
		return err
	}
	var err error
	switch len(trips) {
	case 0:
	case 1:
		err = send(ctx, &trips[0])
	default:
		err = sendAll(ctx, trips, atOnce*(1+len(b.others)), send)
	}
	if err != nil {
		return nil, err
	}
	if b.after != nil {
		b.after(ctx)
	}
	if len(trips) == 0 {
		return nil, nil
	}
	return b.inOrder(trips)
}

// atOnce is how many round trips of a topic without a key are in flight: while Redis
// executes one, the next is prepared and sent. maxAtOnce bounds those of all topics.
const (
	atOnce    = 2
	maxAtOnce = 32
)

// sendAll sends round trips in their order, and stops at the first that fails.
func sendAll(ctx context.Context, trips []roundTrip, most int, send func(context.Context, *roundTrip) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var inFlight sync.WaitGroup
	var once sync.Once
	var failed error
	free := make(chan struct{}, min(most, maxAtOnce))
	for i := range trips {
		free <- struct{}{}
		if trips[i].key != nil { // one after the other
			inFlight.Wait()
		}
		if ctx.Err() != nil {
			break
		}
		inFlight.Go(func() {
			defer func() { <-free }()
			if err := usercode.Called("a schedule", func() error { return send(ctx, &trips[i]) }); err != nil {
				once.Do(func() { failed = err; cancel() })
			}
		})
	}
	inFlight.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// codeHasKey is the code in lua/schedule.lua of the error that a batch without keys has
// the id of a timer that has one.
const codeHasKey = "WAKEBELLORDER"

// replaceKeyless puts the leases in place of the keys of timers, which are the last of
// keys and to which the user has no right.
func (s *Timers) replaceKeyless(topic string, keys []string) {
	keys[len(keys)-1] = s.keys.key(s.keys.Leases, topic)
}

// lacksKeys reports whether the user has no right to the keys of timers.
func (s *Timers) lacksKeys(ctx context.Context, topic string) bool {
	return scripts.IsDenied(s.RDB.Exists(ctx, s.keys.key(s.keys.TimerKeys, topic)).Err())
}

// call runs lua/schedule.lua for timers of one topic: it stores all of them in one
// atomic step, or none. Keyed says that they have keys.
func (s *Timers) call(ctx context.Context, topic string, fence *Fence, key *Key, entries []Entry, keyed bool) ([]wakebelltype.Scheduled, error) {
	fence = s.needed(fence)
	if key == nil && !keyed && len(entries) >= s.apartFrom && s.mayGoApart(topic, entries) {
		done, err := s.callApart(ctx, topic, fence, entries)
		if !errors.Is(err, errNotApart) {
			return done, err
		}
	}
	counting := s.counting()
	keys, args := scheduleCall(s.keys, topic, entries, false, counting, keyed)
	script := scheduleScript
	if keyed {
		script = scheduleKeysScript
	} else if s.keyless.Load() {
		s.replaceKeyless(topic, keys)
	}
	keys, args = scripts.WithGuards(fence.Guards(s.keys, topic), keys, args)
	asked, confirmed := confirmationOf(entries), 0
	var reply string
	var err error
	switch {
	case key != nil:
		script, keys, args = key.around(script, fence, s.keys.Of(topic), keys, args, len(entries), func(i int) *string { return &entries[i].ID }, true)
		reply, err = scripts.AsText(s.Try(ctx, script, keys, args...))
	case asked.replicas > 0:
		reply, confirmed, err = s.runConfirmed(ctx, asked, script, keys, args...)
	case s.NoCoalescing:
		reply, err = scripts.AsText(s.Try(ctx, script, keys, args...))
	default:
		reply, err = scripts.AsText(s.TryBatched(ctx, s.ShardOf(keys[0]), script, keys, args...))
	}
	if err != nil {
		return s.callOtherwise(ctx, topic, fence, key, entries, keyed, counting, err)
	}
	s.topics.found(topic, true)
	if strings.HasPrefix(reply, codeKnown) {
		return s.callRest(ctx, topic, fence, key, entries, reply)
	}
	out, err := readScheduled(entries, reply, confirmed)
	if err == nil && confirmed < asked.replicas {
		err = &wakebelltype.ReplicasError{Want: asked.replicas, Got: confirmed, Waited: asked.timeout}
	}
	return out, err
}

// callOtherwise calls the script again after Redis has refused it: with the keys in which
// the order is stored if the id of a stored timer has a key, or without what the user has
// no right to. If that is not the reason, it returns err.
func (s *Timers) callOtherwise(ctx context.Context, topic string, fence *Fence, key *Key, entries []Entry, keyed, counting bool, err error) ([]wakebelltype.Scheduled, error) {
	switch {
	case strings.Contains(err.Error(), codeHasKey):
		return s.call(ctx, topic, fence, key, entries, true)
	case !scripts.IsDenied(err):
	case !keyed && !s.keyless.Load() && s.lacksKeys(ctx, topic):
		s.keyless.Store(true)
		return s.call(ctx, topic, fence, key, entries, false)
	case counting:
		return s.callUncounted(ctx, topic, fence, key, entries)
	case fence != nil && fence.Layout == "":
		return s.callUnfenced(ctx, topic, key, entries)
	}
	return nil, err
}

// callRest calls the script for those of entries that have no answer in a reply of Redis,
// which has those of the others.
func (s *Timers) callRest(ctx context.Context, topic string, fence *Fence, key *Key, entries []Entry, reply string) ([]wakebelltype.Scheduled, error) {
	answers, _, err := cutKnown(reply, len(entries))
	if err != nil {
		return nil, err
	}
	out := make([]wakebelltype.Scheduled, len(entries))
	if err := readKnown(entries, answers, out); err != nil {
		return nil, err
	}
	var rest []Entry
	for i := range entries {
		if answers[i] == "" {
			rest = append(rest, entries[i])
		}
	}
	if len(rest) == 0 {
		return out, nil
	}
	done, err := s.call(ctx, topic, fence, key, rest, hasKeys(rest))
	if err != nil {
		return nil, err
	}
	for i := range out {
		if answers[i] == "" {
			out[i], done = done[0], done[1:]
		}
	}
	return out, nil
}
