package timers

import (
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // a short name for what changes, not a secret
	"encoding/hex"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

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
		return t.keys.Control
	}
	return t.keys.Timeline
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
// exchanges say that the poller applies them.
func (t *TimerSource) Control(ctx context.Context) (c wakebelltype.Control, mark string, err error) {
	if err := layout.CheckTopic(t.topic); err != nil {
		return wakebelltype.Control{}, "", err
	}
	fields, err := t.timers.controlFields(ctx, t.topic)
	if err != nil {
		return wakebelltype.Control{}, "", err
	}
	c, err = readControl(t.keys.Control, fields)
	return c, markOf(fields), err
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
