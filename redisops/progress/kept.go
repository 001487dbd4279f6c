package progress

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Bounds of what is kept.
const (
	MaxNote   = 256     // bytes of a note
	MaxResult = 4 << 10 // bytes of a result with its headers
)

// Result is what a handler returned.
type Result struct {
	At         time.Time // when it was stored, by Redis's clock
	Attempt    int
	Activation time.Time // of the timer
	Payload    []byte    // an envelope
}

// Kept is what a timer has; nil fields: nothing.
type Kept struct {
	Progress *wakebelltype.Progress
	Result   *Result
}

// KeepProgress stores how far the handler of a timer is; At is ignored. Held is as that of
// Checkpoint.
func (s *Store) KeepProgress(ctx context.Context, topic, id string, token exchange.Token, p wakebelltype.Progress, life time.Duration) (held bool, err error) {
	value := fmt.Sprintf("%d %s %s", p.Attempt, strconv.FormatFloat(p.Fraction, 'g', 6, 64), p.Note)
	return s.keep(ctx, topic, id, token, "p", value, life)
}

// KeepResult stores the result of a timer; At is ignored. Held is as that of Checkpoint.
func (s *Store) KeepResult(ctx context.Context, topic, id string, token exchange.Token, r Result, life time.Duration) (held bool, err error) {
	value := fmt.Sprintf("%d %s %s", r.Attempt, scripts.ScoreText(r.Activation), r.Payload)
	return s.keep(ctx, topic, id, token, "r", value, life)
}

// DropResult removes the result of an earlier run of a timer.
func (s *Store) DropResult(ctx context.Context, topic, id string, token exchange.Token) (held bool, err error) {
	return s.keep(ctx, topic, id, token, "r", "", time.Millisecond)
}

func (s *Store) keep(ctx context.Context, topic, id string, token exchange.Token, field, value string, life time.Duration) (bool, error) {
	keys := s.timers.Keys()
	done, err := s.timers.RunText(ctx, keepScript, []string{keys.Of(topic).Timeline, keys.Result(topic, id)},
		id, string(token), field, value, life.Milliseconds())
	if err != nil {
		return false, fmt.Errorf("keep what the handler of %q on %q reports: %w", id, topic, err)
	}
	return done == "1", nil
}

// Withdraw removes the result that was written with a token, after the ack was refused.
func (s *Store) Withdraw(ctx context.Context, topic, id string, token exchange.Token) error {
	if _, err := s.timers.RunText(ctx, withdrawScript, []string{s.timers.Keys().Result(topic, id)}, string(token)); err != nil {
		return fmt.Errorf("remove the result of %q on %q: %w", id, topic, err)
	}
	return nil
}

// Read returns what is kept of a timer in any of some physical topics, the latest of each.
// What cannot be read is not there.
func (s *Store) Read(ctx context.Context, topics []string, id string) (latest Kept, err error) {
	if err := layout.CheckID(id); err != nil {
		return latest, err
	}
	keys := make([]string, len(topics))
	for i, topic := range topics {
		keys[i] = s.timers.Keys().Result(topic, id)
	}
	var found []redis.Cmder
	err = s.timers.Again(ctx, func() (err error) {
		found, err = s.timers.RDB.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range keys {
				pipe.HMGet(ctx, key, "p", "r")
			}
			return nil
		})
		return scripts.Wrap(ctx, keys, err)
	})
	if err != nil {
		return latest, fmt.Errorf("what was reported of %q on %q: %w", id, topics[0], err)
	}
	for _, reply := range found {
		values := reply.(*redis.SliceCmd).Val()
		if len(values) != 2 {
			continue
		}
		if p := readProgress(values[0]); p != nil && (latest.Progress == nil || p.At.After(latest.Progress.At)) {
			latest.Progress = p
		}
		if r := readResult(values[1]); r != nil && (latest.Result == nil || r.At.After(latest.Result.At)) {
			latest.Result = r
		}
	}
	return latest, nil
}

// cut reads the instant and the attempt of a field, and returns the word and the rest behind.
func cut(field any) (at time.Time, attempt int, word, rest string, ok bool) {
	text, _ := field.(string)
	parts := strings.SplitN(text, " ", 4)
	if len(parts) != 4 {
		return at, 0, "", "", false
	}
	score, err := scripts.ReadScore(parts[0])
	attempt, bad := strconv.Atoi(parts[1])
	return scripts.Instant(score), attempt, parts[2], parts[3], err == nil && bad == nil
}

func readProgress(field any) *wakebelltype.Progress {
	at, attempt, word, note, ok := cut(field)
	fraction, err := strconv.ParseFloat(word, 64)
	if !ok || err != nil || !(fraction >= 0 && fraction <= 1) {
		return nil
	}
	return &wakebelltype.Progress{At: at, Attempt: attempt, Fraction: fraction, Note: note}
}

func readResult(field any) *Result {
	at, attempt, word, payload, ok := cut(field)
	activation, err := scripts.ReadScore(word)
	if !ok || err != nil {
		return nil
	}
	return &Result{At: at, Attempt: attempt, Activation: scripts.Instant(activation), Payload: []byte(payload)}
}
