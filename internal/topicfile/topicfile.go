// Package topicfile has the format of an exported topic: JSON lines, of which the first
// says what the file is and the last how much it has, so that a file that was cut off is
// recognised. Each line has a field "type". Unknown fields are ignored.
//
// The package checks the form of a line and the bounds of its fields. It uses neither
// Redis nor a clock.
package topicfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Version is the version of the format. A reader refuses other versions.
const Version = 1

// The types of lines.
const (
	typeTopic = "topic"
	typeTimer = "timer"
	typeDead  = "dead"
	typeMark  = "mark"
	typeEnd   = "end"
)

// Topic is the first line.
type Topic struct {
	Type    string    `json:"type"`
	Version int       `json:"version"`
	Topic   string    `json:"topic"` // without the prefix
	At      time.Time `json:"at"`    // when the export began, by Redis's clock
	Shards  int       `json:"shards"`

	Paused   bool   `json:"paused,omitempty"`
	PausedBy string `json:"paused_by,omitempty"`
	// PausedUntil is when the pause ends by itself; zero: it does not.
	PausedUntil time.Time         `json:"paused_until,omitzero"`
	Reason      string            `json:"paused_reason,omitempty"`
	Settings    map[string]string `json:"settings,omitempty"` // overrides, by the names of timers_control

	// Timers and Dead are how many there were when the export began.
	Timers int64 `json:"timers"`
	Dead   int64 `json:"dead"`
}

// Timer is the line of a timer.
type Timer struct {
	Type string `json:"type"`
	ID   Text   `json:"id"`
	// At is the instant for which the timer was scheduled; zero: it is never due.
	At  time.Time `json:"at,omitzero"`
	Key Text      `json:"key,omitzero"`
	// Number orders the timers of a key that have the same instant.
	Number int64 `json:"number,omitempty"`
	// Due is when the next attempt is due; zero: at the instant.
	Due            time.Time `json:"due,omitzero"`
	Claims         int       `json:"claims,omitempty"`
	Failures       int       `json:"failures,omitempty"`
	Error          Text      `json:"error,omitzero"`
	FirstScheduled time.Time `json:"first_scheduled,omitzero"`
	Payload        []byte    `json:"payload,omitempty"` // the envelope, with headers and body
	// Unusable says why no node can handle the timer, such as a payload that was too large
	// to be read; an import leaves it out. Empty: it can be imported.
	Unusable string `json:"unusable,omitempty"`
}

// Dead is the line of a dead letter.
type Dead struct {
	Type      string    `json:"type"`
	ID        Text      `json:"id"`
	Key       Text      `json:"key,omitzero"`
	Claims    int       `json:"claims"`
	Failures  int       `json:"failures"`
	Reason    Text      `json:"reason"`
	Scheduled time.Time `json:"scheduled"` // the instant for which the timer was scheduled
	At        time.Time `json:"at"`        // when it was dead-lettered
	// Payload is null if the dead letter has none, because it was too large.
	Payload []byte `json:"payload"`
}

// Mark is the line of the mark of an id with Once.
type Mark struct {
	Type     string    `json:"type"`
	ID       Text      `json:"id"`
	Keyed    bool      `json:"keyed,omitempty"` // the timer had a key
	At       time.Time `json:"at"`              // the instant for which the timer was scheduled
	WindowUS int64     `json:"window_us"`       // the window, in µs
	Expires  time.Time `json:"expires"`         // when the window is over
}

// End is the last line: how many lines of each type come before it.
type End struct {
	Type   string `json:"type"`
	Timers int64  `json:"timers"`
	Dead   int64  `json:"dead"`
	Marks  int64  `json:"marks"`
}

// Text is a text of a program. In JSON it is a string or, if it is not valid UTF-8, an
// object with the bytes in base64.
type Text string

type textBytes struct {
	Base64 []byte `json:"base64"`
}

// IsZero reports whether the text is empty.
func (t Text) IsZero() bool { return t == "" }

// MarshalJSON returns a string or an object.
func (t Text) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	var err error
	if utf8.ValidString(string(t)) {
		err = out.Encode(string(t))
	} else {
		err = out.Encode(textBytes{[]byte(t)})
	}
	return bytes.TrimSpace(b.Bytes()), err
}

// UnmarshalJSON reads what MarshalJSON returns.
func (t *Text) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*t = Text(text)
		return nil
	}
	var raw textBytes
	if err := json.Unmarshal(data, &raw); err != nil || raw.Base64 == nil {
		return fmt.Errorf("want a string or {\"base64\": …}")
	}
	*t = Text(raw.Base64)
	return nil
}
