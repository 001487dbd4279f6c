package timers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// presenceCodes has the code of lua/cancel.lua and lua/run_now.lua for each
// Presence, in their order.
const presenceCodes = "apr"

// Cancel removes timers, at most 200 in a round trip, and returns what it found for
// each id, in the order of ids. A timer that a Python peer handles is reported as
// PresencePending. If a later round trip fails, Cancel returns the results of the
// earlier ones with the error.
func (s *Timers) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error) {
	return s.CancelKeyed(ctx, topic, nil, ids...)
}

// CancelKeyed is Cancel with an idempotency key; nil means none.
func (s *Timers) CancelKeyed(ctx context.Context, topic string, key *Key, ids ...string) ([]wakebelltype.Presence, error) {
	return s.WithFence(nil).CancelKeyed(ctx, topic, key, ids...)
}

// CancelKeyed is [Timers.CancelKeyed] behind the fence. After an error it returns the results
// of the earlier round trips.
func (s Fenced) CancelKeyed(ctx context.Context, topic string, key *Key, ids ...string) ([]wakebelltype.Presence, error) {
	found, err := s.cancel(ctx, topic, key, true, ids)
	if at := slices.Index(found, 0); at >= 0 {
		found = found[:at]
	}
	return found, err
}

// CancelFound is CancelKeyed for ids whose timers may be in another topic: it stores no
// answer for those that it does not find, and returns 0 for them.
func (s Fenced) CancelFound(ctx context.Context, topic string, key *Key, ids ...string) ([]wakebelltype.Presence, error) {
	return s.cancel(ctx, topic, key, false, ids)
}

// cancel cancels timers, and returns what it found for each of ids; 0 for those that it did
// not ask for, and for those that are absent unless it is final that they are.
func (s Fenced) cancel(ctx context.Context, topic string, key *Key, final bool, ids []string) ([]wakebelltype.Presence, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return nil, err
	}
	found := make([]wakebelltype.Presence, len(ids))
	for first := 0; first < len(ids); first += layout.CostlyEntries {
		end := min(first+layout.CostlyEntries, len(ids))
		if err := s.cancelPart(ctx, topic, key.after(first), final, ids[first:end], found[first:end]); err != nil {
			return found, fmt.Errorf("cancel on %q: %w", topic, err)
		}
	}
	return found, nil
}

// cancelPart cancels the timers of one round trip, of two if some have an answer already.
func (s Fenced) cancelPart(ctx context.Context, topic string, key *Key, final bool, ids []string, found []wakebelltype.Presence) error {
	var reply string
	err := s.orUnmarked(func() (err error) {
		reply, err = s.cancelOnce(ctx, topic, key, final, ids)
		return err
	})
	if err != nil {
		return err
	}
	answers, some, err := cutKnown(reply, len(ids))
	switch {
	case some && err == nil:
		return s.cancelRest(ctx, topic, key, final, ids, answers, found)
	case err == nil && len(reply) != len(ids):
		err = fmt.Errorf("%w: %d answers for %d ids", scripts.ErrReply, len(reply), len(ids))
	}
	if err != nil {
		return err
	}
	for i := range ids {
		if p := presenceOf(reply[i : i+1]); final || p != wakebelltype.PresenceAbsent {
			found[i] = p
		}
	}
	return nil
}

