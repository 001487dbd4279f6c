package redisops

import (
	"context"
	"fmt"
	"strconv"
)

const (
	healEntries  = 10_000    // entries examined by one Heal
	healFirst    = 16        // entries of its first page: payloads may be large
	healMost     = 512       // entries of a page, when payloads turn out small
	healPageSize = 256 << 10 // bytes that a page may read before pages get smaller
)

// sweep is how far Heal has come in a hash.
type sweep struct {
	cursor string
	page   int
}

// Heal removes payloads and lease records that have no timer, and answers how
// many. One call looks at about 10,000 entries of each; the next one goes on
// from there.
func (t *TimerSource) Heal(ctx context.Context) (removed int, err error) {
	if err := checkTopic(t.topic); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, hash := range []string{t.keys.payloads, t.keys.leases} {
		n, err := t.healHash(ctx, hash, &t.sweep[i])
		removed += n
		if err != nil {
			return removed, fmt.Errorf("heal %q: %w", hash, err)
		}
	}
	return removed, nil
}

func (t *TimerSource) healHash(ctx context.Context, hash string, at *sweep) (removed int, err error) {
	if at.cursor == "" {
		*at = sweep{cursor: "0", page: healFirst}
	}
	for examined := 0; examined < healEntries; {
		list, err := t.timers.runList(ctx, 4, healScript, []string{t.keys.timeline, hash}, at.cursor, at.page)
		if err != nil {
			return removed, err
		}
		values, err := texts(list)
		if err != nil {
			return removed, err
		}
		var n [3]int
		for i := range n {
			if n[i], err = strconv.Atoi(values[i+1]); err != nil {
				return removed, fmt.Errorf("%w: %w", errReply, err)
			}
		}
		examined += max(n[0], 1)
		removed += n[1]
		at.cursor = values[0]
		if n[2] > healPageSize {
			at.page = max(1, at.page/2)
		} else {
			at.page = min(healMost, at.page*2)
		}
		if at.cursor == "0" {
			*at = sweep{}
			break
		}
	}
	return removed, nil
}
