package timers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
)

// Order and concurrency per key: timers with a key are ordered by lua/keys.lua, and
// lua/due_keys.lua bounds how many of a key an exchange claims. See
// docs/decisions/0023-keys.md.

// MaxKey is the maximum length of the key of a timer in bytes.
const MaxKey = 512

const (
	// parkedScore is the score of a due timer that waits for its key, as in lua/keys.lua.
	parkedScore = 253402300800
	placeBytes  = 34 // of an entry before the key, as in lua/keys.lua
	instantSize = 18 // bytes of the instant at the start of a place

	// tokenLateness is by how much a timer may wait for longer than for the next token of
	// its key, as in lua/flow_key_rate.lua, and some more.
	tokenLateness = 100 * time.Millisecond

	sweepPage = 100 // keys that one step of SweepKeys examines
)

// order returns the keys in which lua/keys.lua stores the order.
func (t TopicKeys) order() []string { return []string{t.TimerKeys, t.KeyOrder, t.KeyStates} }

// orderKeys returns the same for scripts that also run for a user without a right to
// them: such a script gets keys of the same type in their place, which have no entry.
func (s *Timers) orderKeys(k TopicKeys) []string {
	if s.keyless.Load() {
		return []string{k.Leases, k.Timeline, k.Leases}
	}
	return k.order()
}

// orKeyless calls a function, and again if the user has no right to the keys of
// orderKeys. The timers of such a user have no keys.
func (s *Timers) orKeyless(call func() error) error { return orWithout(&s.keyless, call) }

// orWithout calls a function, and if a right is missing again with a flag that says so.
// The flag stays if that helps.
func orWithout(missing *atomic.Bool, call func() error) error {
	err := call()
	if !scripts.IsDenied(err) || !missing.CompareAndSwap(false, true) {
		return err
	}
	if again := call(); !scripts.IsDenied(again) {
		return again
	}
	missing.Store(false)
	return err
}

// byKeyText is the argument of lua/flow_keys.lua, lua/flow_key_rate.lua and lua/fair_turns.lua.
func (t *TimerSource) byKeyText(r *exchange.Request) string {
	f, skips := r.Flow, " 0"
	if t.opts.SkipFailed {
		skips = " 1"
	}
	text := strconv.Itoa(f.PerKey)
	if r.KeyRun > 1 {
		text += "," + strconv.Itoa(r.KeyRun)
	}
	text += skips
	if f.Fair() {
		text += " f" + strconv.Itoa(f.FairKeys) + "," + t.opts.KeyWeights
	}
	if f.KeyRateLimit > 0 {
		text += fmt.Sprintf(" %d %d %d", f.KeyRateLimit, f.KeyRatePer.Microseconds(), cmp.Or(f.KeyRateBurst, f.KeyRateLimit))
	}
	return text
}

// readKey reads the entry of a timer with a key; the key is empty if there is none.
func readKey(entry string) (instant time.Time, key string) {
	if len(entry) <= placeBytes {
		return time.Time{}, ""
	}
	micros, err := strconv.ParseInt(entry[:instantSize], 10, 64)
	if err != nil || micros > math.MaxInt64/2 {
		return time.Time{}, ""
	}
	return time.UnixMicro(micros).UTC(), entry[placeBytes:]
}

// ByKey reports whether timers of the topic had keys at the last SweepKeys.
func (t *TimerSource) ByKey() bool { return t.byKey.Load() }

// SweepKeys notes whether timers of the topic have keys. If they have, it frees the keys
// whose holders are gone without a settlement, as after a peer has removed them, and
// wakes the timers that wait for them, and those that wait for a token for longer than the
// flow control in force lets them. It finds every timer that is parked and may run, also
// if what is stored of its key was lost. Call it when the source is started, after a change
// of flow, and about every minute.
func (t *TimerSource) SweepKeys(ctx context.Context, flow exchange.Flow) error {
	if err := layout.CheckTopic(t.topic); err != nil {
		return err
	}
	found, err := t.findKeys(ctx)
	if scripts.IsDenied(err) && !flow.ByKey() { // the timers of such a user have no keys
		return nil
	}
	if err != nil {
		return fmt.Errorf("look after the keys of timers on %q: %w", t.topic, err)
	}
	t.byKey.Store(found)
	if !found {
		return nil
	}
	limit, longest := flow.PerKey, time.Duration(0)
	if flow.KeyRateLimit > 0 {
		limit, longest = cmp.Or(limit, 1), flow.KeyRatePer/time.Duration(flow.KeyRateLimit)+tokenLateness
	}
	keys := append([]string{t.keys().Timeline, t.keys().Leases, t.keys().Hint}, t.keys().order()...)
	keys = append(keys, t.keys().swept(), t.keys().Payloads)
	moves, err := t.moves(ctx)
	if err != nil {
		return fmt.Errorf("look after the keys of timers on %q: %w", t.topic, err)
	}
	opens := 1
	if moves {
		opens = 0
	}
	script := sweepKeysScript
	if flow.Fair() {
		script = sweepFairScript
	}
	for cursor := "0"; ; {
		list, err := t.timers.RunList(ctx, 2, script, keys, cursor, sweepPage, limit, longest.Microseconds(), opens)
		if err != nil {
			return fmt.Errorf("look after the keys of timers on %q: %w", t.topic, err)
		}
		values, err := scripts.Texts(list)
		if err != nil {
			return err
		}
		if cursor = values[0]; cursor == "0" {
			return nil
		}
	}
}

// moves reports whether timers of the topic move to other shards: then the nodes finish
// what a process has left behind, and no sweep opens a key. A user without a right to
// layouts has no shards.
func (t *TimerSource) moves(ctx context.Context) (moves bool, err error) {
	err = t.timers.Again(ctx, func() error {
		text, err := t.timers.RDB.Get(ctx, t.keys().Layout()).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err = scripts.Wrap(ctx, []string{t.keys().Layout()}, err); scripts.IsDenied(err) {
			return nil
		}
		_, of, _ := strings.Cut(text, " ")
		l, _ := sharding.Read(of) // of an earlier version, if it cannot be read
		moves = l.Moves()
		return err
	})
	return moves, err
}

// findKeys reports whether something is stored of the keys of timers, or a timer is parked.
func (t *TimerSource) findKeys(ctx context.Context) (found bool, err error) {
	parked := strconv.Itoa(parkedScore)
	err = t.timers.Again(ctx, func() error {
		pipe := t.timers.RDB.Pipeline()
		exist, waiting := pipe.Exists(ctx, t.keys().TimerKeys, t.keys().KeyStates), pipe.ZCount(ctx, t.keys().Timeline, parked, parked)
		_, err := pipe.Exec(ctx)
		found = exist.Val() > 0 || waiting.Val() > 0
		return scripts.Wrap(ctx, []string{t.keys().TimerKeys}, err)
	})
	return found, err
}
