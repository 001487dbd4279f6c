package timers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Control is what has been ordered of a topic, for all nodes that handle it.
// The zero value is that of a topic of which nothing was.
type Control struct {
	Paused   bool      // its nodes take no timers; what runs goes on
	PausedAt time.Time // by Redis's clock
	PausedBy string
	Reason   string // for the pause

	// Settings are in force in place of the nodes' own.
	Settings Settings
}

// Settings override the options that the nodes were given for a topic. What is
// zero is left to the node.
type Settings struct {
	MaxConcurrent int // 1 to 10,000, of each node

	LeaseTTL    time.Duration // 100 ms to 24 h
	MaxLeaseAge time.Duration // 1 ms to 30 days; negative: off, whatever the node says

	PollingInterval    time.Duration // 1 ms to 1 h
	MaxPollingInterval time.Duration // 1 ms to 1 h

	RetryInitial time.Duration // delay after the first failure, 1 ms to 30 days
	RetryLimit   time.Duration // the cap up to which it doubles, 1 ms to 30 days
	MaxAttempts  int           // 1 to 1,000,000
}

// setting is a field of Settings, as its name in the hash and its bounds.
type setting struct {
	name      string
	number    *int           // or
	duration  *time.Duration // one of the two
	low, high int64
	off       bool // negative values turn it off; kept as 0
}

func (s *Settings) fields() []setting {
	const ms, day = int64(time.Millisecond), int64(24 * time.Hour)
	hour := int64(time.Hour)
	return []setting{
		{"max_concurrent", &s.MaxConcurrent, nil, 1, 10_000, false},
		{"lease_ttl", nil, &s.LeaseTTL, 100 * ms, day, false},
		{"max_lease_age", nil, &s.MaxLeaseAge, ms, 30 * day, true},
		{"polling_interval", nil, &s.PollingInterval, ms, hour, false},
		{"max_polling_interval", nil, &s.MaxPollingInterval, ms, hour, false},
		{"retry_initial", nil, &s.RetryInitial, ms, 30 * day, false},
		{"retry_limit", nil, &s.RetryLimit, ms, 30 * day, false},
		{"max_attempts", &s.MaxAttempts, nil, 1, 1_000_000, false},
	}
}

func (f setting) value() int64 {
	if f.number != nil {
		return int64(*f.number)
	}
	return int64(*f.duration)
}

// text writes a value as it is kept: "20", "1m30s"; "0s" of what is off.
func (f setting) text(value int64) string {
	if f.off {
		value = max(value, 0)
	}
	if f.number != nil {
		return strconv.FormatInt(value, 10)
	}
	return time.Duration(value).String()
}

// read reads what text wrote, or somebody by hand.
func (f setting) read(text string) (err error) {
	if f.number != nil {
		*f.number, err = strconv.Atoi(text)
	} else {
		*f.duration, err = time.ParseDuration(text)
	}
	if f.off && err == nil && *f.duration == 0 {
		*f.duration = -1
	}
	if err == nil {
		err = f.check()
	}
	return err
}

func (f setting) check() error {
	if v := f.value(); (v < f.low || v > f.high) && (v >= 0 || !f.off) {
		return fmt.Errorf("%w: %s: %s, want %s to %s", redisops.ErrInvalid, f.name, f.text(v), f.text(f.low), f.text(f.high))
	}
	return nil
}

// Validate reports all settings that are out of their bounds; the error wraps
// [ErrInvalid].
func (s Settings) Validate() error {
	var errs []error
	for _, f := range s.fields() {
		if f.value() != 0 {
			errs = append(errs, f.check())
		}
	}
	if s.RetryInitial > 0 && s.RetryLimit > 0 && s.RetryLimit < s.RetryInitial {
		errs = append(errs, fmt.Errorf("%w: retry_limit: %v is below retry_initial, %v", redisops.ErrInvalid, s.RetryLimit, s.RetryInitial))
	}
	return errors.Join(errs...)
}

// Pause orders all nodes to take no timers of the topic until Resume; what runs
// goes on, and schedules are taken. By and reason, at most 1,024 bytes each, are
// kept for whoever looks. A topic that is paused stays so since it was first.
// Nodes are told by a hint, [exchange.HintControl]; one that misses it reads the
// order when it subscribes again, or looks.
func (s *Timers) Pause(ctx context.Context, topic, by, reason string) (Control, error) {
	return s.control(ctx, topic, "pause", scripts.Clip(by, scripts.MaxReason), scripts.Clip(reason, scripts.MaxReason))
}

// Resume ends a pause. Settings stay.
func (s *Timers) Resume(ctx context.Context, topic string) (Control, error) {
	return s.control(ctx, topic, "resume")
}

// Retune puts settings in force on all nodes in place of all that were; the
// zero value leaves the nodes to their own. A pause stays.
func (s *Timers) Retune(ctx context.Context, topic string, set Settings) (Control, error) {
	if err := set.Validate(); err != nil {
		return Control{}, err
	}
	args := []any{"tune"}
	for _, f := range set.fields() {
		if v := f.value(); v != 0 {
			args = append(args, f.name, f.text(v))
		}
	}
	return s.control(ctx, topic, args...)
}

func (s *Timers) control(ctx context.Context, topic string, args ...any) (Control, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return Control{}, err
	}
	k := s.keys.Of(topic)
	list, err := s.RunList(ctx, 0, controlScript, []string{k.Control, k.Hint}, args...)
	if err != nil {
		return Control{}, fmt.Errorf("%s %q: %w", args[0], topic, err)
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return Control{}, err
	}
	s.Remember(ctx, topic)
	fields := map[string]string{}
	for pair := range slices.Chunk(values, 2) {
		fields[pair[0]] = pair[len(pair)-1]
	}
	return readControl(k.Control, fields)
}

// Control reads what is ordered of a topic.
func (s *Timers) Control(ctx context.Context, topic string) (Control, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return Control{}, err
	}
	key := s.keys.Of(topic).Control
	var c Control
	err := s.Again(ctx, func() (err error) {
		c, err = readControlReply(ctx, key, s.RDB.HGetAll(ctx, key))
		return err
	})
	return c, err
}

func readControlReply(ctx context.Context, key string, reply *redis.MapStringStringCmd) (Control, error) {
	fields, err := reply.Result()
	if err != nil {
		return Control{}, fmt.Errorf("read %q: %w", key, scripts.Wrap(ctx, []string{key}, err))
	}
	return readControl(key, fields)
}

// readControl passes over fields that it does not know. One that it cannot read
// is an error: a node then keeps what it had.
func readControl(key string, fields map[string]string) (Control, error) {
	c := Control{PausedBy: fields["by"], Reason: fields["reason"]}
	if at, ok := fields["paused"]; ok {
		c.Paused, c.PausedAt = true, scripts.ReadInstant(at)
	}
	known := c.Settings.fields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		i := slices.IndexFunc(known, func(f setting) bool { return f.name == name })
		if i < 0 {
			continue
		}
		if err := known[i].read(fields[name]); err != nil {
			return Control{}, fmt.Errorf("read %q of %q: %w", name, key, err)
		}
	}
	return c, nil
}
