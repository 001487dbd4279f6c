package recur

import (
	"encoding/json"
	"fmt"
	"time"
)

// Ours is the third field of an entry's hash, which Python never reads. An
// entry of Python's has none before its first run.
type Ours struct {
	// ID tells an entry from an earlier one of its name: runs are counted anew
	// in each.
	ID  string `json:"id"`
	Run int64  `json:"run"` // the number of the last run, manual ones and those of a backfill included
	// Fired counts the runs for MaxRuns: those of a backfill are not in it.
	Fired int64 `json:"fired"`

	// Prefix is that of the System that put the entry: its name and its topic
	// begin with it. Beats of another prefix leave the entry alone.
	Prefix string `json:"prefix,omitempty"`
	// Owner is the service that has the entry in its configuration; empty: none.
	Owner   string    `json:"owner,omitempty"`
	LastRun time.Time `json:"last_run,omitzero"` // the latest instant that was fired

	Topic       string            `json:"topic,omitempty"` // its full name; empty: the task of the definition
	Celery      bool              `json:"celery,omitempty"`
	HasBody     bool              `json:"has_body,omitempty"` // else the body is made of args and kwargs
	Body        []byte            `json:"body,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`

	Cron     string `json:"cron,omitempty"`   // in place of the definition's schedule, while that is the
	RRule    string `json:"rrule,omitempty"`  // placeholder; either
	Source   string `json:"source,omitempty"` // the rrule as it was given, perhaps without a start
	Zone     string `json:"zone,omitempty"`   // IANA
	SkipGaps bool   `json:"skip_gaps,omitempty"`

	Jitter       time.Duration `json:"jitter,omitempty"`
	Start        time.Time     `json:"start,omitzero"`
	Until        time.Time     `json:"until,omitzero"`
	MaxRuns      int64         `json:"max_runs,omitempty"`
	Misfire      Misfire       `json:"misfire,omitempty"`
	MisfireLimit int           `json:"misfire_limit,omitempty"`
	Overlap      Overlap       `json:"overlap,omitempty"`
	Paused       bool          `json:"paused,omitempty"`

	Last string `json:"last,omitempty"` // id of the last run's timer, where Overlap asks for it
	// Outbox is what was fired and is not known to be put: where the topic is
	// in another slot than the entry.
	Outbox []Put `json:"outbox,omitempty"`
}

// Put is a timer that a run has become.
type Put struct {
	Topic   string    `json:"topic"`
	ID      string    `json:"id"`
	Run     int64     `json:"run"`
	At      time.Time `json:"at"`
	Payload []byte    `json:"payload"`
}

// Misfire says what becomes of instants that were missed.
type Misfire string

// What becomes of missed instants.
const (
	MisfireOnce Misfire = ""     // the last of them fires
	MisfireSkip Misfire = "skip" // none fires, but the last if it is less than Grace ago
	MisfireAll  Misfire = "all"  // each fires, up to a limit; the last ones count
)

// Grace is how late an instant may be without counting as missed.
const Grace = 10 * time.Second

// DefaultMisfireLimit bounds MisfireAll where nothing else is said.
const DefaultMisfireLimit = 100

// Overlap says what becomes of a run while the timer of the last is there.
type Overlap string

// What becomes of a run that overlaps with the last.
const (
	OverlapAllow Overlap = ""
	OverlapSkip  Overlap = "skip"  // there is none
	OverlapQueue Overlap = "queue" // one waits until the last is gone
)

// Put reports whether the entry was put by a System, not by a Python process.
func (o Ours) Put() bool { return o.HasBody || o.Celery }

// ReadOurs reads a third field; none is the zero value.
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

// Bytes is the field as it is written.
func (o Ours) Bytes() []byte { return marshal(o) }

// placeholder is the schedule of a definition whose rule RedBeat cannot hold;
// such a definition is disabled, so that Python passes it over.
var placeholder = marshal(intervalWire{Type: "interval", Every: 86400})

// alone reports whether the rule is in the third field. When somebody has given
// the definition another schedule, that is in force.
func (e Entry) alone() bool {
	return e.Ours.Cron+e.Ours.RRule != "" && same(e.Definition.Schedule, placeholder)
}

// same compares JSON.
func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && string(marshal(x)) == string(marshal(y))
}
