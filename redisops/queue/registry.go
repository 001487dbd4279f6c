package queue

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/queuekeys"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// memberSeparator separates the parts of a member of the registry. A name has no NUL.
const memberSeparator = "\x00"

// member returns the member of the registry that stands for a queue: its name alone,
// if it has the default keys.
func member(n wakebelltype.QueueKeys) string {
	if n = queuekeys.WithDefaults(n); n == queuekeys.WithDefaults(wakebelltype.QueueKeys{Name: n.Name}) {
		return n.Name
	}
	return strings.Join([]string{n.Name, n.Separator, n.DeadLetters}, memberSeparator)
}

// Registered returns the queue that a member of the registry stands for, and false for
// a member that another program has written.
func Registered(member string) (wakebelltype.QueueKeys, bool) {
	n := wakebelltype.QueueKeys{Name: member}
	if parts := strings.SplitN(member, memberSeparator, 3); len(parts) == 3 {
		n = wakebelltype.QueueKeys{Name: parts[0], Separator: parts[1], DeadLetters: parts[2]}
	}
	return n, queuekeys.Check(n) == nil
}

// remember registers the queue after it was used.
func (q *Queue) remember(ctx context.Context) { q.timers.RememberQueue(ctx, q.member) }

// Enlist adds queues to the registry; see [timers.Timers.Enlist].
func Enlist(ctx context.Context, s *timers.Timers, queues []*Queue) error {
	members := make([]string, len(queues))
	for i, q := range queues {
		members[i] = q.member
	}
	return s.EnlistQueues(ctx, members)
}

// Unregister removes the queue from the registry, unless it has messages, dead letters or
// nodes, and frees all deduplication keys, for which it scans all keys of Redis. The
// registry has a slot of its own, so the check and the removal are two steps:
// what is published in between registers the queue again within a minute.
func (q *Queue) Unregister(ctx context.Context) (wakebelltype.QueueRemoval, error) {
	use, err := q.use(ctx)
	if err != nil || use != "" {
		return wakebelltype.QueueRemoval{Existed: err == nil, Use: use}, q.unregistered(err)
	}
	if err := q.freeKeys(ctx); err != nil {
		return wakebelltype.QueueRemoval{}, q.unregistered(err)
	}
	existed, err := q.timers.UnregisterQueue(ctx, q.member)
	return wakebelltype.QueueRemoval{Existed: existed}, q.unregistered(err)
}

// freeKeys deletes the deduplication keys of the queue, and what says which message has
// which of them.
func (q *Queue) freeKeys(ctx context.Context) error {
	unlink := func(keys []string) error {
		return q.timers.Again(ctx, func() error { return scripts.Wrap(ctx, nil, q.timers.RDB.Unlink(ctx, keys...).Err()) })
	}
	for _, prefix := range []string{q.keys.deduplication, q.keys.owners} {
		if err := q.timers.ScanStrings(ctx, prefix, unlink); err != nil {
			return fmt.Errorf("free its deduplication keys: %w", err)
		}
	}
	return unlink([]string{q.keys.freed})
}

func (q *Queue) unregistered(err error) error {
	if err != nil {
		err = fmt.Errorf("remove queue %q: %w", q.Name(), err)
	}
	return err
}

// use returns what uses the queue: its nodes, or a key; empty: nothing.
func (q *Queue) use(ctx context.Context) (string, error) {
	nodes, err := q.timers.Subscribers(ctx, []string{q.keys.hint})
	if err != nil {
		return "", fmt.Errorf("count its nodes: %w", err)
	}
	if nodes[0] > 0 {
		return fmt.Sprintf("%d nodes", nodes[0]), nil
	}
	k := q.keys
	keys := []string{k.pending, k.processing, k.gone, k.dlq, k.completed, k.failed}
	types := make([]*redis.StatusCmd, len(keys))
	pipe := q.timers.RDB.Pipeline()
	for i, key := range keys {
		types[i] = pipe.Type(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return "", scripts.Wrap(ctx, keys, err)
	}
	for i, found := range types {
		if found.Val() != "none" {
			return "key " + strconv.Quote(keys[i]), nil
		}
	}
	return "", nil
}
