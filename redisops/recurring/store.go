package recurring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ErrChanged reports that another process changed the recurring schedule meanwhile;
// nothing was written.
var ErrChanged = errors.New("the recurring schedule was changed meanwhile")

// ErrNoSchedule reports that no recurring schedule has this name. It wraps
// [wakebelltype.ErrNotFound].
var ErrNoSchedule error = noSchedule{}

type noSchedule struct{}

func (noSchedule) Error() string { return "recurring schedule not found" }
func (noSchedule) Unwrap() error { return wakebelltype.ErrNotFound }

// Store is the store of recurring schedules, under the keys of RedBeat. On a Cluster it
// may have parts; then calls that concern a schedule are made on the part of its name, and
// a beat works on each part.
type Store struct {
	shards *shards.Store
	timers *timers.Timers
	prefix string
	parts  []*Store     // nil: it has none
	spread atomic.Int32 // whether the server is a Cluster: 1 yes, -1 no, 0 not known yet
}

// New returns the store of recurring schedules on the Redis of s.
func New(s *shards.Store) *Store {
	b := &Store{shards: s, timers: s.Timers(), prefix: s.Timers().Keys().Beat}
	if _, clustered := b.rdb().(*redis.ClusterClient); clustered && !layout.HasTag(b.prefix) {
		b.divide()
	}
	return b
}

func (b *Store) schedule() string         { return b.prefix + ":schedule" }
func (b *Store) lock() string             { return b.prefix + ":lock" }
func (b *Store) hint() string             { return b.timers.Keys().Channel(b.prefix + ":hint") }
func (b *Store) entry(name string) string { return b.prefix + name }
func (b *Store) done(k *timers.Key) string {
	return b.prefix + ":wakebell-done:" + k.Suffix()
}
func (b *Store) nameOf(key string) string   { return strings.TrimPrefix(key, b.prefix) }
func (b *Store) ours(member string) bool    { return strings.HasPrefix(member, b.prefix) }
func (b *Store) rdb() redis.UniversalClient { return b.timers.RDB }

// again makes a call, with the retries of the store.
func (b *Store) again(ctx context.Context, call func() error) error {
	return b.timers.Again(ctx, func() error { return scripts.Wrap(ctx, nil, call()) })
}

// MaxName is the maximum length of the name of a recurring schedule, in bytes.
const MaxName = 400

func checkName(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return fmt.Errorf("%w: name: %d bytes, want 1 to %d", wakebelltype.ErrInvalid, len(name), MaxName)
	case strings.HasPrefix(name, ":"):
		return fmt.Errorf("%w: name: it begins with a colon, as the keys of the schedule itself", wakebelltype.ErrInvalid)
	}
	return nil
}

// Check verifies that Redis can store the schedules: in a Cluster all keys of a part must
// be in one slot. The error wraps [wakebelltype.ErrUnsupported].
func (b *Store) Check(ctx context.Context) error {
	if !b.clustered(ctx) {
		return nil
	}
	if b.parts != nil {
		return b.checkUndivided(ctx)
	}
	if layout.SlotOf(b.schedule()) != layout.SlotOf(b.entry("x")) {
		return fmt.Errorf("%w: a Cluster would spread the recurring schedules; give their keys a prefix with a hash tag, such as %q", wakebelltype.ErrUnsupported, "{redbeat}:")
	}
	return nil
}

// Shares reports whether one script may write the topic and the schedule: always,
// except in a Cluster where they are in different slots, as some shards of a topic and the
// parts of schedules are.
func (b *Store) Shares(ctx context.Context, topic string) bool {
	if b.parts != nil {
		return false // it depends on the name of the schedule
	}
	if l, err := b.shards.Map().Of(ctx, topic); (err != nil || !l.Plain()) && b.clustered(ctx) {
		return false
	}
	return layout.SlotOf(b.schedule()) == layout.SlotOf(b.timers.Keys().Of(topic).Timeline) || !b.clustered(ctx)
}

// clustered asks the server once and caches the answer.
func (b *Store) clustered(ctx context.Context) bool {
	if b.spread.Load() == 0 {
		answer := int32(-1)
		if b.timers.Clustered(ctx) {
			answer = 1
		}
		if ctx.Err() != nil {
			return answer == 1
		}
		b.spread.Store(answer)
	}
	return b.spread.Load() == 1
}

// Lock is the lock of a beat.
type Lock struct {
	Holder string // token of the holder; empty: the lock is free
	// Ends is when the lock expires unless it is renewed, in ms since 1970 by
	// Redis's clock; -1 means never.
	Ends int64
}

// dead formats a lock that a script is to ignore.
func (l Lock) dead() string {
	if l.Holder == "" {
		return ""
	}
	return l.Holder + " " + strconv.FormatInt(l.Ends, 10)
}

// Member is an entry's place in the schedule.
type Member struct {
	Name  string
	Score float64 // seconds since 1970, at or before the instant; -1: never
}

// Looked is the reply to Look.
type Looked struct {
	Now  time.Time // by Redis's clock
	Lock Lock
	Due  []Member // up to 1,000 within the horizon, in the order of their scores
	Page []Member // members of the requested ranks
}

// Look returns what is due within a horizon, starting at offset, and a page of the
// schedule by rank; a page of 0 returns none. With a token it takes the lock if it
// is free or already held with that token.
func (b *Store) Look(ctx context.Context, token string, horizon time.Duration, offset int, from, page int) (Looked, error) {
	last := from + page - 1
	if page == 0 {
		last = -1
	}
	list, err := b.timers.RunList(ctx, 4, lookScript, []string{b.schedule(), b.lock()},
		token, scripts.DelayText(horizon), offset, from, last)
	if err != nil {
		return Looked{}, fmt.Errorf("look at the schedule: %w", err)
	}
	values, err := scripts.Texts(list)
	if err != nil {
		return Looked{}, err
	}
	out, err := readLocked(values)
	if err != nil {
		return Looked{}, err
	}
	n, err := strconv.Atoi(values[3])
	if err != nil || len(values) < 4+2*n {
		return Looked{}, fmt.Errorf("%w: %q members", scripts.ErrReply, values[3])
	}
	if out.Due, err = b.members(values[4 : 4+2*n]); err == nil {
		out.Page, err = b.members(values[4+2*n:])
	}
	return out, err
}

