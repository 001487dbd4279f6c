package joins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	atOnce    = 16   // timers that are looked at at once
	lettersOf = 1000 // dead letters of a topic among which a part is sought
	markTries = 3    // of a timer that others write meanwhile
)

// Adopt gives parts that were scheduled before the header of a join to which they were added,
// so that their nodes note their ends. It notes at once how those have ended that do not exist
// any more: by what they left, or as missing. A part whose node has it already is left to the
// audit.
func (s *Store) Adopt(ctx context.Context, r Ref, parts ...wakebelltype.Part) error {
	var mu sync.Mutex
	var gone []wakebelltype.Part
	err := s.each(ctx, parts, func(p wakebelltype.Part) error {
		exists, err := s.mark(ctx, r, p)
		if err == nil && !exists {
			mu.Lock()
			gone = append(gone, p)
			mu.Unlock()
		}
		return err
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	slices.SortFunc(gone, func(a, b wakebelltype.Part) int { return bytes.Compare([]byte(member(a)), []byte(member(b))) })
	left := remains{store: s, letters: map[string][]timers.DeadLetter{}}
	ends := make([]End, len(gone))
	for i, p := range gone {
		if ends[i], err = left.of(ctx, p, time.Time{}); err != nil {
			return err
		}
		if ends[i].End == "" {
			ends[i].End = wakebelltype.EndMissing
		}
	}
	return s.Note(ctx, r, ends...)
}

// mark gives a timer the header of a join, unless it has it, and reports whether the timer
// exists.
func (s *Store) mark(ctx context.Context, r Ref, p wakebelltype.Part) (exists bool, err error) {
	for range markTries {
		t, err := s.topics.Get(ctx, p.Topic, p.ID)
		switch {
		case errors.Is(err, wakebelltype.ErrNotFound):
			return false, nil
		case errors.Is(err, wakebelltype.ErrTooLarge):
			return true, nil
		case err != nil:
			return false, err
		}
		env, err := envelope.Decode(t.Payload)
		if err != nil || bytes.Equal(env.Body, t.Payload) { // a payload of a peer without headers
			return true, nil //nolint:nilerr // its end is found by the audit
		}
		refs := RefsOf(env.Headers)
		if slices.Contains(refs, r) || len(refs) == maxJoins {
			return true, nil
		}
		env.Headers = slices.DeleteFunc(env.Headers, func(h envelope.Header) bool { return h.Key == PartHeader })
		env.Headers = Headers(env.Headers, "", append(refs, r)...)
		marked, err := envelope.Encode(env)
		if err != nil {
			return true, nil //nolint:nilerr // it has too many headers
		}
		swapped, err := s.topics.Swap(ctx, p.Topic, p.ID, t.Payload, marked)
		if swapped || err != nil {
			return swapped || !errors.Is(err, wakebelltype.ErrNotFound), ignoreAbsent(err)
		}
	}
	return true, nil
}

// each calls a function for parts, up to atOnce at a time, and returns its first error.
func (s *Store) each(ctx context.Context, parts []wakebelltype.Part, call func(wakebelltype.Part) error) error {
	return concurrently(ctx, parts, func(p wakebelltype.Part) error {
		if err := call(p); err != nil {
			return fmt.Errorf("part %q of %q: %w", p.ID, p.Topic, err)
		}
		return nil
	})
}

// concurrently calls a function for each of a list, up to atOnce at a time, and returns the
// error of the first of the list that has one.
func concurrently[T any](ctx context.Context, list []T, call func(T) error) error {
	errs := make([]error, len(list))
	free := make(chan struct{}, atOnce)
	var calls sync.WaitGroup
	for i, of := range list {
		free <- struct{}{}
		calls.Go(func() {
			defer func() { <-free }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = call(of)
			}
		})
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// remains finds out how timers have ended that do not exist any more. It reads the dead
// letters of a topic once.
type remains struct {
	store   *Store
	letters map[string][]timers.DeadLetter // the last ones, by topic
}

// of returns how a timer has ended, by what it left after an instant; its End is empty if it
// left nothing.
func (m remains) of(ctx context.Context, p wakebelltype.Part, after time.Time) (End, error) {
	end := End{Part: p}
	names, err := m.store.topics.Recent(ctx, p.Topic, p.ID)
	if err != nil {
		return end, err
	}
	left, err := m.store.kept.Read(ctx, names, p.ID)
	if err != nil {
		return end, err
	}
	if r := left.Result; r != nil && r.At.After(after) {
		end.End, end.Result, after = wakebelltype.EndDone, r, r.At
	}
	letters, known := m.letters[p.Topic]
	if !known {
		if letters, err = m.store.topics.LastDead(ctx, p.Topic, lettersOf); err != nil {
			return end, err
		}
		m.letters[p.Topic] = letters
	}
	for _, d := range slices.Backward(letters) {
		if d.ID == p.ID && d.At.After(after) {
			return End{Part: p, End: wakebelltype.EndDead, Reason: d.Reason}, nil
		}
	}
	return end, nil
}

// Cancel removes the timer of a join and those of its parts that have not ended, and returns
// how many of the parts there were. It may be repeated. With may it removes nothing, and
// returns an error that wraps [wakebelltype.ErrInvalid], if may is false for the topic of one of
// those parts.
func (s *Store) Cancel(ctx context.Context, r Ref, may func(topic string) bool) (timer wakebelltype.Presence, parts int64, err error) {
	r, _, err = s.Head(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	if may != nil {
		if err := s.mayAll(ctx, r, may); err != nil {
			return 0, 0, err
		}
	}
	found, err := s.topics.Cancel(ctx, r.Topic, r.ID)
	if err != nil {
		return 0, 0, err
	}
	if found[0] != wakebelltype.PresenceAbsent {
		s.timers.Metrics.Joined(ctx, r.Topic, metrics.JoinCancelled)
	}
	for from := 0; ; {
		page, err := s.Page(ctx, r, from, layout.MaxPage, true)
		if err != nil {
			return found[0], parts, ignoreAbsent(err)
		}
		byTopic := map[string][]string{}
		for _, e := range page.Ends {
			if may != nil && !may(e.Topic) { // added meanwhile
				return found[0], parts, errForeignPart
			}
			byTopic[e.Topic] = append(byTopic[e.Topic], e.ID)
		}
		for topic, ids := range byTopic {
			n, err := s.cancelParts(ctx, r, topic, ids)
			if parts += n; err != nil {
				return found[0], parts, err
			}
		}
		if from = page.Next; from == 0 {
			return found[0], parts, nil
		}
	}
}

var errForeignPart = argument.Invalid("topics", "a part of the join that has not ended is on a topic that is not among them")

// mayAll checks the topics of the parts that have not ended.
func (s *Store) mayAll(ctx context.Context, r Ref, may func(topic string) bool) error {
	for from := 0; ; {
		page, err := s.Page(ctx, r, from, layout.MaxPage, true)
		if err != nil {
			return ignoreAbsent(err)
		}
		for _, e := range page.Ends {
			if !may(e.Topic) {
				return errForeignPart
			}
		}
		if from = page.Next; from == 0 {
			return nil
		}
	}
}

// cancelParts removes parts of a topic.
func (s *Store) cancelParts(ctx context.Context, r Ref, topic string, ids []string) (n int64, err error) {
	if topic == "" { // of another program
		return 0, nil
	}
	found, err := s.topics.Cancel(ctx, topic, ids...)
	var ends []End
	for i, presence := range found {
		if presence != wakebelltype.PresenceAbsent {
			ends = append(ends, End{Part: wakebelltype.Part{Topic: topic, ID: ids[i]}, End: wakebelltype.EndCancelled})
		}
	}
	if len(ends) > 0 {
		err = errors.Join(err, s.Note(ctx, r, ends...))
	}
	return int64(len(ends)), err
}

// gone returns how those of some parts have ended that do not exist any more. A part that was
// added a moment ago may not be stored yet. One that left nothing was cancelled, or removed
// without a node that noted it: a Python worker handles timers so.
func (s *Store) gone(ctx context.Context, parts []End, now time.Time) ([]End, error) {
	var mu sync.Mutex
	var absent []wakebelltype.Part
	added, named := map[wakebelltype.Part]time.Time{}, make([]wakebelltype.Part, 0, len(parts))
	for _, e := range parts {
		if now.Sub(e.added) >= missingFor {
			added[e.Part], named = e.added, append(named, e.Part)
		}
	}
	err := s.each(ctx, named, func(p wakebelltype.Part) error {
		if p.Topic == "" { // of another program
			return nil
		}
		exists, err := s.topics.Exists(ctx, p.Topic, p.ID)
		if err == nil && !exists {
			mu.Lock()
			absent = append(absent, p)
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	left := remains{store: s, letters: map[string][]timers.DeadLetter{}}
	ends := make([]End, 0, len(absent))
	for _, p := range absent {
		end, err := left.of(ctx, p, added[p])
		if err != nil {
			return nil, err
		}
		if end.End == "" {
			end.End = wakebelltype.EndCancelled
		}
		ends = append(ends, end)
	}
	return ends, nil
}
