package recur

import (
	"encoding/json"
	"fmt"
	"time"
)

// Meta is the field meta of an entry in the format of RedBeat.
type Meta struct {
	LastRunAt time.Time // zero: never, so the entry is due
	Runs      int64     // reset when Python reschedules the entry
	// Zone is the zone in which LastRunAt is written; nil: UTC. Celery computes
	// crontabs and relative intervals in it.
	Zone *time.Location
}

type metaWire struct {
	LastRunAt *datetime `json:"last_run_at"`
	Runs      whole     `json:"total_run_count"`
}

// datetime has the fields of a local time in its zone.
type datetime struct {
	Type        string          `json:"__type__"`
	Year        whole           `json:"year"`
	Month       whole           `json:"month"`
	Day         whole           `json:"day"`
	Hour        whole           `json:"hour"`
	Minute      whole           `json:"minute"`
	Second      whole           `json:"second"`
	Microsecond whole           `json:"microsecond"`
	Zone        json.RawMessage `json:"timezone"` // seconds from UTC, or an IANA name
}

// ReadMeta decodes a meta field; an absent one is that of an entry that never ran.
// Errors wrap [ErrSyntax].
func ReadMeta(raw []byte) (Meta, error) {
	var w metaWire
	if len(raw) == 0 {
		return Meta{}, nil
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return Meta{}, fmt.Errorf("meta: %w: %w", ErrSyntax, err)
	}
	m := Meta{Runs: int64(w.Runs)}
	if w.LastRunAt == nil {
		return m, nil
	}
	in, err := w.LastRunAt.zone()
	if err != nil {
		return Meta{}, fmt.Errorf("meta: %w: %w", ErrSyntax, err)
	}
	d := w.LastRunAt
	wall := time.Date(int(d.Year), time.Month(d.Month), int(d.Day), int(d.Hour), int(d.Minute), int(d.Second), int(d.Microsecond)*1000, time.UTC)
	if wall.Month() != time.Month(d.Month) || wall.Day() != int(d.Day) || wall.Year() != int(d.Year) || d.Year < 1 || d.Year > 9999 {
		return Meta{}, fmt.Errorf("meta: %w: last_run_at is not a valid date", ErrSyntax)
	}
	m.LastRunAt, m.Zone = zone{in: in}.instant(wall), in
	return m, nil
}

func (d datetime) zone() (*time.Location, error) {
	var offset float64
	var name string
	switch {
	case len(d.Zone) == 0 || string(d.Zone) == "null":
		return time.UTC, nil
	case json.Unmarshal(d.Zone, &offset) == nil:
		if offset == 0 {
			return time.UTC, nil
		}
		if offset <= -86400 || offset >= 86400 {
			return nil, fmt.Errorf("timezone of %v seconds, want less than a day", offset)
		}
		return time.FixedZone("", int(offset)), nil
	case json.Unmarshal(d.Zone, &name) == nil:
		return LoadZone(name)
	default:
		return nil, fmt.Errorf("timezone %.50s, want seconds or an IANA name", d.Zone)
	}
}

// Bytes encodes the meta as a beat of its zone does, with an offset.
func (m Meta) Bytes() []byte {
	w := metaWire{Runs: whole(m.Runs)}
	if !m.LastRunAt.IsZero() {
		t := m.local()
		_, offset := t.Zone()
		w.LastRunAt = &datetime{
			Type: "datetime", Year: whole(t.Year()), Month: whole(t.Month()), Day: whole(t.Day()),
			Hour: whole(t.Hour()), Minute: whole(t.Minute()), Second: whole(t.Second()), Microsecond: whole(t.Nanosecond() / 1000),
			Zone: marshal(seconds(offset)),
		}
	}
	return marshal(w)
}

// local returns LastRunAt in the zone, or in UTC if Python does not have its year there.
func (m Meta) local() time.Time {
	if m.Zone != nil {
		if t := m.LastRunAt.In(m.Zone); t.Year() >= 1 && t.Year() <= 9999 {
			return t
		}
	}
	return m.LastRunAt.UTC()
}
