package progress

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Store writes what handlers keep, beside the timers of one store.
type Store struct{ timers *timers.Timers }

// New returns the store beside timers.
func New(t *timers.Timers) *Store { return &Store{t} }

// Checkpoint replaces the payload of a timer of a physical topic. Held is false if its
// lease does not have the token any more: nothing was written then. A call that is
// repeated after an error does no harm.
func (s *Store) Checkpoint(ctx context.Context, topic, id string, token exchange.Token, payload []byte) (held bool, err error) {
	k := s.timers.Keys().Of(topic)
	done, err := s.timers.RunText(ctx, checkpointScript, []string{k.Timeline, k.Payloads}, id, string(token), payload)
	if err != nil {
		return false, fmt.Errorf("checkpoint of %q on %q: %w", id, topic, err)
	}
	return done == "1", nil
}

// Holds reports whether the lease of a timer still has a token.
func (s *Store) Holds(ctx context.Context, topic, id string, token exchange.Token) (held bool, err error) {
	key, score := s.timers.Keys().Of(topic).Timeline, 0.0
	err = s.timers.Again(ctx, func() (err error) {
		score, err = s.timers.RDB.ZScore(ctx, key, id).Result()
		if errors.Is(err, redis.Nil) {
			score, err = 0, nil
		}
		return scripts.Wrap(ctx, []string{key}, err)
	})
	if err != nil {
		return false, fmt.Errorf("lease of %q on %q: %w", id, topic, err)
	}
	of, err := scripts.ReadScore(string(token))
	return err == nil && score == of, nil
}
