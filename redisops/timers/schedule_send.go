package timers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Payloads beside the script: a large batch is one transaction of three commands
// (callApart), so that Lua does not copy the payloads twice more.
//
// It buys CPU time of Redis: a timer of 2,000 bytes in a batch of 500 takes 5.4 µs
// instead of 8.4 µs; at 100 bytes there is hardly a difference (go test
// ./redisops/timers -bench ScheduleBatch/size=500). Timers.NoPayloadsApart switches
// it off.

// apartFrom is the least number of entries of a batch whose payloads are sent
// apart: below it, the transaction costs more than the copies.
const apartFrom = 50

// errNotApart reports that Redis refused a batch whose payloads were sent apart.
var errNotApart = errors.New("refused with payloads apart")

// mayGoApart reports whether the payloads of a large batch may be sent apart: all entries
// replace existing timers, and the topic's keys have the right types, as the script
// found earlier. The script would write nothing if a key had another type.
func (s *Timers) mayGoApart(topic string, entries []Entry) bool {
	if s.NoPayloadsApart || s.transactionless.Load() {
		return false
	}
	for i := range entries {
		if e := &entries[i]; e.Policy != wakebelltype.PolicyReplace || e.Once != 0 || e.Replicas != 0 || e.Key != "" {
			return false
		}
	}
	return s.topics.sound(topic)
}

// callApart writes a batch as one transaction of three commands:
//
//  1. lua/schedule.lua gets the ids and the instants. It marks the topic's payloads,
//     renames their key to the key apart, and writes the rest of the timers.
//  2. HSET adds the payloads of the batch to the key apart.
//  3. lua/apart.lua renames the key apart to the payloads of the topic if it has the
//     mark, and otherwise deletes it.
//
// Redis executes the later commands even if an earlier one fails. If the first
// fails, it wrote nothing: the second makes a key apart without the mark, and the
// third deletes it. The second cannot fail after the first succeeded, because the
// key is then a hash. So the transaction writes the whole batch or nothing.
//
// If Redis refuses the transaction or the first command, the error is errNotApart
// and nothing was written; the caller then runs the script alone, which succeeds or
// returns the reason.
func (s *Timers) callApart(ctx context.Context, topic string, fence *Fence, entries []Entry) ([]wakebelltype.Scheduled, error) {
	keys, args := scheduleCall(s.keys, topic, entries, true, s.counting(), false)
	if s.keyless.Load() {
		s.replaceKeyless(topic, keys)
	}
	payloadsKey, apartKey := keys[1], keys[len(keys)-2]
	keys, args = scripts.WithGuards(fence.Guards(s.keys, topic), keys, args)
	payloads := make([]any, 2*len(entries))
	for i := range entries {
		payloads[2*i], payloads[2*i+1] = &entries[i].ID, entries[i].Payload
	}
	pipe := s.RDB.TxPipeline()
	answer := scheduleScript.EvalSha(ctx, pipe, keys, args...)
	pipe.HSet(ctx, apartKey, payloads...)
	pipe.Eval(ctx, apartScript, []string{apartKey, payloadsKey})
	_, err := pipe.Exec(ctx)
	var refused redis.Error
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.Error(), codeHasKey):
		return nil, errNotApart
	case redis.HasErrorPrefix(err, "STALELAYOUT"):
		return nil, scripts.Wrap(ctx, keys, err)
	case errors.As(err, &refused):
		s.topics.found(topic, false)
		if strings.Contains(refused.Error(), "NOPERM") { // to MULTI or EXEC, or what the script needs as well
			s.transactionless.Store(true)
		}
		return nil, errNotApart
	case err != nil:
		return nil, scripts.Wrap(ctx, keys, err)
	}
	reply, err := answer.Text()
	if err != nil {
		return nil, scripts.Wrap(ctx, keys, err)
	}
	return readScheduled(entries, reply, 0)
}

const (
	// MaxReplicas is the maximum number of replicas that a schedule can wait for.
	MaxReplicas = 100
	// MaxReplicaTimeout is the longest time that a schedule can wait for replicas.
	MaxReplicaTimeout = time.Minute

	// waitSlack is how late Redis may answer a WAIT, because it checks its blocked
	// clients ten times a second.
	waitSlack = 500 * time.Millisecond
)

// confirmation is what a batch of entries requires of replicas: the maximum over
// its entries. The zero value requires none.
type confirmation struct {
	replicas int
	timeout  time.Duration
}

func confirmationOf(entries []Entry) (c confirmation) {
	for i := range entries {
		c.replicas = max(c.replicas, entries[i].Replicas)
		c.timeout = max(c.timeout, entries[i].ReplicaTimeout)
	}
	return c
}

// runConfirmed runs a script, then WAIT, and returns how many replicas have
// confirmed the writes. Both are sent in one pipeline, because WAIT covers the
// writes of its own connection only.
func (s *Timers) runConfirmed(ctx context.Context, c confirmation, script *redis.Script, keys []string, args ...any) (reply string, confirmed int, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		c.timeout = max(min(c.timeout, time.Until(deadline)), time.Millisecond)
	}
	rdb, err := s.master(ctx, keys[0])
	if err != nil {
		return "", 0, scripts.Wrap(ctx, keys, err)
	}
	if read := rdb.Options().ReadTimeout; read > 0 { // without a read timeout there is nothing to extend
		rdb = rdb.WithTimeout(read + c.timeout + waitSlack)
	}
	ran, waited := pipeWait(ctx, rdb, c, func(p redis.Pipeliner) *redis.Cmd { return script.EvalSha(ctx, p, keys, args...) })
	if redis.HasErrorPrefix(ran.Err(), "NOSCRIPT") {
		ran, waited = pipeWait(ctx, rdb, c, func(p redis.Pipeliner) *redis.Cmd { return script.Eval(ctx, p, keys, args...) })
	}
	if reply, err = ran.Text(); err != nil {
		return "", 0, s.Moved(ctx, scripts.Wrap(ctx, keys, err))
	}
	if confirmed, err = waited.Int(); err != nil {
		return "", 0, fmt.Errorf("stored, but not confirmed by replicas: %w", scripts.Wrap(ctx, nil, err))
	}
	return reply, confirmed, nil
}

func pipeWait(ctx context.Context, rdb *redis.Client, c confirmation, run func(redis.Pipeliner) *redis.Cmd) (ran, waited *redis.Cmd) {
	pipe := rdb.Pipeline()
	ran, waited = run(pipe), pipe.Do(ctx, "WAIT", c.replicas, c.timeout.Milliseconds())
	_, _ = pipe.Exec(ctx) // each reply has its own error
	return ran, waited
}

// master returns the client of the server that has a key.
func (s *Timers) master(ctx context.Context, key string) (*redis.Client, error) {
	switch rdb := s.RDB.(type) {
	case *redis.Client:
		return rdb, nil
	case *redis.ClusterClient:
		return rdb.MasterForKey(ctx, key)
	case *redis.Ring:
		return rdb.GetShardClientForKey(key)
	default:
		return nil, fmt.Errorf("%w: replicas cannot be asked through a %T", wakebelltype.ErrUnsupported, s.RDB)
	}
}

// ShardOf returns the address of the server that has a key, as of the last Check.
func (s *Timers) ShardOf(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shards) == 0 {
		return ""
	}
	slot := layout.SlotOf(key)
	for _, shard := range s.shards {
		if shard.Start <= slot && slot <= shard.End && len(shard.Nodes) > 0 {
			return shard.Nodes[0].Addr
		}
	}
	return ""
}
