package timers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	registerEvery = time.Minute
	nodeShift     = 56 // the top byte of a cursor is the node; no server's cursor reaches it
)

// Register adds a topic to the registry. Schedule does so automatically.
func (s *Timers) Register(ctx context.Context, topic string) error {
	if err := layout.CheckTopic(topic); err != nil {
		return err
	}
	return s.Again(ctx, func() error { return s.register(ctx, s.keys.Topics, topic) })
}

// register adds a name to a registry, of topics or of queues.
func (s *Timers) register(ctx context.Context, registry, name string) error {
	if err := s.RDB.SAdd(ctx, registry, name).Err(); err != nil {
		return fmt.Errorf("register %q in %q: %w", name, registry, scripts.Wrap(ctx, nil, err))
	}
	return nil
}

// Enlist adds topics to the registry, 1,000 with one command, and makes each call once. It
// is for what lists topics whose registry may have been lost.
func (s *Timers) Enlist(ctx context.Context, topics []string) error {
	return s.enlist(ctx, s.keys.Topics, topics)
}

// EnlistQueues does for members of the registry of queues what Enlist does for topics.
func (s *Timers) EnlistQueues(ctx context.Context, members []string) error {
	return s.enlist(ctx, s.keys.Queues, members)
}

func (s *Timers) enlist(ctx context.Context, registry string, all []string) error {
	for page := range slices.Chunk(all, layout.MaxPage) {
		names := make([]any, len(page))
		for i, name := range page {
			names[i] = name
		}
		if err := s.RDB.SAdd(ctx, registry, names...).Err(); err != nil {
			return fmt.Errorf("register %d names in %q: %w", len(page), registry, scripts.Wrap(ctx, nil, err))
		}
	}
	return nil
}

// Forget removes all keys of a topic: its timers, its dead letters, its control and
// its place in the registry. Marks of Once expire. Leases that a node holds are
// cancelled. If the topic is scheduled on again, it is registered again within a
// minute.
func (s *Timers) Forget(ctx context.Context, topic string) error {
	if _, err := s.CancelAll(ctx, topic); err != nil {
		return err
	}
	k := s.keys.Of(topic)
	for _, remove := range []func() *redis.IntCmd{
		func() *redis.IntCmd {
			return s.RDB.Unlink(ctx, k.Timeline, k.Payloads, k.Leases, k.Dead, k.Hint, k.Flow, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, k.KeyTurns, k.Control, k.Runs, k.Counts, k.History, k.Nodes, k.Reports, k.Moving(), k.Taken(), k.Leaving(), k.Left(), k.Pins(), k.Arrived(), s.marks(k))
		},
		func() *redis.IntCmd { return s.RDB.SRem(ctx, s.keys.Topics, topic) },
	} {
		if err := s.Again(ctx, func() error { return scripts.Wrap(ctx, nil, remove().Err()) }); err != nil {
			return fmt.Errorf("forget %q: %w", topic, err)
		}
	}
	s.topics.forget(topic)
	return nil
}

// RemoveTopic removes a topic from the registry, and what is left of handled timers,
// unless it has timers, dead letters, overrides, runs or a node. The check of the keys and
// the removal are one step; on a Cluster, where the registry is in another slot, they are
// two. If the topic is scheduled on again, it is registered
// again within a minute.
func (s *Timers) RemoveTopic(ctx context.Context, topic string) (wakebelltype.TopicRemoval, error) {
	if err := layout.CheckTopic(topic); err != nil {
		return wakebelltype.TopicRemoval{}, err
	}
	counts, err := s.nodesOf(ctx, topic)
	if err != nil {
		return wakebelltype.TopicRemoval{}, fmt.Errorf("remove %q: count its nodes: %w", topic, err)
	}
	if counts[0] > 0 {
		return wakebelltype.TopicRemoval{Existed: true, Use: fmt.Sprintf("%d nodes", counts[0])}, nil
	}
	reply, err := s.removeTopic(ctx, topic)
	if err != nil {
		return wakebelltype.TopicRemoval{}, fmt.Errorf("remove %q: %w", topic, err)
	}
	if key, used := strings.CutPrefix(reply, "used "); used {
		return wakebelltype.TopicRemoval{Existed: true, Use: "key " + strconv.Quote(key)}, nil
	}
	s.topics.forget(topic)
	return wakebelltype.TopicRemoval{Existed: reply != "absent"}, nil
}

