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

// Control is the cluster-wide control of a topic: it applies to all nodes that
// handle the topic. The zero value means no pause and no overrides.
type Control struct {
	Paused   bool      // its nodes claim no timers; running handlers continue
	PausedAt time.Time // by Redis's clock
	PausedBy string
	Reason   string // of the pause

	// Settings override the nodes' own options.
	Settings Settings
}

// Settings override the options that nodes were given for a topic. A zero field
// leaves the option to the node.
type Settings struct {
	MaxConcurrent int // per node, 1 to 10,000

	LeaseTTL    time.Duration // 100 ms to 24 h
	MaxLeaseAge time.Duration // 1 ms to 30 days; negative: off on every node

	PollingInterval    time.Duration // 1 ms to 1 h
	MaxPollingInterval time.Duration // 1 ms to 1 h

	RetryInitial time.Duration // delay after the first failure, 1 ms to 30 days
	RetryLimit   time.Duration // the cap up to which it doubles, 1 ms to 30 days
	MaxAttempts  int           // 1 to 1,000,000
}

// setting is a field of Settings with its name in the hash and its bounds. Either
// number or duration is set.
type setting struct {
	name      string
	number    *int
	duration  *time.Duration
	low, high int64
	off       bool // negative values turn it off; stored as 0
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

// text formats a value as it is stored: "20", "1m30s"; "0s" for a setting that is
// off.
func (f setting) text(value int64) string {
	if f.off {
		value = max(value, 0)
	}
	if f.number != nil {
		return strconv.FormatInt(value, 10)
	}
	return time.Duration(value).String()
}

// read parses a stored value, which may have been written by hand.
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

// Validate reports all settings that are out of bounds; the error wraps
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

// Pause makes all nodes stop claiming timers of the topic until Resume. Running
// handlers continue, and schedules are accepted. By and reason, at most 1,024 bytes
// each, are stored for display. Pausing a paused topic keeps the time of the first
// pause. Nodes are notified by a hint, [exchange.HintControl]. A node that misses
// the hint reads the pause when it subscribes again or next reads the controls.
func (s *Timers) Pause(ctx context.Context, topic, by, reason string) (Control, error) {
	return s.control(ctx, topic, "pause", scripts.Clip(by, scripts.MaxReason), scripts.Clip(reason, scripts.MaxReason))
}

// Resume ends a pause. Settings stay.
func (s *Timers) Resume(ctx context.Context, topic string) (Control, error) {
	return s.control(ctx, topic, "resume")
}

// Retune replaces the overrides that apply to all nodes; the zero value removes all
// overrides. A pause stays.
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

// Control reads the pause and the overrides of a topic.
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

// readControl ignores unknown fields. It fails on a field that it cannot read; a
// node then keeps the control that it applies.
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
