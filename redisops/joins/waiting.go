package joins

import (
	"context"
	"slices"
	"sync"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Waiting returns joins whose timers exist, and are on a topic or wait for parts on it that have
// not ended, in no order. It stops looking when it has found a number of them.
func (s *Store) Waiting(ctx context.Context, topic string, enough int) (found []Ref, err error) {
	key := s.timers.Keys().Joins
	var mu sync.Mutex
	for cursor := uint64(0); ; {
		var page []string // joins, each before its score
		err = s.timers.Again(ctx, func() (err error) {
			page, cursor, err = s.timers.RDB.ZScan(ctx, key, cursor, "", layout.ScanPage).Result()
			return scripts.Wrap(ctx, []string{key}, err)
		})
		if err == nil {
			err = concurrently(ctx, joinsOf(page), func(r Ref) error {
				waits, err := s.waits(ctx, r, topic)
				mu.Lock()
				defer mu.Unlock()
				if waits && !slices.Contains(found, r) { // a scan may repeat some
					found = append(found, r)
				}
				return err
			})
		}
		if err != nil || cursor == 0 || len(found) >= enough {
			return found, err
		}
	}
}

// joinsOf returns the joins among members and scores of the zset of all. Those of another
// program are left out.
func joinsOf(page []string) (list []Ref) {
	for pair := range slices.Chunk(page, 2) {
		if p, ok := partOf(pair[0]); ok {
			list = append(list, Ref{Topic: p.Topic, ID: p.ID})
		}
	}
	return list
}

// waits reports whether the timer of a join exists, and is on a topic or waits for a part on it.
func (s *Store) waits(ctx context.Context, r Ref, topic string) (bool, error) {
	r, head, err := s.head(ctx, r)
	if err != nil {
		return false, ignoreAbsent(err)
	}
	if r.Topic != topic {
		if head.ran {
			return false, nil
		}
		if some, err := s.hasPart(ctx, r, topic); err != nil || !some {
			return false, err
		}
	}
	t, err := s.timerOf(ctx, r)
	return t != nil, err
}

// hasPart reports whether a part of a join that has not ended is on a topic.
func (s *Store) hasPart(ctx context.Context, r Ref, topic string) (bool, error) {
	for from := 0; ; {
		page, err := s.Page(ctx, r, from, layout.MaxPage, true)
		if err != nil {
			return false, ignoreAbsent(err)
		}
		if slices.ContainsFunc(page.Ends, func(e End) bool { return e.Topic == topic }) {
			return true, nil
		}
		if from = page.Next; from == 0 {
			return false, nil
		}
	}
}
