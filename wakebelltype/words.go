package wakebelltype

import (
	"fmt"
	"slices"
)

// The enumerations are numbers in memory and over the network, and words for people
// and in JSON.
var (
	policies  = []string{"replace", "keep", "earliest", "debounce"}
	outcomes  = []string{"", "created", "replaced", "superseded", "kept pending", "kept running", "kept earlier", "moved", "already done"}
	presences = []string{"", "absent", "pending", "running"}
	redrives  = []string{"", "redriven", "overwritten", "skipped live", "skipped broken"}

	historyPolicies = []string{"", "failures", "off", "all"}

	queueRedrives = []string{"", "redriven", "duplicate", "absent"}
)

// word returns the word of a value, or "unknown".
func word[E ~uint8](words []string, value E) string {
	if int(value) >= len(words) || words[value] == "" {
		return "unknown"
	}
	return words[value]
}

// parse sets value to that of a word.
func parse[E ~uint8](words []string, text []byte, value *E) error {
	i := slices.Index(words, string(text))
	if i < 0 || len(text) == 0 {
		return fmt.Errorf("%T: %q is not one of %q", *value, text, words)
	}
	*value = E(i) //nolint:gosec // at most 8
	return nil
}

// String returns "replace", "keep", "earliest" or "debounce"; "unknown" for another
// value.
func (p Policy) String() string { return word(policies, p) }

// MarshalText returns the String.
func (p Policy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a String other than "unknown".
func (p *Policy) UnmarshalText(text []byte) error { return parse(policies, text, p) }

// String returns the outcome in words: "created", "kept pending"; "unknown" for
// another value.
func (o Outcome) String() string { return word(outcomes, o) }

// MarshalText returns the String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads a String other than "unknown".
func (o *Outcome) UnmarshalText(text []byte) error { return parse(outcomes, text, o) }

// String returns "absent", "pending" or "running"; "unknown" for another value.
func (p Presence) String() string { return word(presences, p) }

// MarshalText returns the String.
func (p Presence) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a String other than "unknown".
func (p *Presence) UnmarshalText(text []byte) error { return parse(presences, text, p) }

// String returns the outcome in words: "redriven", "skipped live"; "unknown" for
// another value.
func (o RedriveOutcome) String() string { return word(redrives, o) }

// MarshalText returns the String.
func (o RedriveOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads a String other than "unknown".
func (o *RedriveOutcome) UnmarshalText(text []byte) error { return parse(redrives, text, o) }

// String returns "redriven", "duplicate" or "absent"; "unknown" for another value.
func (o QueueRedriveOutcome) String() string { return word(queueRedrives, o) }

// MarshalText returns the String.
func (o QueueRedriveOutcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads a String other than "unknown".
func (o *QueueRedriveOutcome) UnmarshalText(text []byte) error { return parse(queueRedrives, text, o) }
