package timers

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // a short name for what changes, not a secret
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/text"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Pause makes all nodes stop claiming timers of the topic until Resume. Running
// handlers continue, and schedules are accepted. By and reason, at most 1,024 bytes
// each, are stored for display. Pausing a paused topic keeps the time of the first
// pause. Nodes are notified by a hint, [exchange.HintControl]. A node that misses the
// hint sees the change in the answer to its next exchange, which claims nothing.
func (s *Timers) Pause(ctx context.Context, topic, by, reason string) (wakebelltype.Control, error) {
	return s.PauseUntil(ctx, topic, wakebelltype.Pause{By: by, Reason: reason})
}

// PauseUntil is Pause with an end: at that instant of Redis's clock the pause is over for
// every reader, and the pollers claim again. It fails if the instant has passed. An earlier
// end of a pause is replaced, also by none.
func (s *Timers) PauseUntil(ctx context.Context, topic string, p wakebelltype.Pause) (wakebelltype.Control, error) {
	ends, after := "", ""
	switch {
	case p.For < 0:
		return wakebelltype.Control{}, argument.Invalid("for", "%v, want more than 0", p.For)
	case p.For > 0 && !p.Until.IsZero():
		return wakebelltype.Control{}, argument.Invalid("for", "%v, and until is set too: use one", p.For)
	case p.For > 0:
		after = scripts.DelayText(p.For)
	case p.Until.After(scripts.LastInstant):
		return wakebelltype.Control{}, argument.Invalid("until", "%s, want at most %s", p.Until, scripts.LastInstant)
	case !p.Until.IsZero():
		ends = scripts.ScoreText(p.Until)
	}
	return s.control(ctx, topic, "pause", text.Cut(p.By, scripts.MaxReason), text.Cut(p.Reason, scripts.MaxReason), ends, after)
}

// Resume ends a pause. Settings stay.
func (s *Timers) Resume(ctx context.Context, topic string) (wakebelltype.Control, error) {
	return s.control(ctx, topic, "resume")
}

// Retune replaces the overrides that apply to all nodes; the zero value removes all
// overrides. A pause stays.
func (s *Timers) Retune(ctx context.Context, topic string, set wakebelltype.Settings) (wakebelltype.Control, error) {
	if err := tuning.Check(set); err != nil {
		return wakebelltype.Control{}, err
	}
	var args []any
	for _, t := range tuning.All {
		if v := t.Get(&set); v != 0 {
			args = append(args, t.Name, t.Text(v))
		}
	}
	return s.control(ctx, topic, "tune", args...)
}

func (s *Timers) control(ctx context.Context, topic, action string, args ...any) (wakebelltype.Control, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Control{}, err
	}
	k := s.keys.Of(topic)
	fields, now, err := s.changeControl(ctx, k, action, args...)
	if err != nil {
		return wakebelltype.Control{}, fmt.Errorf("%s %q: %w", action, topic, err)
	}
	s.Remember(ctx, topic)
	return readControl(k.Control, fields, now)
}

// changeControl runs lua/control.lua, and returns the fields and the time of its reply.
func (s *Timers) changeControl(ctx context.Context, k TopicKeys, action string, args ...any) (fields map[string]string, now time.Time, err error) {
	list, err := s.RunList(ctx, 2, controlScript, []string{k.Control, k.Hint}, append([]any{action, newMark()}, args...)...)
	if err != nil {
		return nil, now, err
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return nil, now, err
	}
	now = scripts.ReadInstant(values[len(values)-1])
	if len(values) == 2 && values[0] == "over" {
		return nil, now, argument.Invalid("until", "it has passed: Redis's clock is at %s", now.UTC().Format(time.RFC3339Nano))
	}
	values, fields = values[:len(values)-2], map[string]string{}
	for pair := range slices.Chunk(values, 2) {
		fields[pair[0]] = pair[len(pair)-1]
	}
	return fields, now, nil
}

// Control reads the pause and the overrides of a topic.
func (s *Timers) Control(ctx context.Context, topic string) (wakebelltype.Control, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Control{}, err
	}
	fields, err := s.controlFields(ctx, topic)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return s.readControl(ctx, s.keys.Of(topic).Control, fields)
}

// endOf returns when a pause ends by itself, as lua/pause.lua does; zero: it does not.
func endOf(fields map[string]string) time.Time {
	at, beside, found := strings.Cut(fields["until"], " ")
	if _, paused := fields["paused"]; !paused || !found || beside != fields[fieldMark] {
		return time.Time{}
	}
	if _, err := scripts.ReadScore(at); err != nil {
		return time.Time{}
	}
	return scripts.ReadInstant(at)
}

// readControl reads the fields. It asks for the time if there is a pause that ends by itself.
func (s *Timers) readControl(ctx context.Context, key string, fields map[string]string) (wakebelltype.Control, error) {
	if endOf(fields).IsZero() {
		return readControl(key, fields, time.Time{})
	}
	now, err := s.now(ctx)
	if err != nil {
		return wakebelltype.Control{}, err
	}
	return readControl(key, fields, now)
}

// now returns the time by Redis's clock.
func (s *Timers) now(ctx context.Context) (now time.Time, err error) {
	err = s.Again(ctx, func() error {
		now, err = s.RDB.Time(ctx).Result()
		return scripts.Wrap(ctx, nil, err)
	})
	return now, err
}

