package timers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops"
)

// KeyLife is how long the answer to a call with an idempotency key is kept.
const KeyLife = 24 * time.Hour

// Key makes a call safe to repeat: for KeyLife the same call with the same key
// in the topic is not done again, but answered as it was first.
type Key struct {
	name string // hash of the owner and the key
	call string // hash of what is asked for
	at   int    // which part of a call that takes several round trips

	brief bool // the key of one call alone, which is not made again later
}

// NewKey is the key of an owner for a call, which content tells from others.
func NewKey(owner, key string, content []byte) *Key {
	call := sha256.Sum256(content)
	return &Key{name: hash(owner + "\x00" + key), call: hex.EncodeToString(call[:16])}
}

// NewCallKey is a key for one call alone: what it does is done once, however often
// its commands are sent while it lasts.
func NewCallKey() *Key {
	key := NewKey("", uuid.NewString(), nil)
	key.brief = true
	return key
}

// Life is for how long the key is kept: beyond the last time that the call may be
// sent again.
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

// ID is an id for a timer that is given none: the same in every call with the
// key.
func (k *Key) ID() string { return hash(k.name + k.call)[:32] }

// Number is the key for the n-th item of a call, for ID.
func (k *Key) Number(n int) *Key {
	if k == nil {
		return nil
	}
	return &Key{name: k.name, call: k.call + strconv.Itoa(n)}
}

// Part is the key of the n-th part of a call, which is done or not by itself.
func (k *Key) Part(n int) *Key { return k.part(n) }

// part is the key of the round trip that begins with this item.
func (k *Key) part(at int) *Key {
	if k == nil {
		return nil
	}
	part := *k
	part.at = at
	return &part
}

// Suffix ends the name in Redis of what is kept for this part of the call.
func (k *Key) Suffix() string { return k.name + ":" + strconv.Itoa(k.at) }

// Content is a hash of what is asked for, which tells a call from another with
// the same key.
func (k *Key) Content() string { return k.call }

// runKeyed runs a script, or what keeps its answer under a key.
func (s *Timers) runKeyed(ctx context.Context, plain, keyed *redis.Script, k TopicKeys, key *Key, keys []string, args []any) (string, error) {
	if key == nil {
		return s.RunText(ctx, plain, keys, args...)
	}
	keys = append(keys, k.Keyed+":"+key.Suffix())
	return s.RunText(ctx, keyed, keys, append(args, key.Content(), KeyLife.Milliseconds())...)
}
