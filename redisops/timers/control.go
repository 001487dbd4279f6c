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
	"github.com/wakebell/wakebell/wakebelltype"
)

// setting is a field of Settings with its name in the hash and its bounds. Either
// number or duration is set.
type setting struct {
	name      string
	number    *int
	duration  *time.Duration
	low, high int64
	off       bool // negative values turn it off; stored as 0
}

func fieldsOf(s *wakebelltype.Settings) []setting {
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

// CheckSettings reports all settings that are out of bounds; the error wraps
// [redisops.ErrInvalid].
func CheckSettings(s wakebelltype.Settings) error {
	var errs []error
	for _, f := range fieldsOf(&s) {
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
func (s *Timers) Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error) {
	return s.control(ctx, topic, "pause", scripts.Clip(by, scripts.MaxReason), scripts.Clip(reason, scripts.MaxReason))
}

// Resume ends a pause. Settings stay.
func (s *Timers) Resume(ctx context.Context, topic string) (wakebelltype.Control, error) {
	return s.control(ctx, topic, "resume")
}

// Retune replaces the overrides that apply to all nodes; the zero value removes all
// overrides. A pause stays.
func (s *Timers) Retune(ctx context.Context, topic string, set wakebelltype.Settings) (wakebelltype.Control, error) {
	if err := CheckSettings(set); err != nil {
		return wakebelltype.Control{}, err
	}
	args := []any{"tune"}
	for _, f := range fieldsOf(&set) {
		if v := f.value(); v != 0 {
			args = append(args, f.name, f.text(v))
		}
	}
	return s.control(ctx, topic, args...)
}

func (s *Timers) control(ctx context.Context, topic string, args ...any) (wakebelltype.Control, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Control{}, err
	}
	k := s.keys.Of(topic)
	list, err := s.RunList(ctx, 0, controlScript, []string{k.Control, k.Hint}, args...)
	if err != nil {
		return wakebelltype.Control{}, fmt.Errorf("%s %q: %w", args[0], topic, err)
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	s.Remember(ctx, topic)
	fields := map[string]string{}
	for pair := range slices.Chunk(values, 2) {
		fields[pair[0]] = pair[len(pair)-1]
	}
	return readControl(k.Control, fields)
}

// Control reads the pause and the overrides of a topic.
func (s *Timers) Control(ctx context.Context, topic string) (wakebelltype.Control, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Control{}, err
	}
	key := s.keys.Of(topic).Control
	var c wakebelltype.Control
	err := s.Again(ctx, func() (err error) {
		c, err = readControlReply(ctx, key, s.RDB.HGetAll(ctx, key))
		return err
	})
	return c, err
}

func readControlReply(ctx context.Context, key string, reply *redis.MapStringStringCmd) (wakebelltype.Control, error) {
	fields, err := reply.Result()
	if err != nil {
		return wakebelltype.Control{}, fmt.Errorf("read %q: %w", key, scripts.Wrap(ctx, []string{key}, err))
	}
	return readControl(key, fields)
}

// readControl ignores unknown fields. It fails on a field that it cannot read; a
// node then keeps the control that it applies.
func readControl(key string, fields map[string]string) (wakebelltype.Control, error) {
	c := wakebelltype.Control{PausedBy: fields["by"], Reason: fields["reason"]}
	if at, ok := fields["paused"]; ok {
		c.Paused, c.PausedAt = true, scripts.ReadInstant(at)
	}
	known := fieldsOf(&c.Settings)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		i := slices.IndexFunc(known, func(f setting) bool { return f.name == name })
		if i < 0 {
			continue
		}
		if err := known[i].read(fields[name]); err != nil {
			return wakebelltype.Control{}, fmt.Errorf("read %q of %q: %w", name, key, err)
		}
	}
	return c, nil
}
