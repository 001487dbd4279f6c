package timers

import (
	"context"
	"fmt"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// A cancel of a running timer leaves a mark of the run until its lease expires, by which
// the run is notified even if the id has been scheduled again. The exchange itself does not
// read the marks: leases of replaced timers are rare, and a second call then costs the
// others nothing. See lua/cancelled.lua.

// marks returns the key of the marks for scripts that also run for a user without a right
// to it: such a script gets the timeline in its place, and marks nothing.
func (s *Timers) marks(k TopicKeys) string {
	if s.unmarked.Load() {
		return k.Timeline
	}
	return k.Cancelled()
}

// orUnmarked calls a function, and again if the user has no right to the marks or to the
// keys of orderKeys.
func (s *Timers) orUnmarked(call func() error) error {
	return orWithout(&s.unmarked, func() error { return s.orKeyless(call) })
}

// findCancelled replaces Superseded by Cancelled where a run was cancelled before its id
// was scheduled again. After an error the exchange is to be sent again, and is answered
// again.
func (t *TimerSource) findCancelled(ctx context.Context, r *exchange.Request, reply *exchange.Reply) error {
	var at []int // in reply.Refused
	var args []any
	for i := range reply.Refused {
		if reply.Refused[i].Reason != exchange.Superseded {
			continue
		}
		h := heldOf(r, reply.Refused[i].Index)
		if h == nil {
			continue
		}
		granted := ""
		if !h.Granted.IsZero() {
			granted = scripts.ScoreText(h.Granted)
		}
		at, args = append(at, i), append(args, h.ID, string(h.Token), granted)
	}
	if len(at) == 0 {
		return nil
	}
	found, err := t.timers.RunText(ctx, cancelledRunsScript, []string{t.keys.Cancelled()}, args...)
	if err != nil {
		return err
	}
	if len(found) != len(at) {
		return fmt.Errorf("%w: %d answers for %d runs", scripts.ErrReply, len(found), len(at))
	}
	for k, i := range at {
		if found[k] == '1' {
			reply.Refused[i].Reason = exchange.Cancelled
		}
	}
	return nil
}

// heldOf returns the lease of a request that a refusal is about, or nil.
func heldOf(r *exchange.Request, index int) *exchange.Held {
	switch n := len(r.Settle); {
	case index < 0 || index >= n+len(r.Extend):
		return nil
	case index < n:
		return &r.Settle[index].Held
	default:
		return &r.Extend[index-n]
	}
}
