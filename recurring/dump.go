package recurring

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/firing"
	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/redisops/audit"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Dump is a recurring schedule as it is stored, for backups and for Import. Of values
// that Python writes and JSON does not have, such as NaN, it has a string that Import
// makes the value again.
type Dump struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"`
	Meta       json.RawMessage `json:"meta"`
	Wakebell   json.RawMessage `json:"wakebell,omitempty"` // the fields that RedBeat does not have
}

// Export returns a recurring schedule as it is stored. Errors: ErrNotFound, or that
// of an entry that cannot be read.
func (s *Schedules) Export(ctx context.Context, name string) (Dump, error) {
	raw, _, err := s.manual.Read(ctx, name)
	if err != nil {
		return Dump{}, err
	}
	d := Dump{Name: name, Definition: recur.Portable(raw.Definition), Meta: raw.Meta, Wakebell: raw.Ours}
	if len(d.Meta) == 0 {
		d.Meta = json.RawMessage(`{"last_run_at":null}`)
	}
	return d, nil
}

// Import stores a Dump in place of the schedule with its name, which continues at
// the state of the dump: runs that are overdue since then count as missed. Errors
// wrap wakebell.ErrInvalid for a dump that cannot be read or has another prefix.
func (s *Schedules) Import(ctx context.Context, d Dump) error {
	raw := recur.Raw{Definition: recur.Native(d.Definition), Meta: d.Meta, Ours: d.Wakebell}
	full := s.manual.Full(d.Name)
	e, err := recur.Read(raw, full, s.manual.Zone)
	if err == nil {
		err = s.manual.Maker.Check(ctx, &e)
	}
	if err == nil && !s.manual.Maker.Owns(full, raw) {
		err = fmt.Errorf("its prefix is %.100q, want %.100q", e.Ours.Prefix, s.manual.Maker.Prefix)
	}
	if err != nil {
		return fmt.Errorf("%w: recurring schedule %s: %w", wakebelltype.ErrInvalid, argument.Quote(d.Name), err)
	}
	if messages.Restricted(ctx) {
		raw = e.Raw() // without fields that only a Python beat reads and that were not checked
	}
	err = firing.Again(ctx, func() error {
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		found, err := s.found(ctx, d.Name)
		if err != nil {
			return err
		}
		return s.store.Put(ctx, full, found, raw, firing.ScoreAt(e, now))
	})
	s.record(ctx, wakebelltype.AuditScheduleImport, d.Name, audit.One("", err))
	return err
}
