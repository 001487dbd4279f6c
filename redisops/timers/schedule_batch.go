package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// roundTrip is one of several batches of a call, with its result.
type roundTrip struct {
	done  []wakebelltype.Scheduled
	err   error
	ready chan struct{} // closed when both are set
}

// scheduleAll writes entries in as many round trips as they need. While Redis
// executes one, it prepares and sends the next.
func (s *Timers) scheduleAll(ctx context.Context, topic string, entries []Entry) ([]wakebelltype.Scheduled, error) {
	switch n := batch(entries); {
	case n == 0:
		return nil, nil
	case n == len(entries):
		return s.scheduleSafely(ctx, topic, entries)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var inFlight []*roundTrip // in the order of entries
	done := make([]wakebelltype.Scheduled, 0, len(entries))
	var short error
	for len(entries)+len(inFlight) > 0 {
		if len(entries) > 0 && len(inFlight) < 2 {
			n := batch(entries)
			trip, part := &roundTrip{ready: make(chan struct{})}, entries[:n]
			go func() {
				defer close(trip.ready)
				trip.done, trip.err = s.scheduleSafely(ctx, topic, part)
			}()
			inFlight, entries = append(inFlight, trip), entries[n:]
			continue
		}
		first := inFlight[0]
		inFlight = inFlight[1:]
		<-first.ready
		switch {
		case errors.Is(first.err, wakebelltype.ErrTooFewReplicas): // the batch is stored, so the rest can be as well
			short = first.err
		case first.err != nil:
			cancel()
			for _, trip := range inFlight {
				<-trip.ready
			}
			return done, first.err
		}
		done = append(done, first.done...)
	}
	return done, short
}

// scheduleInTurn writes entries one round trip after the other. Each takes effect
// once, even if it is retried.
func (s *Timers) scheduleInTurn(ctx context.Context, topic string, key *Key, entries []Entry) ([]wakebelltype.Scheduled, error) {
	done := make([]wakebelltype.Scheduled, 0, len(entries))
	var short error
	for len(entries) > 0 {
		n := batch(entries)
		var part []wakebelltype.Scheduled
		err := s.Again(ctx, func() (err error) {
			part, err = s.scheduleBatch(ctx, topic, entries[:n], key.part(len(done)))
			return err
		})
		switch {
		case errors.Is(err, wakebelltype.ErrTooFewReplicas): // the batch is stored, so the rest can be as well
			short = err
		case err != nil:
			return done, err
		}
		done = append(done, part...)
		entries = entries[n:]
	}
	return done, short
}

// scheduleUnkeyed writes a batch in one atomic step.
func (s *Timers) scheduleUnkeyed(ctx context.Context, topic string, entries []Entry) ([]wakebelltype.Scheduled, error) {
	if s.apart(topic, entries) {
		done, err := s.scheduleApart(ctx, topic, entries)
		if !errors.Is(err, errNotApart) {
			return done, err
		}
	}
	return s.scheduleBatch(ctx, topic, entries, nil)
}

// scheduleBatch calls the script for a batch.
func (s *Timers) scheduleBatch(ctx context.Context, topic string, entries []Entry, key *Key) ([]wakebelltype.Scheduled, error) {
	k := s.keys.Of(topic)
	keys, args := scheduleCall(k, entries, false)
	asked, confirmed := confirmationOf(entries), 0
	var reply string
	var err error
	switch {
	case key != nil:
		reply, err = s.runKeyed(ctx, scheduleScript, keyedScheduleScript, k, key, keys, args)
	case asked.replicas > 0:
		reply, confirmed, err = s.runConfirmed(ctx, asked, scheduleScript, keys, args...)
	default:
		reply, err = scripts.AsText(s.Try(ctx, scheduleScript, keys, args...))
	}
	if err != nil {
		return nil, err
	}
	s.topics.found(topic, true)
	out, err := readBatch(entries, reply, confirmed)
	if err == nil && confirmed < asked.replicas {
		err = &wakebelltype.ReplicasError{Want: asked.replicas, Got: confirmed, Waited: asked.timeout}
	}
	return out, err
}

// scheduleCall returns the keys and arguments of lua/schedule.lua, with the
// payloads or without.
func scheduleCall(k TopicKeys, entries []Entry, apart bool) (keys []string, args []any) {
	const fixed = 4
	n, words := len(entries), 2
	if apart {
		words = 1
	}
	instants := n
	if sameInstant(entries) {
		instants = 1
	}
	keys = []string{k.Timeline, k.Payloads, k.Leases, k.Hint}
	if apart {
		keys = append(keys, k.apart())
	}
	policies, onces := make([]byte, n), make([]byte, n)
	args = make([]any, fixed+words*n+instants)
	args[0], args[1], args[2], args[3] = policies, onces, instants, words
	var windows []any
	for i := range entries {
		e := &entries[i]
		policies[i], onces[i] = policyCodes[e.Policy], '-'
		args[fixed+words*i] = &e.ID
		if !apart {
			args[fixed+words*i+1] = e.Payload
		}
		if i < instants {
			args[fixed+words*n+i] = instantArg(e.At, e.In)
		}
		if e.Policy == wakebelltype.PolicyDebounce {
			args = append(args, scripts.DelayMicros(e.MaxDelay))
		}
		if e.Once > 0 {
			onces[i] = 'o'
			keys = append(keys, k.Mark(e.ID))
			windows = append(windows, scripts.DelayMicros(e.Once))
		}
	}
	return keys, append(args, windows...)
}

// sameInstant reports whether all entries have the same instant or delay.
func sameInstant(entries []Entry) bool {
	for i := range entries {
		if entries[i].In != entries[0].In || !entries[i].At.Equal(entries[0].At) {
			return false
		}
	}
	return true
}

// readBatch reads the reply of lua/schedule.lua.
func readBatch(entries []Entry, reply string, confirmed int) (out []wakebelltype.Scheduled, err error) {
	out = make([]wakebelltype.Scheduled, len(entries))
	r := scripts.Reader{Text: reply}
	if rest, all := strings.CutPrefix(reply, "a "); all {
		return allCreated(entries, out, strings.TrimSuffix(rest, "\n"), confirmed)
	}
	var last string // the due instant that was read last, because those of a batch are often equal
	var due time.Time
	for i := range entries {
		outcome, word, found := r.Word(), r.Word(), r.Word()
		if word != last || due.IsZero() {
			score, err := scripts.ReadScore(word)
			if err != nil {
				return nil, err
			}
			last, due = word, scripts.Instant(score)
		}
		out[i] = wakebelltype.Scheduled{
			ID: entries[i].ID, Due: due, Replicas: confirmed, Outcome: wakebelltype.Outcome(strings.Index(outcomeCodes, outcome) + 1),
		}
		if found != "-" {
			score, err := scripts.ReadScore(found)
			if err != nil {
				return nil, err
			}
			out[i].Found = scripts.Instant(score)
		}
	}
	if r.Err == nil && r.Text != "" {
		r.Fail("more than announced")
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return out, nil
}

// allCreated returns the results if no id existed and all timers are due at once.
func allCreated(entries []Entry, out []wakebelltype.Scheduled, due string, confirmed int) ([]wakebelltype.Scheduled, error) {
	score, err := scripts.ReadScore(due)
	if err != nil {
		return nil, err
	}
	at := scripts.Instant(score)
	for i := range out {
		out[i] = wakebelltype.Scheduled{ID: entries[i].ID, Due: at, Outcome: wakebelltype.OutcomeCreated, Replicas: confirmed}
	}
	return out, nil
}

// instantArg formats an instant, or a delay if the instant is zero, for a script.
func instantArg(at time.Time, in time.Duration) string {
	if at.IsZero() {
		return "+" + scripts.DelayMicros(in)
	}
	return scripts.ScoreText(at)
}

// readScheduled reads "outcome due found"; found is - if there was no timer.
func readScheduled(id, line string) (wakebelltype.Scheduled, error) {
	f := strings.Fields(line)
	if len(f) != 3 {
		return wakebelltype.Scheduled{}, fmt.Errorf("%w: %q", scripts.ErrReply, line)
	}
	due, err := scripts.ReadScore(f[1])
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	out := wakebelltype.Scheduled{ID: id, Due: scripts.Instant(due), Outcome: wakebelltype.Outcome(strings.Index(outcomeCodes, f[0]) + 1)}
	if f[2] != "-" {
		found, err := scripts.ReadScore(f[2])
		if err != nil {
			return wakebelltype.Scheduled{}, err
		}
		out.Found = scripts.Instant(found)
	}
	return out, nil
}
