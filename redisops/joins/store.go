package joins

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/together"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/progress"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// MaxParts bounds the parts of a join.
	MaxParts = 100_000
	// Retention is for how long a join stays after the instant of its timer, and after the
	// last audit that has seen the timer.
	Retention = 24 * time.Hour
	// After is for how long a join stays whose timer has ended.
	After = time.Hour

	partsOfCall = layout.BatchEntries
)

// Store is the store of joins.
type Store struct {
	topics *shards.Store
	timers *timers.Timers
	kept   *progress.Store
	notes  together.Calls[Ref, End, struct{}]
}

// New returns the store of joins beside topics.
func New(topics *shards.Store) *Store {
	return &Store{topics: topics, timers: topics.Timers(), kept: progress.New(topics.Timers())}
}

// keys returns the keys of a join, which are in one slot.
func (s *Store) keys(r Ref) []string {
	state := s.timers.Keys().JoinOf(member(wakebelltype.Part{Topic: r.Topic, ID: r.ID}))
	return []string{state, state + ":parts", state + ":ends"}
}

// check checks the names of a join.
func check(r Ref) error {
	if err := layout.CheckLogical(r.Topic); err != nil {
		return err
	}
	return layout.CheckID(r.ID)
}

// Create makes an open join, whose timer is due in at most life. It replaces another join of
// that timer, and does no harm if it is repeated.
func (s *Store) Create(ctx context.Context, r Ref, life time.Duration, parts ...wakebelltype.Part) error {
	if err := check(r); err != nil {
		return err
	}
	if r.Name == "" {
		return argument.Invalid("join", "without a name")
	}
	if len(parts) > MaxParts {
		return tooMany(len(parts))
	}
	first := parts[:min(partsOfCall, len(parts))]
	if _, err := s.enlist(ctx, r, life+Retention, true, first); err != nil {
		return err
	}
	if err := s.checkIn(ctx, r, firstCheck); err != nil {
		return err
	}
	s.timers.Metrics.Joined(ctx, r.Topic, metrics.JoinMade)
	_, err := s.add(ctx, r, parts[len(first):])
	return err
}

func tooMany(n int) error {
	return argument.Invalid("parts", "%d, at most %d of a join", n, MaxParts)
}

// Add adds parts to an open join before they are scheduled, and returns it with its name. The
// error wraps [wakebelltype.ErrNotFound] if there is no such join, and
// [wakebelltype.ErrInvalid] if it is closed or would have too many parts: no part of the last
// call, of up to 500, was added then. Names are checked before.
func (s *Store) Add(ctx context.Context, r Ref, parts ...wakebelltype.Part) (Ref, error) {
	if err := check(r); err != nil {
		return r, err
	}
	if err := checkParts("parts", wakebelltype.Part{Topic: r.Topic, ID: r.ID}, parts); err != nil {
		return r, err
	}
	return s.add(ctx, r, parts)
}

func (s *Store) add(ctx context.Context, r Ref, parts []wakebelltype.Part) (_ Ref, err error) {
	for page := range slices.Chunk(parts, partsOfCall) {
		if r, err = s.enlist(ctx, r, 0, false, page); err != nil {
			return r, err
		}
	}
	return r, nil
}

// enlist adds parts in one call.
func (s *Store) enlist(ctx context.Context, r Ref, life time.Duration, create bool, parts []wakebelltype.Part) (Ref, error) {
	args := []any{r.Name, life.Milliseconds(), flag(create), MaxParts}
	for _, p := range parts {
		switch err := check(Ref{Topic: p.Topic, ID: p.ID}); {
		case err != nil:
			return r, fmt.Errorf("part: %w", err)
		case p.Topic == r.Topic && p.ID == r.ID:
			return r, argument.Invalid("parts", "%s of %s would wait for itself", argument.Quote(p.ID), argument.Quote(p.Topic))
		}
		args = append(args, member(p))
	}
	reply, err := s.timers.RunText(ctx, enlistScript, s.keys(r), args...)
	if err != nil {
		return r, s.failed(r, err)
	}
	switch code, name := reply[:min(1, len(reply))], reply[min(1, len(reply)):]; code {
	case "o":
		r.Name = name
		return r, nil
	case "a":
		return r, noJoin(r)
	case "c":
		return r, argument.Invalid("parts", "the join of %s on %s is closed", argument.Quote(r.ID), argument.Quote(r.Topic))
	case "f":
		return r, argument.Invalid("parts", "the join of %s on %s would have more than %d", argument.Quote(r.ID), argument.Quote(r.Topic), MaxParts)
	default:
		return r, s.failed(r, scripts.ErrReply)
	}
}

func noJoin(r Ref) error {
	return fmt.Errorf("%w: a join of %s on %s", wakebelltype.ErrNotFound, argument.Quote(r.ID), argument.Quote(r.Topic))
}