// removeTopic returns what lua/remove_topic.lua does, in one step unless the registry is
// in another slot.
func (s *Timers) removeTopic(ctx context.Context, topic string) (string, error) {
	k := s.keys.Of(topic)
	keys := []string{k.Timeline, k.Payloads, k.Dead, k.Control, k.Runs, k.Moving(), k.Leaving(), k.Leases, k.Flow, k.TimerKeys, k.KeyOrder, k.KeyStates, k.KeyRates, k.KeyTurns, s.keys.Topics}
	if !s.Clustered(ctx) {
		return s.RunText(ctx, removeTopicScript, keys, topic)
	}
	keys[len(keys)-1] = k.Timeline
	reply, err := s.RunText(ctx, removeTopicScript, keys, topic)
	if err != nil || reply != "" {
		return reply, err
	}
	n, err := s.RDB.SRem(ctx, s.keys.Topics, topic).Result()
	if n == 0 {
		reply = "absent"
	}
	return reply, scripts.Wrap(ctx, nil, err)
}

// Remember registers a topic after a schedule, at most once a minute. The schedule
// has succeeded, so a failure is only logged.
func (s *Timers) Remember(ctx context.Context, topic string) {
	if !s.topics.register(topic) {
		return
	}
	if err := s.register(ctx, s.keys.Topics, topic); err != nil {
		s.logger().WarnContext(ctx, "topic not registered", "topic", topic, "error", err)
	}
}

// RememberQueue registers a queue after it was used, at most once a minute. The
// member of the registry is chosen by the store of queues. A failure is only logged.
func (s *Timers) RememberQueue(ctx context.Context, member string) {
	if !s.queues.register(member) {
		return
	}
	if err := s.register(ctx, s.keys.Queues, member); err != nil {
		s.logger().WarnContext(ctx, "queue not registered", "queue", member, "error", err)
	}
}

// UnregisterQueue removes a queue from the registry, and reports whether it was there. A
// process that uses the queue again registers it again within a minute.
func (s *Timers) UnregisterQueue(ctx context.Context, member string) (existed bool, err error) {
	n, err := s.RDB.SRem(ctx, s.keys.Queues, member).Result()
	if err != nil {
		return false, scripts.Wrap(ctx, []string{s.keys.Queues}, err)
	}
	s.queues.forget(member)
	return n > 0, nil
}

// Topics reads a page of the registry, in no particular order. Start with cursor 0;
// next is 0 after the last page. A name may occur twice.
func (s *Timers) Topics(ctx context.Context, cursor uint64) (names []string, next uint64, err error) {
	return s.scanRegistry(ctx, s.keys.Topics, cursor)
}

// Queues reads a page of the registry of queues, as Topics does that of topics.
func (s *Timers) Queues(ctx context.Context, cursor uint64) (members []string, next uint64, err error) {
	return s.scanRegistry(ctx, s.keys.Queues, cursor)
}

