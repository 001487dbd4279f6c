package timers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// KeyLife is how long Redis stores the answer to a call with an idempotency key.
const KeyLife = 24 * time.Hour

// Key is an idempotency key: for KeyLife, the same call with the same key in the
// topic is not executed again but answered with the first result.
type Key struct {
	name  string // hash of the owner and the key
	call  string // hash of the call's content
	round int    // of the call, if it was refused before
	at    int    // index of the first item of this round trip, for a call of several round trips

	brief bool // the key serves a single call, which is not repeated later
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

// Number returns the key from which ID derives the id of the n-th item of a call.
func (k *Key) Number(n int) *Key {
	if k == nil {
		return nil
	}
	return &Key{name: k.name, call: k.call + strconv.Itoa(n)}
}

// Part returns the key of the n-th part of a call. Each part takes effect by
// itself.
func (k *Key) Part(n int) *Key { return k.part(n) }

// Round returns the key of the n-th try of a call, whose items are in other groups than
// those of the tries before.
func (k *Key) Round(n int) *Key {
	if k == nil || n == 0 {
		return k
	}
	round := *k
	round.round = n
	return &round
}

// part returns the key of the round trip that begins with item at.
func (k *Key) part(at int) *Key {
	if k == nil {
		return nil
	}
	part := *k
	part.at = at
	return &part
}

// after returns the key of the part that begins n items after the first of k.
func (k *Key) after(n int) *Key {
	if k == nil {
		return nil
	}
	return k.part(k.at + n)
}

// Brief reports whether the key serves a single call, whose answer no other call asks for.
func (k *Key) Brief() bool { return k.brief }

// Suffix returns the end of the Redis key that stores the answer to this part of
// the call.
func (k *Key) Suffix() string {
	if k.round > 0 {
		return k.name + ":" + strconv.Itoa(k.at) + "." + strconv.Itoa(k.round)
	}
	return k.name + ":" + strconv.Itoa(k.at)
}

// Content returns a hash of the call's content, which distinguishes the call from
// others with the same key.
func (k *Key) Content() string { return k.call }

// Recall returns the results of those timers of a batch that a call with the key has
// stored in the topics of the batch, in the order of Add; those of the others have no ID.
func (s *Timers) Recall(ctx context.Context, key *Key, b Batch) ([]wakebelltype.Scheduled, error) {
	trips := b.roundTrips(key)
	for i := range trips {
		t := &trips[i]
		answer, found, err := s.answerTo(ctx, t.topic, t.key)
		switch {
		case err != nil:
			return nil, err
		case found:
			t.done, err = readScheduled(t.entries, answer, 0)
		default:
			t.done = make([]wakebelltype.Scheduled, len(t.entries))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(trips) == 0 {
		return nil, nil
	}
	return b.inOrder(trips)
}

// RecallCancel returns what a call of CancelKeyed with the key has found; 0 for ids whose
// round trip was not carried out.
func (s *Timers) RecallCancel(ctx context.Context, topic string, key *Key, ids ...string) ([]wakebelltype.Presence, error) {
	found := make([]wakebelltype.Presence, len(ids))
	for first := 0; first < len(ids); first += layout.BatchEntries {
		answer, _, err := s.answerTo(ctx, topic, key.after(first))
		if err != nil {
			return nil, err
		}
		for i := range answer {
			if first+i < len(found) {
				found[first+i] = wakebelltype.Presence(strings.IndexByte(presenceCodes, answer[i]) + 1)
			}
		}
	}
	return found, nil
}

// answerTo returns the stored answer to a part of a call.
func (s *Timers) answerTo(ctx context.Context, topic string, key *Key) (answer string, found bool, err error) {
	stored := s.keys.Of(topic).Keyed + ":" + key.Suffix()
	err = s.Again(ctx, func() error {
		answer, err = s.RDB.Get(ctx, stored).Result()
		if found = err == nil; errors.Is(err, redis.Nil) {
			return nil
		}
		return scripts.Wrap(ctx, []string{stored}, err)
	})
	if err != nil {
		return "", false, fmt.Errorf("look for the answer of a call on %q: %w", topic, err)
	}
	if !found {
		return "", false, nil
	}
	answer, same := strings.CutPrefix(answer, key.Content())
	if !same {
		return "", false, fmt.Errorf("call on %q: %w", topic, redisops.ErrKeyUsed)
	}
	return answer, true, nil
}

// args adds the key to the keys and arguments of a script, whose answer
// lua/keyed.lua then stores under it.
func (k *Key) args(t TopicKeys, keys []string, args []any) ([]string, []any) {
	return append(keys, t.Keyed+":"+k.Suffix()), append(args, k.Content(), KeyLife.Milliseconds())
}