func (s *Store) failed(r Ref, err error) error {
	return fmt.Errorf("join of %s on %s: %w", argument.Quote(r.ID), argument.Quote(r.Topic), err)
}

// Close closes a join to further parts, and runs its timer if all parts have ended. The error
// wraps [wakebelltype.ErrNotFound] if there is no such join. It may be repeated.
func (s *Store) Close(ctx context.Context, r Ref) error {
	if err := check(r); err != nil {
		return err
	}
	found, _, err := s.settle(ctx, r, true, nil)
	if err == nil && !found {
		err = noJoin(r)
	}
	return err
}

// End is how a part has ended.
type End struct {
	wakebelltype.Part
	wakebelltype.End
	Reason string           // of a dead letter
	Result *progress.Result // of a part that is done; nil: none
	At     time.Time        // when it was noted
	Rank   int              // how many parts of the join come before it

	added time.Time // to the join
}

// Note notes the ends of parts of a join. If all parts have ended then, it runs the timer. A
// join that does not exist any more is no error. It may be repeated: the first end of a part
// stays.
func (s *Store) Note(ctx context.Context, r Ref, ends ...End) error {
	_, _, err := s.settle(ctx, r, false, ends)
	return err
}

// NoteOne is Note for a node whose handlers end at the same time: ends that come while a call
// for the join is on its way are noted by the next one, together.
func (s *Store) NoteOne(ctx context.Context, r Ref, e End) error {
	_, err := s.notes.Do(ctx, r, e, func(ctx context.Context, ends []End) ([]struct{}, error) {
		return make([]struct{}, len(ends)), s.Note(ctx, r, ends...)
	})
	return err
}

// settle is Note, which may close the join. Found reports whether it exists, and noted how many
// ends are new.
func (s *Store) settle(ctx context.Context, r Ref, closes bool, ends []End) (found bool, noted int, err error) {
	for first := true; first || len(ends) > 0; first = false {
		args := []any{r.Name, flag(closes)}
		n, size := 0, 0
		for n < len(ends) && n < partsOfCall && size < layout.BatchBytes {
			text := ends[n].text()
			args = append(args, member(ends[n].Part), text)
			n, size = n+1, size+len(text)
		}
		ends = ends[n:]
		reply, err := s.timers.RunText(ctx, settleScript, s.keys(r), args...)
		switch {
		case err != nil:
			return false, noted, s.failed(r, err)
		case reply == "" || reply == "a":
			return false, noted, nil
		}
		noted += len(reply) - 1
		s.count(ctx, r, reply[1:])
		if reply[0] == 'e' {
			if err := s.fire(ctx, r); err != nil {
				return true, noted, err
			}
		}
	}
	return true, noted, nil
}

// count measures ends by their codes.
func (s *Store) count(ctx context.Context, r Ref, noted string) {
	if noted == "" || s.timers.Metrics == nil {
		return
	}
	for end, code := range codes {
		s.timers.Metrics.PartsEnded(ctx, r.Topic, string(end), strings.Count(noted, code))
	}
}

// Began measures that the handler of the timer of a join begins, and whether all parts have
// ended. It reads the join for that and returns it, unless nothing is measured and it is not
// wanted.
func (s *Store) Began(ctx context.Context, r Ref, wanted bool) (join wakebelltype.Join, found bool) {
	measured := s.timers.Metrics.MeasuresJoins(ctx)
	if !measured && !wanted {
		return join, false
	}
	_, join, err := s.Head(ctx, r)
	switch {
	case err != nil: // it is not counted
	case !measured:
	case join.Complete():
		s.timers.Metrics.Joined(ctx, r.Topic, metrics.JoinComplete)
	default:
		s.timers.Metrics.Joined(ctx, r.Topic, metrics.JoinTimedOut)
	}
	return join, err == nil
}

// fire runs the timer of a join of which all parts have ended, once: a timer that waits for
// its next attempt is left alone later.
func (s *Store) fire(ctx context.Context, r Ref) error {
	if r.Name == "" {
		var err error
		if r, _, err = s.Head(ctx, r); err != nil {
			return err
		}
	}
	t, err := s.timerOf(ctx, r)
	if t != nil {
		_, err = s.topics.RunNow(ctx, r.Topic, r.ID)
	}
	if err = ignoreAbsent(err); err != nil {
		return s.failed(r, err)
	}
	return s.note(ctx, r, "", "ran", "1")
}

// note sets fields of a join, and, if life is not empty, for how many ms it stays.
func (s *Store) note(ctx context.Context, r Ref, life string, fields ...any) error {
	_, err := s.timers.RunText(ctx, noteScript, s.keys(r), append([]any{r.Name, life}, fields...)...)
	if err != nil {
		return s.failed(r, err)
	}
	return nil
}

// flag is the argument of a script that is true or false.
func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