func (s *Timers) scanRegistry(ctx context.Context, registry string, cursor uint64) (names []string, next uint64, err error) {
	err = s.Again(ctx, func() (err error) {
		names, next, err = s.RDB.SScan(ctx, registry, cursor, "", layout.ScanPage).Result()
		return scripts.Wrap(ctx, nil, err)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("names in %q: %w", registry, err)
	}
	return names, next, nil
}

// DiscoverTopics reads a page of the topics that have a timeline, in no particular
// order. It also finds topics that only Python wrote, and scans all keys of Redis.
// Cursors work as with Topics; pages may be empty. If a server of a Cluster does not
// answer, next is the cursor of the next server, beside the error.
func (s *Timers) DiscoverTopics(ctx context.Context, cursor uint64) (names []string, next uint64, err error) {
	node, err := s.Nodes(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("discover topics: %w", scripts.Wrap(ctx, nil, err))
	}
	at := int(cursor >> nodeShift)
	if at >= len(node) {
		return nil, 0, fmt.Errorf("%w: cursor %d is of a node that is gone", wakebelltype.ErrInvalid, cursor)
	}
	cursor &= 1<<nodeShift - 1
	var found []string
	err = s.Again(ctx, func() (err error) {
		found, next, err = node[at].ScanType(ctx, cursor, globEscape(s.keys.Timeline)+":*", layout.ScanPage, "zset").Result()
		return scripts.Wrap(ctx, nil, err)
	})
	if err != nil {
		if next = 0; errors.Is(err, exchange.ErrUnavailable) && ctx.Err() == nil && at+1 < len(node) {
			next = uint64(at+1) << nodeShift
		}
		return nil, next, fmt.Errorf("discover topics: %w", err)
	}
	for _, key := range found {
		if topic, ok := s.keys.topicOf(s.keys.Timeline, key); ok {
			names = append(names, topic)
		}
	}
	switch {
	case next != 0:
		next |= uint64(at) << nodeShift
	case at+1 < len(node):
		next = uint64(at+1) << nodeShift
	}
	return names, next, nil
}

// Size returns the number of keys in Redis, which DiscoverTopics scans.
func (s *Timers) Size(ctx context.Context) (keys int64, err error) {
	nodes, err := s.Nodes(ctx)
	for _, node := range nodes {
		n, err := node.DBSize(ctx).Result()
		if err != nil {
			return keys, scripts.Wrap(ctx, nil, err)
		}
		keys += n
	}
	return keys, scripts.Wrap(ctx, nil, err)
}

// DiscoverPage is about how many keys a page of DiscoverTopics scans.
const DiscoverPage = layout.ScanPage

// ScanStrings calls use with pages of the keys of type string that begin with prefix. It
// scans all keys of Redis; a page may have a key that an earlier one had.
func (s *Timers) ScanStrings(ctx context.Context, prefix string, use func(keys []string) error) error {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return scripts.Wrap(ctx, nil, err)
	}
	for _, node := range nodes {
		for cursor, first := uint64(0), true; first || cursor != 0; first = false {
			var keys []string
			err := s.Again(ctx, func() (err error) {
				keys, cursor, err = node.ScanType(ctx, cursor, globEscape(prefix)+"*", layout.ScanPage, "string").Result()
				return scripts.Wrap(ctx, nil, err)
			})
			if err == nil && len(keys) > 0 {
				err = use(keys)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// maxKnown is the maximum number of topics of one generation of known, which has
// two.
const maxKnown = 4096

// known caches facts about recently used topics. A miss costs one more command. A
// topic that is not used for two minutes is removed, and earlier if many others are
// used.
//
// The cache has two generations: a topic that is used moves to the younger, and
// when that is full or a minute old, it replaces the older.
type known struct {
	mu           sync.Mutex
	young, older map[string]time.Time // when a topic was last registered
	since        time.Time            // when the younger generation began
}

// register reports whether the caller must add a topic to the registry now.
func (k *known) register(topic string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, now := k.young[topic], time.Now()
	if at.IsZero() {
		at = k.older[topic]
	}
	if now.Sub(at) < registerEvery {
		return false
	}
	if k.young == nil || len(k.young) >= maxKnown || now.Sub(k.since) >= registerEvery {
		k.young, k.older, k.since = map[string]time.Time{}, k.young, now
	}
	k.young[topic] = now
	delete(k.older, topic)
	return true
}

// forget removes a topic that was deleted.
func (k *known) forget(topic string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.young, topic)
	delete(k.older, topic)
}
