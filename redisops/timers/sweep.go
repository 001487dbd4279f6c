package timers

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
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
	hashes := []string{t.keys().Payloads, t.keys().Leases}
	if t.byKey.Load() {
		hashes = append(hashes, t.keys().TimerKeys)
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
	if hash == t.keys().Payloads {
		look := *at
		counted, err := t.timers.sweep(ctx, *t.keys(), hash, &look, healEntries, "l")
		if err != nil || counted.Orphans == 0 {
			*at = look
			return counted, err
		}
		if layout.Excessive(int64(counted.Orphans), int64(counted.Examined)) {
			counted.held = counted.stored * int64(counted.Orphans) / int64(counted.Examined)
			return counted, nil
		}
	}
	return t.timers.Sweep(ctx, *t.keys(), hash, at, healEntries, true)
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
		reply, err := s.Run(ctx, healScript, []string{keys.Timeline, keys.Payloads, hash}, at.Cursor, at.page, remove)
		ended, err := done.add(at, reply, err)
		if ended || err != nil {
			return done, err
		}
	}
	return done, nil
}

// add adds the reply of a page, after which at is the next one. It reports whether it was
// the last page, and sets at to zero at the end of the hash.
func (done *Swept) add(at *Sweep, reply any, err error) (ended bool, _ error) {
	values, err := scripts.AsTexts(6, reply, err)
	if err != nil {
		return false, err
	}
	var n [5]int
	for i := range n {
		if n[i], err = strconv.Atoi(values[i+1]); err != nil {
			return false, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
	}
	done.held, done.stored = int64(n[3]), int64(n[4])
	if done.held > 0 {
		return true, nil
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
		return true, nil
	}
	return false, nil
}

// Scan counts the entries of a hash that have no timer, for CountOrphans.
type Scan struct {
	Keys TopicKeys
	Hash string

	Swept
	Ended bool // all entries were examined
	Err   error

	at Sweep
}

// CountOrphans looks for entries without a timer in several hashes, at most about 400, with a
// pipeline for a page of each. It examines about limit entries of each, and writes nothing.
func (s *Timers) CountOrphans(ctx context.Context, limit int, scans ...*Scan) {
	for _, c := range scans {
		c.at = Sweep{Cursor: "0", page: healFirst}
	}
	for {
		var left []*Scan
		var calls []scripts.Call
		for _, c := range scans {
			if c.Err == nil && !c.Ended && c.Examined < limit {
				left = append(left, c)
				page := min(c.at.page, max(1, limit-c.Examined))
				calls = append(calls, scripts.Call{Script: healScript, Keys: []string{c.Keys.Timeline, c.Keys.Payloads, c.Hash}, Args: []any{c.at.Cursor, page, "0"}})
			}
		}
		if len(left) == 0 {
			return
		}
		replies, errs := s.RunMany(ctx, calls)
		for i, c := range left {
			c.Ended, c.Err = c.add(&c.at, replies[i], errs[i])
		}
	}
}

const (
	repairFirst = 16  // entries of the first page of a repair: payloads may be large
	repairMost  = 128 // entries of a page, when payloads turn out small
)

// Repair is [Fenced.Repair] without a fence.
func (s *Timers) Repair(ctx context.Context, topic string, o wakebelltype.RepairOptions) (wakebelltype.Repaired, error) {
	return s.WithFence(nil).Repair(ctx, topic, o)
}

// Repair gives payloads without a timer their timers back, counts timers without a payload
// or dead-letters them, and removes lease records and keys of timers that have neither. It
// works in steps of at most about 128 entries, while nodes and clients use the topic; a step
// whose answer was lost is counted by its second one. After an error it returns what it has
// done, and another call continues. It writes nothing without o.Apply.
func (s Fenced) Repair(ctx context.Context, topic string, o wakebelltype.RepairOptions) (done wakebelltype.Repaired, err error) {
	if err := layout.CheckTopic(topic); err != nil {
		return done, err
	}
	for _, part := range []func(context.Context, string, wakebelltype.RepairOptions, *wakebelltype.Repaired) error{s.restore, s.dropMissing, s.clean} {
		if err = part(ctx, topic, o, &done); err != nil {
			return done, fmt.Errorf("repair %q: %w", topic, err)
		}
	}
	if o.Apply && done.Restored > 0 {
		s.Remember(ctx, topic)
	}
	return done, nil
}

// restore gives payloads their timers back.
func (s Fenced) restore(ctx context.Context, topic string, o wakebelltype.RepairOptions, done *wakebelltype.Repaired) error {
	k, at := s.keys.Of(topic), ""
	if !o.At.IsZero() {
		at = scripts.ScoreText(o.At)
	}
	for cursor, page := "0", repairFirst; ; {
		values, n, err := s.step(ctx, restoreScript, topic, []string{k.Timeline, k.Payloads, k.Leases, k.Hint}, cursor, page, at, flag(o.Apply))
		if err != nil {
			return err
		}
		done.Examined += n[0]
		done.Restored += n[2]
		done.Known += n[3]
		if page = min(repairMost, page*2); n[1] > healPageSize {
			page = max(1, page/4)
		}
		if cursor = values[0]; cursor == "0" {
			return nil
		}
	}
}

// dropMissing looks for timers without a payload. A server whose scans go by places passes
// over some while others are removed, so it looks again until it has removed none.
func (s Fenced) dropMissing(ctx context.Context, topic string, o wakebelltype.RepairOptions, done *wakebelltype.Repaired) error {
	k, writes := s.keys.Of(topic), o.Apply && o.DropMissing
	keys := []string{k.Timeline, k.Payloads, k.Leases, k.Dead, k.Hint}
	for first, dropped := true, int64(1); dropped > 0 && (first || writes); first = false {
		dropped = 0
		for cursor, more := "0", true; more; more = cursor != "0" {
			values, n, err := s.step(ctx, dropMissingScript, topic, keys, cursor, repairMost, flag(writes))
			if err != nil {
				return err
			}
			cursor = values[0]
			dropped += n[2]
			if !first {
				n[0], n[1] = 0, n[2] // the others are counted
			}
			done.Examined += n[0]
			done.Missing += n[1]
			if o.DropMissing {
				done.Dropped += n[2]
			}
		}
	}
	return nil
}

// step runs one step of a repair, and returns the values of its answer: the cursor, and the
// numbers behind it.
func (s Fenced) step(ctx context.Context, script *redis.Script, topic string, keys []string, args ...any) (values []string, n []int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	var list []any
	err = s.orKeyless(func() error {
		return s.orUnfenced(s.fence, func(f *Fence) (err error) {
			keys, args := scripts.WithGuards(f.Guards(s.keys, topic), append(keys[:len(keys):len(keys)], s.orderKeys(s.keys.Of(topic))...), args[:len(args):len(args)])
			list, err = s.RunList(ctx, 4, script, keys, args...)
			return err
		})
	})
	if err != nil {
		return nil, nil, err
	}
	if values, err = scripts.Texts(list); err != nil {
		return nil, nil, err
	}
	n = make([]int64, len(values)-1)
	for i := range n {
		if n[i], err = strconv.ParseInt(values[i+1], 10, 64); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", scripts.ErrReply, err)
		}
	}
	return values, n, nil
}

// clean removes lease records and keys of timers that have neither timer nor payload.
func (s Fenced) clean(ctx context.Context, topic string, o wakebelltype.RepairOptions, done *wakebelltype.Repaired) error {
	k := s.keys.Of(topic)
	hashes := []string{k.Leases}
	if !s.keyless.Load() {
		hashes = append(hashes, k.TimerKeys)
	}
	for _, hash := range hashes {
		swept, err := s.Sweep(ctx, k, hash, &Sweep{}, math.MaxInt, o.Apply)
		done.Examined += int64(swept.Examined)
		done.Removed += int64(swept.Orphans)
		if err != nil {
			return err
		}
	}
	return nil
}

// flag is the argument of a script that is true or false.
func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
