package progress

import (
	"context"
	"fmt"
	"slices"

	"github.com/wakebell/wakebell/internal/together"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

// Store writes what handlers keep, beside the timers of one store.
type Store struct {
	timers *timers.Timers
	looks  together.Calls[string, string, float64] // by the key of a timeline
}

// New returns the store beside timers.
func New(t *timers.Timers) *Store { return &Store{timers: t} }

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

// looksOfCall bounds the leases of one look.
const looksOfCall = 1000

// Holds reports whether the lease of a timer still has a token. Looks that come while another
// one is on its way are made together.
func (s *Store) Holds(ctx context.Context, topic, id string, token exchange.Token) (held bool, err error) {
	key := s.timers.Keys().Of(topic).Timeline
	score, err := s.looks.Do(ctx, key, id, func(ctx context.Context, ids []string) (scores []float64, err error) {
		for some := range slices.Chunk(ids, looksOfCall) {
			var found []float64 // 0: there is no such timer
			err := s.timers.Again(ctx, func() (err error) {
				found, err = s.timers.RDB.ZMScore(ctx, key, some...).Result()
				return scripts.Wrap(ctx, []string{key}, err)
			})
			if err != nil {
				return nil, err
			}
			scores = append(scores, found...)
		}
		return scores, nil
	})
	if err != nil {
		return false, fmt.Errorf("lease of %q on %q: %w", id, topic, err)
	}
	of, err := scripts.ReadScore(string(token))
	return err == nil && score == of, nil
}
