// Package tuning declares the settings of a topic's handlers that can change while
// they run, in one table. Handler options, flags, the cluster-wide overrides in
// Redis and the messages about them derive from it.
package tuning

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// Setting is a row of the table. Values are counts or nanoseconds.
type Setting struct {
	Name   string // in Redis, and in messages.TopicSettings
	Option string // the handler option, in errors
	Flag   string // of wakebell node and wakebell retune
	Usage  string // of the flag

	Default   int64 // of the handler of a topic
	Low, High int64
	// Off means that the handler option can be 0, which switches it off. An
	// override that is negative does so, and is stored as 0.
	Off bool

	number   func(*wakebelltype.Settings) *int // one of the two
	duration func(*wakebelltype.Settings) *time.Duration
}

const (
	ms   = int64(time.Millisecond)
	hour = int64(time.Hour)
	day  = 24 * hour
)

// The settings.
var (
	MaxConcurrent = &Setting{
		Name: "max_concurrent", Option: "MaxConcurrent", Flag: "max-concurrent",
		Usage:   "timers of a topic that a node handles at once, 1 to 10,000",
		Default: 5, Low: 1, High: 10_000,
		number: func(s *wakebelltype.Settings) *int { return &s.MaxConcurrent },
	}
	LeaseTTL = &Setting{
		Name: "lease_ttl", Option: "LeaseTTL", Flag: "lease-ttl",
		Usage:   "time until the timers of a crashed node are redelivered",
		Default: 30 * int64(time.Second), Low: 100 * ms, High: day,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.LeaseTTL },
	}
	MaxLeaseAge = &Setting{
		Name: "max_lease_age", Option: "MaxLeaseAge", Flag: "max-lease-age",
		Usage: "cancel handlers that run longer; 0: never",
		Low:   ms, High: 30 * day, Off: true,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.MaxLeaseAge },
	}
	PollingInterval = &Setting{
		Name: "polling_interval", Option: "PollingInterval", Flag: "polling-interval",
		Usage:   "initial poll delay when idle",
		Default: 50 * ms, Low: ms, High: hour,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.PollingInterval },
	}
	MaxPollingInterval = &Setting{
		Name: "max_polling_interval", Option: "MaxPollingInterval", Flag: "max-polling-interval",
		Usage:   "maximum poll delay when idle",
		Default: 5 * int64(time.Second), Low: ms, High: hour,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.MaxPollingInterval },
	}
	RetryInitial = &Setting{
		Name: "retry_initial", Option: "RetryBackoff initial", Flag: "retry-initial",
		Usage:   "delay after the first failure; doubles with each",
		Default: int64(time.Second), Low: ms, High: 30 * day,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.RetryInitial },
	}
	RetryLimit = &Setting{
		Name: "retry_limit", Option: "RetryBackoff limit", Flag: "retry-max",
		Usage:   "maximum retry delay",
		Default: hour, Low: ms, High: 30 * day,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.RetryLimit },
	}
	MaxAttempts = &Setting{
		Name: "max_attempts", Option: "MaxAttempts", Flag: "max-attempts",
		Usage:   "failures after which a timer becomes a dead letter",
		Default: 25, Low: 1, High: 1_000_000,
		number: func(s *wakebelltype.Settings) *int { return &s.MaxAttempts },
	}
	PerKey = &Setting{
		Name: "per_key", Option: "PerKey", Flag: "per-key",
		Usage: "timers of a key that all nodes handle at once, 1 to 10,000; 0: no limit",
		Low:   1, High: 10_000, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.PerKey },
	}
	FairKeys = &Setting{
		Name: "fair_keys", Option: "FairKeys", Flag: "fair-keys",
		Usage: "timers of a key that start in a turn, 1 to 100, with --per-key or --key-rate-limit; 0: keys take no turns",
		Low:   1, High: 100, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.FairKeys },
	}
	RateLimit = &Setting{
		Name: "rate_limit", Option: "RateLimit n", Flag: "rate-limit",
		Usage: "timers of a topic that all nodes together start in --rate-per; 0: no limit",
		Low:   1, High: 1_000_000, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.RateLimit },
	}
	RatePer = &Setting{
		Name: "rate_per", Option: "RateLimit per", Flag: "rate-per",
		Usage:   "the period of --rate-limit",
		Default: int64(time.Second), Low: ms, High: 30 * day,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.RatePer },
	}
	RateBurst = &Setting{
		Name: "rate_burst", Option: "RateLimit burst", Flag: "rate-burst",
		Usage: "timers that --rate-limit lets start at once after a pause; 0: as many as it has",
		Low:   1, High: 1_000_000, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.RateBurst },
	}
	KeyRateLimit = &Setting{
		Name: "key_rate_limit", Option: "RateLimitByKey n", Flag: "key-rate-limit",
		Usage: "timers of a key that all nodes together start in --key-rate-per; 0: no limit",
		Low:   1, High: 1_000_000, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.KeyRateLimit },
	}
	KeyRatePer = &Setting{
		Name: "key_rate_per", Option: "RateLimitByKey per", Flag: "key-rate-per",
		Usage:   "the period of --key-rate-limit",
		Default: int64(time.Second), Low: ms, High: 30 * day,
		duration: func(s *wakebelltype.Settings) *time.Duration { return &s.KeyRatePer },
	}
	KeyRateBurst = &Setting{
		Name: "key_rate_burst", Option: "RateLimitByKey burst", Flag: "key-rate-burst",
		Usage: "timers of a key that --key-rate-limit lets start at once after a pause; 0: as many as it has",
		Low:   1, High: 1_000_000, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.KeyRateBurst },
	}
	MaxInFlight = &Setting{
		Name: "max_in_flight", Option: "MaxInFlight", Flag: "max-in-flight",
		Usage: "timers of a topic that all nodes together handle at once; 0: no maximum",
		Low:   1, High: 1_000_000, Off: true,
		number: func(s *wakebelltype.Settings) *int { return &s.MaxInFlight },
	}
)

