package timers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// KeyLife is how long Redis stores the answer to a call with an idempotency key.
const KeyLife = sharding.AnswerLife

// Key is an idempotency key: for KeyLife, the same call with the same key in the
// topic is not executed again but answered with the first result.
type Key struct {
	name string // hash of the owner and the key
	call string // hash of the call's content
	at   int    // index of the first item of this round trip, for a call of several round trips

	brief bool // the key serves a single call, which is not repeated later
	each  bool // each item has an answer of its own, in all topics
}

// NewKey returns the key of an owner for a call. Content distinguishes the call
// from other calls with the same key.
func NewKey(owner, key string, content []byte) *Key {
	call := sha256.Sum256(content)
	return &Key{name: hash(owner + "\x00" + key), call: hex.EncodeToString(call[:16])}
}

// NewCallKey returns a key for a single call: it takes effect once, however often
// its commands are sent during the call.
func NewCallKey() *Key {
	key := NewKey("", uuid.NewString(), nil)
	key.brief = true
	return key
}

// Life returns how long Redis stores the key: longer than the call may be retried.
func (k *Key) Life(ctx context.Context, r redisops.Retry) time.Duration {
	if !k.brief {
		return KeyLife
	}
	return min(max(10*time.Minute, r.Budget(ctx)+time.Minute), KeyLife)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ID returns an id for a timer without one: the same in every call with the key.
func (k *Key) ID() string { return hash(k.name + k.call)[:32] }

// Name returns a name for something of a call: the same in every call with the key.
func (k *Key) Name(of string) string { return hash(k.name + "\x00" + of)[:32] }

// Number returns the key from which ID derives the id of the n-th item of a call.
func (k *Key) Number(n int) *Key {
	if k == nil {
		return nil
	}
	return &Key{name: k.name, call: k.call + strconv.Itoa(n)}
}

// Part returns the key of the part of a call that begins with its n-th item. Each part takes
// effect by itself.
func (k *Key) Part(n int) *Key {
	part := *k
	part.at = n
	return &part
}

// Each returns the key for a call that stores an answer for each of its timers, so that
// [Fenced.RecallWrite] finds them, even if others are sent with them; nil for nil.
func (k *Key) Each() *Key {
	if k == nil {
		return nil
	}
	each := *k
	each.each = true
	return &each
}

// after returns the key of the round trip that begins n items after the first of k.
func (k *Key) after(n int) *Key {
	if k == nil {
		return nil
	}
	return k.Part(k.at + n)
}

// Suffix returns the end of the Redis key that stores the answer to a round trip.
func (k *Key) Suffix() string { return k.name + ":" + strconv.Itoa(k.at) }

// Content returns a hash of the call's content, which distinguishes the call from
// others with the same key.
func (k *Key) Content() string { return k.call }

// Answers are stored in one of two forms. In a topic that was never divided, the items of a
// round trip are the same whenever the call is repeated, so the answer is stored as a whole
// (lua/keyed.lua). In a topic that has a layout, where an item is carried out, and with which
// others, depends on the layout and on what was carried out before. There each item has an
// answer of its own (lua/keyed_each.lua), as have the items of a call with [Key.Each].

// each reports whether calls behind a fence store an answer for each item.
func (f *Fence) each() bool { return f != nil && f.Layout != "" }

// around returns the script that stores the answer of another one, with its keys and
// arguments: the call has n items, whose ids id returns. Absent says whether an item that is
// absent has an answer of its own.
func (k *Key) around(script *redis.Script, f *Fence, t TopicKeys, keys []string, args []any, n int, id func(i int) *string, absent bool) (*redis.Script, []string, []any) {
	if !f.each() && !k.each {
		return keyedScripts[script], append(keys, t.whole(k)), append(args, k.Content(), KeyLife.Milliseconds())
	}
	for i := range n {
		args = append(args, id(i))
	}
	stored, plain := "0", "0"
	if absent {
		stored = "1"
	}
	keys = append(keys, t.answers(k))
	if !f.each() {
		plain, keys = "1", append(keys, t.whole(k))
	}
	return eachScripts[script], keys, append(args, n, k.Content(), KeyLife.Milliseconds(), stored, plain)
}

// whole is the key of the one answer to all items of a round trip.
func (t TopicKeys) whole(k *Key) string { return t.Keyed + ":" + k.Suffix() }

// answers is the key of the answers to the items of a call.
func (t TopicKeys) answers(k *Key) string { return t.Keyed + ":" + k.name }

// codeKnown begins the reply of lua/keyed_each.lua that items have answers, and that nothing
// was carried out.
const codeKnown = "!"

// cutKnown returns the answers of a reply that some items have one, "" for the others.
func cutKnown(reply string, n int) (answers []string, some bool, err error) {
	lines, some := strings.CutPrefix(reply, codeKnown)
	if !some {
		return nil, false, nil
	}
	answers = strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
	if len(answers) != n {
		return nil, true, fmt.Errorf("%w: answers for %d items, want %d", scripts.ErrReply, len(answers), n)
	}
	return answers, true, nil
}

// callRest calls the script for those entries that have no answer in a reply of Redis,
// which has those of the others.
func (s *Timers) callRest(ctx context.Context, p *part, reply string) ([]wakebelltype.Scheduled, error) {
	answers, _, err := cutKnown(reply, len(p.entries))
	if err != nil {
		return nil, err
	}
	out := make([]wakebelltype.Scheduled, len(p.entries))
	if err := readKnown(p.entries, answers, out); err != nil {
		return nil, err
	}
	rest := *p
	rest.entries = nil
	for i := range p.entries {
		if answers[i] == "" {
			rest.entries = append(rest.entries, p.entries[i])
		}
	}
	if len(rest.entries) == 0 {
		return out, nil
	}
	done, err := s.call(ctx, &rest)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if answers[i] == "" {
			out[i], done = done[0], done[1:]
		}
	}
	return out, nil
}

