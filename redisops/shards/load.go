package shards

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
)

// putGroup is the timers of one physical topic that a call of the script stores.
type putGroup struct {
	name   string
	list   []timers.Stored
	places []int // their indexes in the list of the caller
}

// Put stores timers of a topic where they belong, and reports for each whether one with
// its id existed; see [timers.Timers.Put]. The error wraps [redisops.ErrInvalid] while
// timers of the topic are moved.
func (s *Store) Put(ctx context.Context, topic string, mode timers.PutMode, list []timers.Stored) (existed []bool, err error) {
	return routed(ctx, s, topic, func(l sharding.Layout) ([]bool, error) { return s.putRouted(ctx, l, topic, mode, list) })
}

func (s *Store) putRouted(ctx context.Context, l sharding.Layout, topic string, mode timers.PutMode, list []timers.Stored) (existed []bool, err error) {
	if l.Moves() {
		return nil, s.waitsFor(ctx, topic, fmt.Sprintf("its timers are being moved to %d shards; finish that first", l.Count()))
	}
	if l.Shards > 0 && !l.Keyed && mode != timers.PutTry && slices.ContainsFunc(list, func(t timers.Stored) bool { return t.Key != "" }) {
		if err := s.markKeyed(ctx, topic); err != nil {
			return nil, err
		}
	}
	existed = make([]bool, len(list))
	for _, round := range putRounds(topic, l, list) {
		groups := map[string]putGroup{}
		for _, g := range round {
			groups[g.name] = g
		}
		names := slices.Sorted(maps.Keys(groups))
		answers, err := each(ctx, names, func(ctx context.Context, name string) ([]bool, error) {
			return s.at(l).Put(ctx, name, mode, groups[name].list)
		})
		if err != nil {
			return nil, err
		}
		for i, name := range names {
			for j, place := range groups[name].places {
				existed[place] = answers[i][j]
			}
		}
	}
	return existed, nil
}

// putRounds divides timers into calls of the script: those of a round are of different
// physical topics. An id that occurs again is in a later round.
func putRounds(topic string, l sharding.Layout, list []timers.Stored) (rounds []map[string]putGroup) {
	at := map[string]int{} // the round that each physical topic is in
	bytes := map[string]int{}
	ids := map[string]map[string]bool{}
	for i, t := range list {
		name := l.Shard(topic, t.ID, t.Key)
		if ids[name] == nil {
			ids[name] = map[string]bool{}
		}
		bytes[name] += len(t.Payload)
		if n := len(ids[name]); n > 0 && (n == layout.BatchEntries || bytes[name] > layout.BatchBytes || ids[name][t.ID]) {
			at[name]++
			bytes[name], ids[name] = len(t.Payload), map[string]bool{}
		}
		ids[name][t.ID] = true
		for len(rounds) <= at[name] {
			rounds = append(rounds, map[string]putGroup{})
		}
		g := rounds[at[name]][name]
		g.name, g.list, g.places = name, append(g.list, t), append(g.places, i)
		rounds[at[name]][name] = g
	}
	return rounds
}

// PutMark stores the mark of an id, unless there is one or its window is over, and reports
// whether it did.
func (s *Store) PutMark(ctx context.Context, topic string, m Mark) (stored bool, err error) {
	l, err := s.layout(ctx, topic)
	if err != nil {
		return false, err
	}
	now, err := s.now(ctx)
	if err != nil || !m.Expires.After(now) {
		return false, err
	}
	text := scripts.ScoreText(m.Due) + " " + strconv.FormatInt(m.Window.Microseconds(), 10)
	if m.Keyed {
		text += " k"
	}
	for _, name := range markedIn(l, topic, m.ID, m.Keyed) {
		key := s.timers.Keys().Of(name).Mark(m.ID)
		err := s.timers.Again(ctx, func() error {
			set, err := s.timers.RDB.SetNX(ctx, key, text, max(m.Expires.Sub(now), time.Millisecond)).Result()
			stored = stored || set
			return scripts.Wrap(ctx, []string{key}, err)
		})
		if err != nil {
			return stored, fmt.Errorf("store the mark of %q in %q: %w", m.ID, name, err)
		}
	}
	return stored, nil
}

// DeadSet is the dead letters that a topic has, as hashes of 8 bytes.
type DeadSet map[uint64]struct{}

var deadSeed = maphash.MakeSeed()

// Add adds a dead letter, and reports whether one that is equal but for its place was
// there.
func (d DeadSet) Add(letter timers.DeadLetter) bool {
	var h maphash.Hash
	h.SetSeed(deadSeed)
	for _, field := range deadFields(letter) {
		maphash.WriteComparable(&h, field)
	}
	_, known := d[h.Sum64()]
	d[h.Sum64()] = struct{}{}
	return known
}

// DeadSet reads the dead letters of a topic.
func (s *Store) DeadSet(ctx context.Context, topic string) (DeadSet, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return nil, err
	}
	set := DeadSet{}
	d := &Dump{store: s, names: names}
	for letter, err := range d.EachDead(ctx) {
		if err != nil {
			return nil, err
		}
		set.Add(letter)
	}
	return set, nil
}

// deadFields are the fields of a dead letter and their values, as lua/exchange.lua writes
// them.
func deadFields(d timers.DeadLetter) []string {
	fields := []string{
		"id", d.ID, "claims", strconv.Itoa(d.Claims), "failures", strconv.Itoa(d.Failures), "reason", d.Reason,
		"activation", scripts.ScoreText(d.Activation), "at", scripts.ScoreText(d.At),
	}
	if d.Key != "" {
		fields = append(fields, "key", d.Key)
	}
	if d.Payload != nil {
		fields = append(fields, "payload", string(d.Payload))
	}
	return fields
}

// PutDead stores dead letters, each as the newest of its shard. After an error some of
// them may be stored.
func (s *Store) PutDead(ctx context.Context, topic string, letters []timers.DeadLetter) error {
	for len(letters) > 0 {
		var items [][]string
		for bytes := 0; len(letters) > 0 && len(items) < movePage && bytes < moveBytes; letters = letters[1:] {
			items = append(items, deadFields(letters[0]))
			bytes += len(letters[0].Payload)
		}
		token := "put " + rand.Text() // so that a call whose answer was lost can be repeated
		_, err := routed(ctx, s, topic, func(l sharding.Layout) (bool, error) {
			for len(items) > 0 { // those of one shard after the other: what is stored is not stored again elsewhere
				name := deadPlace(topic, l, items[0])
				dead := content{kind: ofDead, items: items}
				parts, _ := s.spread(topic, l, dead)
				if _, err := s.toShards(topic, l).arrive(ctx, dead, name, token, parts[name]); err != nil {
					return false, err
				}
				items = slices.DeleteFunc(items, func(item []string) bool { return deadPlace(topic, l, item) == name })
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deadPlace returns the physical topic in which a dead letter belongs.
func deadPlace(topic string, l sharding.Layout, item []string) string {
	return l.Shard(topic, fieldOf(item, "id"), fieldOf(item, "key"))
}

// Unused reports whether a topic has no timers and no dead letters.
func (s *Store) Unused(ctx context.Context, topic string) (bool, error) {
	names, err := s.all(ctx, topic)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if used, err := s.used(ctx, name); used || err != nil {
			return false, err
		}
	}
	return true, nil
}
