package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/redisops/joins"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/wakebelltype"
)

// maxNamed bounds the joins and the schedules that an error names.
const maxNamed = 5

// MayMove returns an error that wraps [wakebelltype.ErrInvalid] if a move of a topic to another
// Redis would make joins or recurring schedules miss its timers. A move that has begun may go on:
// timers may be on their way. Overlapping is that of the store of recurring schedules. Names in
// the error are without the prefix.
func MayMove(ctx context.Context, s *shards.Store, overlapping func(ctx context.Context, topic string, enough int) ([]string, error), topic, prefix string) error {
	if begun, err := s.MoveBegun(ctx, topic); begun || err != nil {
		return err
	}
	waiting, err := joins.New(s).Waiting(ctx, topic, maxNamed+1)
	if err != nil {
		return fmt.Errorf("look for joins of topic %q: %w", topic, err)
	}
	schedules, err := overlapping(ctx, topic, maxNamed+1)
	if err != nil {
		return fmt.Errorf("look for recurring schedules of topic %q: %w", topic, err)
	}
	var reasons []string
	if len(waiting) > 0 {
		names := make([]string, len(waiting))
		for i, r := range waiting {
			names[i] = argument.Quote(r.ID) + " on " + argument.Quote(strings.TrimPrefix(r.Topic, prefix))
		}
		reasons = append(reasons, "joins count parts that are moved as cancelled: those of timers "+some(names)+"; let them end, or cancel them")
	}
	if len(schedules) > 0 {
		names := make([]string, len(schedules))
		for i, name := range schedules {
			names[i] = argument.Quote(strings.TrimPrefix(name, prefix))
		}
		reasons = append(reasons, "recurring schedules with Overlap do not see last runs that are moved: "+some(names)+
			"; pause them until they are in the target")
	}
	if reasons == nil {
		return nil
	}
	return fmt.Errorf("%w: topic %q: %s; Force (--force) moves it nevertheless", wakebelltype.ErrInvalid, topic, strings.Join(reasons, "; "))
}

// some returns the first of some names, of which one may occur twice.
func some(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxNamed {
		return strings.Join(names[:maxNamed], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