// All are the settings, in the order of wakebelltype.Settings.
var All = []*Setting{
	MaxConcurrent, LeaseTTL, MaxLeaseAge, PollingInterval, MaxPollingInterval, RetryInitial, RetryLimit, MaxAttempts,
	RateLimit, RatePer, RateBurst, MaxInFlight, PerKey, KeyRateLimit, KeyRatePer, KeyRateBurst, FairKeys,
}

// Defaults returns the settings of the handler of a topic without options.
func Defaults() (s wakebelltype.Settings) {
	for _, t := range All {
		t.Set(&s, t.Default)
	}
	return s
}

// InForce returns settings without what belongs to limits that are off, for people to read.
func InForce(s wakebelltype.Settings) wakebelltype.Settings {
	if s.RateLimit == 0 {
		s.RatePer, s.RateBurst = 0, 0
	}
	if s.KeyRateLimit == 0 {
		s.KeyRatePer, s.KeyRateBurst = 0, 0
	}
	if s.PerKey == 0 && s.KeyRateLimit == 0 {
		s.FairKeys = 0
	}
	return s
}

// OfTopic returns the limits in force on the nodes of a topic that have reported some.
func OfTopic(o wakebelltype.Overview) wakebelltype.Settings {
	var node wakebelltype.Settings
	for _, r := range o.Reports {
		if s := r.State.Options; s.RateLimit > 0 || s.MaxInFlight > 0 || s.PerKey > 0 || s.KeyRateLimit > 0 {
			node = s
		}
	}
	return InForce(Override(node, o.Control.Settings))
}

// Number returns the field of a count, or nil.
func (t *Setting) Number(s *wakebelltype.Settings) *int {
	if t.number == nil {
		return nil
	}
	return t.number(s)
}

// Duration returns the field of a duration, or nil.
func (t *Setting) Duration(s *wakebelltype.Settings) *time.Duration {
	if t.duration == nil {
		return nil
	}
	return t.duration(s)
}

// Get returns the value of the setting in s.
func (t *Setting) Get(s *wakebelltype.Settings) int64 {
	if n := t.Number(s); n != nil {
		return int64(*n)
	}
	return int64(*t.duration(s))
}

// Set sets the value of the setting in s.
func (t *Setting) Set(s *wakebelltype.Settings, value int64) {
	if n := t.Number(s); n != nil {
		*n = int(value)
		return
	}
	*t.duration(s) = time.Duration(value)
}

// Text formats a value as it is stored: "20", "1m30s"; "0s" for a setting that is
// off.
func (t *Setting) Text(value int64) string {
	if t.Off {
		value = max(value, 0)
	}
	if t.number != nil {
		return strconv.FormatInt(value, 10)
	}
	return time.Duration(value).String()
}

// Read sets an override to a stored value, which may have been written by hand.
func (t *Setting) Read(s *wakebelltype.Settings, text string) (err error) {
	if n := t.Number(s); n != nil {
		*n, err = strconv.Atoi(text)
	} else {
		*t.duration(s), err = time.ParseDuration(text)
	}
	if err != nil {
		return err
	}
	if t.Off && t.Get(s) == 0 {
		t.Set(s, -1)
	}
	return t.check(s)
}

// check checks an override.
func (t *Setting) check(s *wakebelltype.Settings) error {
	if v := t.Get(s); (v < t.Low || v > t.High) && (v >= 0 || !t.Off) {
		return fmt.Errorf("%w: %s: %s, want %s to %s", wakebelltype.ErrInvalid, t.Name, t.Text(v), t.Text(t.Low), t.Text(t.High))
	}
	return nil
}

// Check reports all overrides that are out of bounds; the error wraps
// wakebelltype.ErrInvalid.
func Check(s wakebelltype.Settings) error {
	var errs []error
	for _, t := range All {
		if t.Get(&s) != 0 {
			errs = append(errs, t.check(&s))
		}
	}
	if s.RetryInitial > 0 && s.RetryLimit > 0 && s.RetryLimit < s.RetryInitial {
		errs = append(errs, fmt.Errorf("%w: retry_limit: %v is below retry_initial, %v", wakebelltype.ErrInvalid, s.RetryLimit, s.RetryInitial))
	}
	return errors.Join(errs...)
}

// Override returns the settings of a node with overrides in force. If the two
// contradict each other, the upper bounds are raised.
func Override(node, with wakebelltype.Settings) wakebelltype.Settings {
	for _, t := range All {
		v := t.Get(&with)
		switch {
		case v == 0: // not overridden
		case t.Off:
			t.Set(&node, max(v, 0))
		default:
			t.Set(&node, v)
		}
	}
	node.MaxPollingInterval = max(node.MaxPollingInterval, node.PollingInterval)
	node.RetryLimit = max(node.RetryLimit, node.RetryInitial)
	return node
}
