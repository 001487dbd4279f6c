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
}

type metaWire struct {
	LastRunAt *datetime `json:"last_run_at"`
	Runs      int64     `json:"total_run_count"`
}

// datetime has the fields of a local time in its zone.
type datetime struct {
	Type        string          `json:"__type__"`
	Year        int             `json:"year"`
	Month       int             `json:"month"`
	Day         int             `json:"day"`
	Hour        int             `json:"hour"`
	Minute      int             `json:"minute"`
	Second      int             `json:"second"`
	Microsecond int             `json:"microsecond"`
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
	m := Meta{Runs: w.Runs}
	if w.LastRunAt == nil {
		return m, nil
	}
	in, err := w.LastRunAt.zone()
	if err != nil {
		return Meta{}, fmt.Errorf("meta: %w: %w", ErrSyntax, err)
	}
	d := w.LastRunAt
	wall := time.Date(d.Year, time.Month(d.Month), d.Day, d.Hour, d.Minute, d.Second, d.Microsecond*1000, time.UTC)
	if wall.Month() != time.Month(d.Month) || wall.Day() != d.Day || wall.Year() != d.Year || d.Year < 1 || d.Year > 9999 {
		return Meta{}, fmt.Errorf("meta: %w: last_run_at is not a valid date", ErrSyntax)
	}
	m.LastRunAt = zone{in: in}.instant(wall)
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

// Bytes encodes the meta, in UTC.
func (m Meta) Bytes() []byte {
	w := metaWire{Runs: m.Runs}
	if !m.LastRunAt.IsZero() {
		t := m.LastRunAt.UTC()
		w.LastRunAt = &datetime{
			Type: "datetime", Year: t.Year(), Month: int(t.Month()), Day: t.Day(),
			Hour: t.Hour(), Minute: t.Minute(), Second: t.Second(), Microsecond: t.Nanosecond() / 1000,
			Zone: json.RawMessage("0.0"),
		}
	}
	return marshal(w)
}
