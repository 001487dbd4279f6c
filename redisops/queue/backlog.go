package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
)

// maxBacklog bounds the queues that Backlog reads: each is a round trip.
const maxBacklog = 1000

// Backlog returns the backlog of the given queues and of those of the registry whose names
// have the prefix, for metrics: up to 1,000. A queue whose keys cannot be read is left out.
// Errors wrap [exchange.ErrUnavailable], or are those of ctx.
func Backlog(ctx context.Context, s *timers.Timers, prefix string, own []*Queue) ([]metrics.Queue, error) {
	found := map[string]*Queue{}
	for _, q := range own {
		found[q.member] = q
	}
	for cursor := uint64(0); ; {
		members, next, err := s.Queues(ctx, cursor)
		if err != nil {
			if errors.Is(err, exchange.ErrUnavailable) || ctx.Err() != nil {
				return nil, err
			}
			break // without the right to the registry, this node reports its own
		}
		for _, member := range members {
			name, known := Registered(member)
			if !known || !strings.HasPrefix(name.Name, prefix) || found[member] != nil {
				continue
			}
			if q, err := New(s, name); err == nil {
				found[member] = q
			}
		}
		if cursor = next; cursor == 0 || len(found) >= maxBacklog {
			break
		}
	}
	names := slices.Sorted(maps.Keys(found))
	return backlogOf(ctx, s, found, names[:min(maxBacklog, len(names))])
}

func backlogOf(ctx context.Context, s *timers.Timers, found map[string]*Queue, names []string) ([]metrics.Queue, error) {
	channels := make([]string, len(names))
	for i, name := range names {
		channels[i] = found[name].keys.hint
	}
	listening := map[string]int64{}
	if len(channels) > 0 {
		listening = s.Listeners(ctx, channels)
	}
	all := make([]metrics.Queue, 0, len(names))
	for i, name := range names {
		q := found[name]
		st, err := q.Stats(ctx)
		if errors.Is(err, exchange.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			continue
		}
		b := metrics.Queue{Name: q.Name(), Depth: st.Pending, InFlight: st.Processing, Dead: st.Dead, Nodes: -1}
		if n, known := listening[channels[i]]; known {
			b.Nodes = n
		}
		if !st.Oldest.IsZero() {
			b.Oldest = max(st.Now.Sub(st.Oldest), 0)
		}
		all = append(all, b)
	}
	return all, nil
}