// cancelRest cancels those of ids that have no answer, after Redis has returned those of the
// others.
func (s Fenced) cancelRest(ctx context.Context, topic string, key *Key, final bool, ids, answers []string, found []wakebelltype.Presence) error {
	var rest []string
	var places []int
	for i, answer := range answers {
		if answer != "" {
			found[i] = presenceOf(answer)
		} else {
			rest, places = append(rest, ids[i]), append(places, i)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	part := make([]wakebelltype.Presence, len(rest))
	err := s.cancelPart(ctx, topic, key, final, rest, part)
	for i, at := range places {
		found[at] = part[i]
	}
	return err
}

// presenceOf reads a code of presenceCodes.
func presenceOf(code string) wakebelltype.Presence {
	return wakebelltype.Presence(strings.Index(presenceCodes, code) + 1)
}

// cancelOnce runs lua/cancel.lua.
func (s Fenced) cancelOnce(ctx context.Context, topic string, key *Key, final bool, ids []string) (reply string, err error) {
	args := make([]any, len(ids))
	for i := range ids {
		args[i] = &ids[i]
	}
	k := s.keys.Of(topic)
	keys := append([]string{k.Timeline, k.Payloads, k.Leases, k.Hint, s.marks(k)}, s.orderKeys(k)...)
	err = s.orUnfenced(s.fence, func(f *Fence) error {
		script := cancelScript
		keys, args := scripts.WithGuards(f.Guards(s.keys, topic), keys, args)
		if key != nil {
			script, keys, args = key.around(script, f, k, keys, args, len(ids), func(i int) *string { return &ids[i] }, final)
		}
		reply, err = s.RunText(ctx, script, keys, args...)
		return err
	})
	return reply, err
}

// CancelAll removes every timer of the topic and returns their number. Dead letters
// stay.
func (s *Timers) CancelAll(ctx context.Context, topic string) (int64, error) {
	return s.WithFence(nil).CancelAll(ctx, topic)
}

// CancelAll is [Timers.CancelAll] behind the fence.
func (s Fenced) CancelAll(ctx context.Context, topic string) (int64, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return 0, err
	}
	k := s.keys.Of(topic)
	var reply string
	err := s.orUnmarked(func() (err error) {
		reply, err = s.runText(ctx, cancelAllScript, topic, append([]string{k.Timeline, k.Payloads, k.Leases, k.Hint, s.marks(k)}, s.orderKeys(k)...))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cancel all on %q: %w", topic, err)
	}
	return strconv.ParseInt(reply, 10, 64)
}

// Reschedule sets a new instant for a timer: at, or, if at is zero, Redis's now
// plus in. The result is a new timer with the payload of the old one: attempts are
// counted from zero, and a running handler is superseded and its payload delivered
// again. The outcome is OutcomeMoved or OutcomeSuperseded. The error wraps
// [wakebelltype.ErrNotFound] if there is no such timer.
func (s *Timers) Reschedule(ctx context.Context, topic, id string, at time.Time, in time.Duration) (wakebelltype.Scheduled, error) {
	return s.WithFence(nil).Reschedule(ctx, topic, id, at, in)
}

// Reschedule is [Timers.Reschedule] behind the fence.
func (s Fenced) Reschedule(ctx context.Context, topic, id string, at time.Time, in time.Duration) (wakebelltype.Scheduled, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.Scheduled{}, err
	}
	if err := layout.CheckID(id); err != nil {
		return wakebelltype.Scheduled{}, err
	}
	if fault := (&Entry{At: at}).fault(); fault != "" {
		return wakebelltype.Scheduled{}, fmt.Errorf("%w: %s", wakebelltype.ErrInvalid, fault)
	}
	k := s.keys.Of(topic)
	var reply string
	err := s.orKeyless(func() (err error) {
		keys := append([]string{k.Timeline, k.Payloads, k.Leases, k.Hint, k.Mark(id)}, s.orderKeys(k)...)
		reply, err = s.runText(ctx, rescheduleScript, topic, keys, id, instantArg(at, in))
		return err
	})
	switch {
	case err != nil:
		return wakebelltype.Scheduled{}, fmt.Errorf("reschedule %q on %q: %w", id, topic, err)
	case reply == "":
		return wakebelltype.Scheduled{}, fmt.Errorf("%w: %q on %q", wakebelltype.ErrNotFound, id, topic)
	}
	out, err := readScheduled([]Entry{{ID: id}}, reply+"\n", 0)
	if err != nil {
		return wakebelltype.Scheduled{}, err
	}
	return out[0], nil
}

// RunNow makes a timer due now. A timer that waits for a retry keeps its activation
// and its attempts; any other timer gets now as its activation. A timer that is
// already due or running does not change. The result is PresencePending or
// PresenceRunning. The error wraps [wakebelltype.ErrNotFound] if there is no such timer.
func (s *Timers) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	return s.WithFence(nil).RunNow(ctx, topic, id)
}

// RunNow is [Timers.RunNow] behind the fence.
func (s Fenced) RunNow(ctx context.Context, topic, id string) (wakebelltype.Presence, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return 0, err
	}
	if err := layout.CheckID(id); err != nil {
		return 0, err
	}
	k := s.keys.Of(topic)
	var reply string
	err := s.orKeyless(func() (err error) {
		reply, err = s.runText(ctx, runNowScript, topic, append([]string{k.Timeline, k.Payloads, k.Leases, k.Hint}, s.orderKeys(k)...), id)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("run %q on %q now: %w", id, topic, err)
	}
	found := wakebelltype.Presence(strings.Index(presenceCodes, reply) + 1)
	if found == wakebelltype.PresenceAbsent {
		return wakebelltype.PresenceAbsent, fmt.Errorf("%w: %q on %q", wakebelltype.ErrNotFound, id, topic)
	}
	return found, nil
}

// Swap replaces the payload of a timer behind the fence, if it is still the old one, and
// reports whether it was. The error wraps [wakebelltype.ErrNotFound] if there is no such timer.
func (s Fenced) Swap(ctx context.Context, topic, id string, old, payload []byte) (bool, error) {
	k := s.keys.Of(topic)
	reply, err := s.runText(ctx, swapScript, topic, []string{k.Timeline, k.Payloads}, id, old, payload)
	if err != nil {
		return false, fmt.Errorf("replace the payload of %q on %q: %w", id, topic, err)
	}
	if reply == "a" {
		return false, fmt.Errorf("%w: %q on %q", wakebelltype.ErrNotFound, id, topic)
	}
	return reply == "s", nil
}
