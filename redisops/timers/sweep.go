package timers

import (
	"context"
	"fmt"
	"strconv"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

const (
	healEntries  = 10_000    // entries examined by one RemoveOrphans
	healFirst    = 16        // entries of its first page: payloads may be large
	healMost     = 512       // entries of a page, when payloads turn out small
	healPageSize = 256 << 10 // bytes that a page may read before pages get smaller
)

// Sweep is the progress of RemoveOrphans in a hash.
type Sweep struct {
	Cursor string
	page   int
}

// RemoveOrphans removes payloads without a timer, and lease records and keys of timers that
// have neither a timer nor a payload. One call examines about 10,000 entries of each hash;
// the next call continues from there. It leaves payloads if so many have no timer that
// timers must have been lost, because all that can be restored of them is what stays.
func (t *TimerSource) RemoveOrphans(ctx context.Context) (swept exchange.Swept, err error) {
	if err := layout.CheckTopic(t.topic); err != nil {
		return swept, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	hashes := []string{t.keys.Payloads, t.keys.Leases}
	if t.byKey.Load() {
		hashes = append(hashes, t.keys.TimerKeys)
	}
	for i, hash := range hashes {
		done, err := t.sweepHash(ctx, hash, &t.sweep[i])
		if err != nil {
			return swept, fmt.Errorf("heal %q: %w", hash, err)
		}
		if done.held > 0 {
			swept.Held, swept.Of, swept.Key = done.held, done.stored, hash
			continue
		}
		swept.Removed += done.Orphans
	}
	return swept, nil
}

// sweepHash removes entries without a timer. Of payloads it counts them first: where others
// than the remains of ended timers are missing as well, the sizes of the keys do not show
// that timers were lost.
func (t *TimerSource) sweepHash(ctx context.Context, hash string, at *Sweep) (done Swept, err error) {
	if hash == t.keys.Payloads {
		look := *at
		counted, err := t.timers.sweep(ctx, t.keys, hash, &look, healEntries, "l")
		if err != nil || counted.Orphans == 0 {
			*at = look
			return counted, err
		}
		if layout.Excessive(int64(counted.Orphans), int64(counted.Examined)) {
			counted.held = counted.stored * int64(counted.Orphans) / int64(counted.Examined)
			return counted, nil
		}
	}
	return t.timers.Sweep(ctx, t.keys, hash, at, healEntries, true)
}

// Swept counts the entries that a part of a sweep examined and found without a
// timer.
type Swept struct {
	Examined, Orphans int

	held   int64 // payloads that stay, because timers were lost
	stored int64 // payloads
}

// Sweep looks for entries of a hash without a timer, and removes them if remove is
// true and they are not too many. It ends after limit entries or at the end of the hash,
// where it sets at to zero.
func (s *Timers) Sweep(ctx context.Context, keys TopicKeys, hash string, at *Sweep, limit int, remove bool) (done Swept, err error) {
	return s.sweep(ctx, keys, hash, at, limit, flag(remove))
}

// sweep is Sweep; remove is as in lua/heal.lua.
func (s *Timers) sweep(ctx context.Context, keys TopicKeys, hash string, at *Sweep, limit int, remove string) (done Swept, err error) {
	if at.Cursor == "" {
		*at = Sweep{Cursor: "0", page: healFirst}
	}
	for done.Examined < limit {
		list, err := s.RunList(ctx, 6, healScript, []string{keys.Timeline, keys.Payloads, hash}, at.Cursor, at.page, remove)
		if err != nil {
			return done, err
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return done, err
		}
		var n [5]int
		for i := range n {
			if n[i], err = strconv.Atoi(values[i+1]); err != nil {
				return done, fmt.Errorf("%w: %w", scripts.ErrReply, err)
			}
		}
		done.held, done.stored = int64(n[3]), int64(n[4])
		if done.held > 0 {
			return done, nil
		}
		done.Examined += max(n[0], 1)
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