// readLocked reads Redis's clock, the holder of the lock, and how long it holds it.
func readLocked(values []string) (Looked, error) {
	now, err := scripts.ReadScore(values[0])
	if err != nil {
		return Looked{}, err
	}
	left, err := strconv.ParseInt(values[2], 10, 64)
	if err != nil {
		return Looked{}, fmt.Errorf("%w: %q ms", scripts.ErrReply, values[2])
	}
	out := Looked{Now: scripts.Instant(now), Lock: Lock{Holder: values[1], Ends: -1}}
	if left >= 0 {
		out.Lock.Ends = out.Now.UnixMilli() + left
	}
	return out, nil
}

func (b *Store) members(values []string) ([]Member, error) {
	var all []Member
	for pair := range slices.Chunk(values, 2) {
		score, err := scripts.ReadScore(pair[len(pair)-1])
		if err != nil {
			return nil, err
		}
		if b.ours(pair[0]) {
			all = append(all, Member{b.nameOf(pair[0]), score})
		}
	}
	return all, nil
}

// Load reads entries; an absent entry has no definition.
func (b *Store) Load(ctx context.Context, names ...string) ([]recur.Raw, error) {
	out := make([]recur.Raw, 0, len(names))
	for part := range slices.Chunk(names, layout.BatchEntries) {
		cmds := make([]*redis.SliceCmd, len(part))
		err := b.again(ctx, func() error {
			pipe := b.rdb().Pipeline()
			for i, name := range part {
				cmds[i] = pipe.HMGet(ctx, b.of(name).entry(name), "definition", "meta", "wakebell")
			}
			_, err := pipe.Exec(ctx)
			return err
		})
		// One of several answers may be about a key that holds another type.
		if err != nil && !errors.Is(err, wakebelltype.ErrWrongType) {
			return nil, fmt.Errorf("load recurring schedules: %w", err)
		}
		for _, cmd := range cmds {
			var raw recur.Raw
			for i, field := range []*[]byte{&raw.Definition, &raw.Meta, &raw.Ours} {
				if values := cmd.Val(); len(values) == 3 && values[i] != nil {
					text, _ := values[i].(string)
					*field = []byte(text)
				}
			}
			if err := cmd.Err(); err != nil {
				raw.Definition = []byte("{}") // the entry exists but cannot be read
			}
			out = append(out, raw)
		}
	}
	return out, nil
}

// Names reads a page of the names of all entries, in no particular order, of a store
// without parts. Start with cursor 0; next is 0 after the last page. A name may occur
// twice.
func (b *Store) Names(ctx context.Context, cursor uint64) (all []Member, next uint64, err error) {
	var values []string
	err = b.again(ctx, func() (err error) {
		values, next, err = b.rdb().ZScan(ctx, b.schedule(), cursor, "", layout.ScanPage).Result()
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list recurring schedules: %w", err)
	}
	all, err = b.members(values)
	return all, next, err
}

// Put writes an entry if its bytes are still found, and notifies the beats. Score
// is that of the next instant. Errors wrap [ErrChanged] or [wakebelltype.ErrInvalid].
func (b *Store) Put(ctx context.Context, name string, found, raw recur.Raw, score int64) error {
	if err := checkName(name); err != nil {
		return err
	}
	b = b.of(name)
	reply, err := b.timers.RunText(ctx, putScript, []string{b.schedule(), b.entry(name)},
		b.entry(name), found.Definition, found.Meta, found.Ours, raw.Definition, raw.Meta, raw.Ours, score, b.hint())
	switch {
	case err != nil:
		return fmt.Errorf("put %q: %w", name, err)
	case reply == "changed":
		return fmt.Errorf("put %q: %w", name, ErrChanged)
	}
	return nil
}

// Delete removes an entry if its third field is still ours; found reports whether
// there was one. The error wraps [ErrChanged].
func (b *Store) Delete(ctx context.Context, name string, ours []byte) (found bool, err error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	b = b.of(name)
	reply, err := b.timers.RunText(ctx, deleteScript, []string{b.schedule(), b.entry(name)}, b.entry(name), ours)
	switch {
	case err != nil:
		return false, fmt.Errorf("delete %q: %w", name, err)
	case reply == "changed":
		return false, fmt.Errorf("delete %q: %w", name, ErrChanged)
	}
	return reply == "yes", nil
}

// Now returns the time of Redis's clock.
func (b *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := b.again(ctx, func() (err error) {
		now, err = b.rdb().Time(ctx).Result()
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	return now.UTC(), nil
}

// Listen calls deliver with the number of a part, from 0, when a Wakebell process changes
// an entry of it, and when the subscription is confirmed, until ctx ends. The error is
// ctx's or wraps [wakebelltype.ErrChannelDenied].
func (b *Store) Listen(ctx context.Context, deliver func(part int)) error {
	var channels []string
	parts := map[string]int{}
	for i, part := range b.Parts() {
		channels = append(channels, part.hint())
		parts[part.hint()] = i
	}
	return b.timers.Receive(ctx, channels,
		func(channel string) error { deliver(parts[channel]); return nil },
		func(channel, _ string) error { deliver(parts[channel]); return nil })
}
