package recurring

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/beat"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops"
)

// Dump is a recurring schedule as its keys have it, to be kept and
// imported again.
type Dump struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	Meta       json.RawMessage `json:"meta"`
	Wakebell   json.RawMessage `json:"wakebell,omitempty"` // what RedBeat does not have
}

// Export returns a recurring schedule as it is stored. Error: ErrNotFound, and
// one for what cannot be read.
func (s *Schedules) Export(ctx context.Context, name string) (Dump, error) {
	raw, _, err := s.hand.Read(ctx, name)
	if err != nil {
		return Dump{}, err
	}
	d := Dump{Name: name, Definition: raw.Definition, Meta: raw.Meta, Wakebell: raw.Ours}
	if len(d.Meta) == 0 {
		d.Meta = json.RawMessage(`{"last_run_at":null}`)
	}
	return d, nil
}

// Import stores what Export gave, in place of the schedule of its name, and goes
// on where that was: what is overdue since is missed. Error: ErrInvalid for what
// cannot be read.
func (s *Schedules) Import(ctx context.Context, d Dump) error {
	raw := recur.Raw{Definition: d.Definition, Meta: d.Meta, Ours: d.Wakebell}
	full := s.hand.Full(d.Name)
	e, err := recur.Read(raw, full, s.hand.Zone)
	if err == nil {
		err = s.hand.Maker.Check(ctx, &e)
	}
	if err == nil && !s.hand.Maker.Owns(full, raw) {
		err = fmt.Errorf("it is of the prefix %.100q, want %.100q", e.Ours.Prefix, s.hand.Maker.Prefix)
	}
	if err != nil {
		return fmt.Errorf("%w: recurring schedule %s: %w", redisops.ErrInvalid, argument.Clip(d.Name), err)
	}
	if messages.Restricted(ctx) {
		raw = e.Raw() // what a Python beat reads is what was checked
	}
	return beat.Again(ctx, func() error {
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		found, err := s.found(ctx, d.Name)
		if err != nil {
			return err
		}
		return s.store.Put(ctx, full, found, raw, beat.ScoreAt(e, now))
	})
}
