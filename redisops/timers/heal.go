package timers

import (
	"context"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	healEntries  = 10_000    // entries examined by one Heal
	healFirst    = 16        // entries of its first page: payloads may be large
	healMost     = 512       // entries of a page, when payloads turn out small
	healPageSize = 256 << 10 // bytes that a page may read before pages get smaller
)

// Sweep is the progress of Heal in a hash.
type Sweep struct {
	Cursor string
	page   int
}

// Heal removes payloads and lease records without a timer and returns their number.
// One call examines about 10,000 entries of each hash; the next call continues from
// there.
func (t *TimerSource) Heal(ctx context.Context) (removed int, err error) {
	if err := layout.CheckTopic(t.topic); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, hash := range []string{t.keys.Payloads, t.keys.Leases} {
		done, err := t.timers.Sweep(ctx, t.keys.Timeline, hash, &t.sweep[i], healEntries, true)
		removed += done.Orphans
		if err != nil {
			return removed, fmt.Errorf("heal %q: %w", hash, err)
		}
	}
	return removed, nil
}

// Swept counts the entries that a part of a sweep examined and found without a
// timer.
type Swept struct{ examined, Orphans int }

// Sweep looks for entries of a hash without a timer, and removes them if remove is
// true. It ends after limit entries or at the end of the hash, where it sets at to
// zero.
func (s *Timers) Sweep(ctx context.Context, timeline, hash string, at *Sweep, limit int, remove bool) (done Swept, err error) {
	if at.Cursor == "" {
		*at = Sweep{Cursor: "0", page: healFirst}
	}
	removes := "0"
	if remove {
		removes = "1"
	}
	for done.examined < limit {
		list, err := s.RunList(ctx, 4, healScript, []string{timeline, hash}, at.Cursor, at.page, removes)
		if err != nil {
			return done, err
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return done, err
		}
		var n [3]int
		for i := range n {
			if n[i], err = strconv.Atoi(values[i+1]); err != nil {
				return done, fmt.Errorf("%w: %w", scripts.ErrReply, err)
			}
		}
		done.examined += max(n[0], 1)
		done.Orphans += n[1]
		at.Cursor = values[0]
		if n[2] > healPageSize {
			at.page = max(1, at.page/2)
		} else {
			at.page = min(healMost, at.page*2)
		}
		if at.Cursor == "0" {
			*at = Sweep{}
			break
		}
	}
	return done, nil
}