// Controls reads the pause and the overrides of several topics in one round trip. Each has a
// value or an error.
func (s *Timers) Controls(ctx context.Context, topics ...string) (all []wakebelltype.Control, errs []error) {
	all, errs = make([]wakebelltype.Control, len(topics)), make([]error, len(topics))
	replies := make([]*redis.MapStringStringCmd, len(topics))
	pipe := s.RDB.Pipeline()
	for i, topic := range topics {
		replies[i] = pipe.HGetAll(ctx, s.keys.Of(topic).Control)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	for i, topic := range topics {
		all[i], errs[i] = s.readControlReply(ctx, s.keys.Of(topic).Control, replies[i])
	}
	return all, errs
}

func (s *Timers) readControlReply(ctx context.Context, key string, reply *redis.MapStringStringCmd) (wakebelltype.Control, error) {
	fields, err := reply.Result()
	if err != nil {
		return wakebelltype.Control{}, fmt.Errorf("read %q: %w", key, scripts.Wrap(ctx, []string{key}, err))
	}
	return s.readControl(ctx, key, fields)
}

// readControl ignores unknown fields. It fails on a field that it cannot read; a
// node then keeps the control that it applies. A pause that ends by itself is over at now.
func readControl(key string, fields map[string]string, now time.Time) (wakebelltype.Control, error) {
	var c wakebelltype.Control
	ends := endOf(fields)
	if ends.IsZero() || now.Before(ends) {
		c.PausedBy, c.Reason, c.PausedUntil = fields["by"], fields["reason"], ends
		if at, ok := fields["paused"]; ok {
			c.Paused, c.PausedAt = true, scripts.ReadInstant(at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		i := slices.IndexFunc(tuning.All, func(t *tuning.Setting) bool { return t.Name == name })
		if i < 0 {
			continue
		}
		if err := tuning.All[i].Read(&c.Settings, fields[name]); err != nil {
			return wakebelltype.Control{}, fmt.Errorf("read %q of %q: %w", name, key, err)
		}
	}
	return c, nil
}

// The marks of lua/mark.lua that are no hash, and what a caller passes in place of one.
const (
	unknownMark = "?" // the settings could not be read
	noMark      = "-" // there are none
	anyMark     = "*" // the caller does not know which ones it applies
)

// fieldMark has a random word in the hash of the settings, which each change replaces.
const fieldMark = "mark"

// controlAgain is how long after the user had no right to give the settings to a script an
// exchange tries again.
const controlAgain = time.Minute

// asksControl reports whether an exchange reads the mark of the settings.
func (t *TimerSource) asksControl() bool {
	denied := t.denied.Load()
	return denied == 0 || time.Since(time.Unix(0, denied)) >= controlAgain
}

// controlKey is the last key of lua/exchange.lua. Redis refuses a script with a key to
// which the user has no right, so a key of the exchange takes its place then.
func (t *TimerSource) controlKey(asks bool) string {
	if asks {
		return t.keys().Control
	}
	return t.keys().Timeline
}

// known is the argument of lua/exchange.lua of that name.
func (t *TimerSource) known(r *exchange.Request, asks bool) any {
	switch {
	case !asks:
		return ""
	case r.Control == "":
		return anyMark
	default:
		return &r.Control
	}
}

// Control reads the pause and the overrides of the topic, and their mark, with which
// exchanges say that the poller applies them. It ends a pause that has ended by itself, so
// that nodes of earlier versions claim again too, and otherwise returns for how long that
// pause still lasts; 0: until it is resumed.
func (t *TimerSource) Control(ctx context.Context) (c wakebelltype.Control, left time.Duration, mark string, err error) {
	if err := layout.CheckTopic(t.topic); err != nil {
		return wakebelltype.Control{}, 0, "", err
	}
	var now time.Time
	fields, err := t.timers.controlFields(ctx, t.topic)
	if err == nil && !endOf(fields).IsZero() {
		fields, now, err = t.endPause(ctx, fields)
	}
	if err != nil {
		return wakebelltype.Control{}, 0, "", err
	}
	if c, err = readControl(t.keys().Control, fields, now); !c.PausedUntil.IsZero() {
		left = max(c.PausedUntil.Sub(now), time.Millisecond)
	}
	return c, left, markOf(fields), err
}

// endPause ends a pause whose instant has come. Without the right to write the settings it is
// over for this node alone.
func (t *TimerSource) endPause(ctx context.Context, read map[string]string) (fields map[string]string, now time.Time, err error) {
	if fields, now, err = t.timers.changeControl(ctx, *t.keys(), "lift"); scripts.IsDenied(err) {
		fields = read
		now, err = t.timers.now(ctx)
	}
	if err != nil {
		return nil, now, fmt.Errorf("end the pause of %q: %w", t.topic, err)
	}
	return fields, now, nil
}

// newMark returns a word that no settings had before.
func newMark() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// markOf returns the mark of settings, as lua/mark.lua does.
func markOf(fields map[string]string) string {
	word, marked := fields[fieldMark]
	paused, isPaused := fields["paused"]
	if !marked && !isPaused {
		return noMark
	}
	sum := sha1.Sum([]byte(word + "/" + paused)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}

// controlFields reads the hash of the settings of a topic.
func (s *Timers) controlFields(ctx context.Context, topic string) (fields map[string]string, err error) {
	key := s.keys.Of(topic).Control
	err = s.Again(ctx, func() error {
		fields, err = s.RDB.HGetAll(ctx, key).Result()
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	return fields, nil
}
