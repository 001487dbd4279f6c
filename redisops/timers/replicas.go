package timers

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

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