// RecallWrite returns the results of those timers that a call of Write with the key has
// stored in the topic; the others have no ID. Entries are all timers of the call that belong
// in the topic with a layout, in their order.
func (s Fenced) RecallWrite(ctx context.Context, topic string, key *Key, entries []Entry) ([]wakebelltype.Scheduled, error) {
	found := make([]wakebelltype.Scheduled, 0, len(entries))
	for rest := entries; len(rest) > 0; {
		n, _ := carried(rest)
		part := rest[:n]
		whole, each, err := s.recallPart(ctx, topic, key.after(len(found)), len(part), func(i int) *string { return &part[i].ID })
		if err != nil {
			return nil, err
		}
		done := make([]wakebelltype.Scheduled, len(part))
		if whole != "" {
			if done, err = readScheduled(part, whole, 0); err != nil {
				return nil, err
			}
		}
		if err := readKnown(part, each, done); err != nil {
			return nil, err
		}
		found, rest = append(found, done...), rest[len(part):]
	}
	return found, nil
}

// readKnown stores the answers that single timers have.
func readKnown(entries []Entry, answers []string, done []wakebelltype.Scheduled) error {
	for i, answer := range answers {
		if answer == "" {
			continue
		}
		one, err := readScheduled(entries[i:i+1], answer+"\n", 0)
		if err != nil {
			return err
		}
		done[i] = one[0]
	}
	return nil
}

// RecallCancel returns what a call of CancelKeyed or CancelFound with the key has found in
// the topic, and 0 for ids for which it has stored nothing. Ids are all of the call that
// belong in the topic with a layout, in their order.
func (s Fenced) RecallCancel(ctx context.Context, topic string, key *Key, ids ...string) ([]wakebelltype.Presence, error) {
	found := make([]wakebelltype.Presence, len(ids))
	for first := 0; first < len(ids); first += layout.CostlyEntries {
		part := ids[first:min(first+layout.CostlyEntries, len(ids))]
		whole, each, err := s.recallPart(ctx, topic, key.after(first), len(part), func(i int) *string { return &part[i] })
		if err != nil {
			return nil, err
		}
		for i, answer := range each {
			if answer == "" && i < len(whole) {
				answer = whole[i : i+1]
			}
			if answer != "" {
				found[first+i] = presenceOf(answer)
			}
		}
	}
	return found, nil
}

// recallPart returns the answers that a call with the key has stored for a round trip: the
// one to all items, and those to single ones; "" for none.
func (s Fenced) recallPart(ctx context.Context, topic string, key *Key, n int, id func(i int) *string) (whole string, each []string, err error) {
	k := s.keys.Of(topic)
	args := []any{key.Content()}
	for i := range n {
		args = append(args, id(i))
	}
	err = s.orUnfenced(s.fence, func(f *Fence) error {
		keys, args := scripts.WithGuards(f.Guards(s.keys, topic), []string{k.answers(key), k.whole(key)}, args)
		list, err := s.RunList(ctx, 1+n, recallScript, keys, args...)
		if err == nil {
			each, err = scripts.Texts(list)
		}
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("look for the answer of a call on %q: %w", topic, err)
	}
	if whole = each[0]; sharding.Reserved(topic) { // no call of a topic that was never divided
		whole = ""
	}
	if whole != "" {
		answer, same := strings.CutPrefix(whole, key.Content())
		if !same {
			return "", nil, fmt.Errorf("call on %q: %w", topic, wakebelltype.ErrKeyUsed)
		}
		whole = answer
	}
	return whole, each[1:], nil
}
