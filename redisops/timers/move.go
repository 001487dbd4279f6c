package timers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops"
)

// Reschedule gives a timer a new instant: at, or where that is zero in from
// Redis's now. It is a new timer with the payload of the old one: attempts are
// counted anew, a handler that runs is superseded and its payload is delivered
// again. The outcome is Moved or Superseded; [ErrNotFound] when there is no
// such timer.
func (s *Timers) Reschedule(ctx context.Context, topic, id string, at time.Time, in time.Duration) (Scheduled, error) {
	if err := checkTopic(topic); err != nil {
		return Scheduled{}, err
	}
	if err := checkID(id); err != nil {
		return Scheduled{}, err
	}
	if fault := (&Entry{At: at}).fault(); fault != "" {
		return Scheduled{}, fmt.Errorf("%w: %s", redisops.ErrInvalid, fault)
	}
	k := s.keys.of(topic)
	keys := []string{k.timeline, k.payloads, k.leases, k.hint, k.mark(id)}
	reply, err := s.RunText(ctx, rescheduleScript, keys, id, instantArg(at, in))
	switch {
	case err != nil:
		return Scheduled{}, fmt.Errorf("reschedule %q on %q: %w", id, topic, err)
	case reply == "":
		return Scheduled{}, fmt.Errorf("%w: %q on %q", redisops.ErrNotFound, id, topic)
	}
	return readScheduled(id, reply)
}

// RunNow makes a timer due now. One that waits for its next attempt keeps its
// activation and its attempts; for another, now is its activation. One that is
// due already or runs is not changed, and the answer says which: Pending or
// Running. [ErrNotFound] when there is no such timer.
func (s *Timers) RunNow(ctx context.Context, topic, id string) (Presence, error) {
	if err := checkTopic(topic); err != nil {
		return 0, err
	}
	if err := checkID(id); err != nil {
		return 0, err
	}
	k := s.keys.of(topic)
	reply, err := s.RunText(ctx, runNowScript, []string{k.timeline, k.payloads, k.leases, k.hint}, id)
	if err != nil {
		return 0, fmt.Errorf("run %q on %q now: %w", id, topic, err)
	}
	found := Presence(strings.Index(presenceLetters, reply) + 1)
	if found == Absent {
		return Absent, fmt.Errorf("%w: %q on %q", redisops.ErrNotFound, id, topic)
	}
	return found, nil
}
