package recur

import (
	"encoding/json"
	"fmt"
	"time"
)

// Ours is the third field of an entry's hash, which only Wakebell uses. An entry that
// Python has created does not have it before its first run.
type Ours struct {
	// ID distinguishes an entry from an earlier one of the same name, whose runs are
	// counted separately.
	ID  string `json:"id"`
	Run int64  `json:"run"` // the number of the last run, including manual ones and those of a backfill
	// Fired counts the runs for MaxRuns, without those of a backfill.
	Fired int64 `json:"fired"`

	// Prefix is that of the System that stored the entry: its name and its topic begin
	// with it. Beats with another prefix do not fire the entry.
	Prefix string `json:"prefix,omitempty"`
	// Owner is the service whose configuration has the entry; empty: none.
	Owner   string    `json:"owner,omitempty"`
	LastRun time.Time `json:"last_run,omitzero"` // the latest instant that was fired

	Topic       string            `json:"topic,omitempty"` // its full name; empty: the task of the definition
	Celery      bool              `json:"celery,omitempty"`
	HasBody     bool              `json:"has_body,omitempty"` // else the body is made of args and kwargs
	Body        []byte            `json:"body,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	// Trace has the headers of the span that put the entry; runs without a span of
	// their own have them.
	Trace map[string]string `json:"trace,omitempty"`

	Cron     string `json:"cron,omitempty"`   // used in place of the definition's schedule while that is the
	RRule    string `json:"rrule,omitempty"`  // placeholder; either
	Source   string `json:"source,omitempty"` // the rrule as the user wrote it, perhaps without a start
	Zone     string `json:"zone,omitempty"`   // IANA
	SkipGaps bool   `json:"skip_gaps,omitempty"`
	// Apart reports that the definition is disabled for Python only, which would
	// compute its schedule in another zone.
	Apart bool `json:"apart,omitempty"`

	Jitter       time.Duration `json:"jitter,omitempty"`
	Start        time.Time     `json:"start,omitzero"`
	Until        time.Time     `json:"until,omitzero"`
	MaxRuns      int64         `json:"max_runs,omitempty"`
	Misfire      Misfire       `json:"misfire,omitempty"`
	MisfireLimit int           `json:"misfire_limit,omitempty"`
	Overlap      Overlap       `json:"overlap,omitempty"`
	Paused       bool          `json:"paused,omitempty"`

	Last string `json:"last,omitempty"` // id of the last run's timer, if Overlap needs it
	// Outbox has the timers of fired runs that may not be in their topic yet: it is
	// used if the topic is in another slot than the entry.
	Outbox []Put `json:"outbox,omitempty"`
}

// Put is the timer of a run.
type Put struct {
	Topic   string    `json:"topic"`
	ID      string    `json:"id"`
	Run     int64     `json:"run"`
	At      time.Time `json:"at"`
	Payload []byte    `json:"payload"`
}

// Misfire is the policy for missed instants.
type Misfire string

// The policies for missed instants.
const (
	MisfireOnce Misfire = ""     // the last of them fires
	MisfireSkip Misfire = "skip" // none fires, except the last one if it is less than Grace ago
	MisfireAll  Misfire = "all"  // each fires, up to the last MisfireLimit of them
)

// Grace is the lateness up to which an instant does not count as missed.
const Grace = 10 * time.Second

// DefaultMisfireLimit bounds MisfireAll by default.
const DefaultMisfireLimit = 100

// Overlap is the policy for a run while the timer of the previous run exists.
type Overlap string

// The policies for overlapping runs.
const (
	OverlapAllow Overlap = ""
	OverlapSkip  Overlap = "skip"  // the run is skipped
	OverlapQueue Overlap = "queue" // one run waits until the previous timer is gone
)

// Put reports whether the entry was stored by a System, not by a Python process.
func (o Ours) Put() bool { return o.HasBody || o.Celery }

// ReadOurs decodes the third field; an absent one is the zero value.
func ReadOurs(raw []byte) (Ours, error) {
	var o Ours
	if len(raw) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, fmt.Errorf("wakebell: %w: %w", ErrSyntax, err)
	}
	return o, nil
}

// Bytes encodes the field.
func (o Ours) Bytes() []byte { return marshal(o) }

// placeholder is the schedule of a definition whose rule RedBeat's format does not
// support. Such a definition is disabled, so that Python skips it.
var placeholder = marshal(intervalWire{Type: "interval", Every: 86400})

// alone reports whether the rule is in the third field. If the definition was given
// another schedule meanwhile, that one is in force.
func (e Entry) alone() bool {
	return e.Ours.Cron+e.Ours.RRule != "" && same(e.Definition.Schedule, placeholder)
}

// ownZone reports whether the definition's schedule is computed in the zone of the third
// field. Python has no such zone.
func (e Entry) ownZone() bool { return e.Ours.Zone != "" && e.ofZone() }

// ofZone reports whether the definition's schedule is computed in a zone that is not
// part of it.
func (e Entry) ofZone() bool {
	var s struct {
		Type     string `json:"__type__"`
		Relative bool   `json:"relative"`
	}
	if json.Unmarshal(e.Definition.Schedule, &s) != nil {
		return false
	}
	return s.Type == "crontab" || (s.Type == "interval" && s.Relative)
}

// same compares JSON.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && string(marshal(x)) == string(marshal(y))
}
