package shards

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/redistest"
)

// bubbleClock is a hook of a client that gives a real redis-server the clock of a synctest
// bubble: it answers TIME, and scripts read the key clockKey in place of TIME. Everything
// else of the scripts is what is shipped. Keys expire by the clock of the machine, which is
// never while a test runs.
type bubbleClock struct {
	mu  sync.Mutex
	set time.Time // what clockKey has
}

const (
	clockKey  = "clock of the bubble"
	shipped   = "local t = redis.call('TIME')"
	replaced  = "local t = {string.match(redis.call('GET', '" + clockKey + "'), '^(%d+) (%d+)$')}"
	isEval    = "eval"
	isEvalsha = "evalsha"
)

// patchedScripts has, by the hash of a script that is shipped, that of the script which
// reads the clock of the bubble.
var patchedScripts sync.Map

// bubbleClient returns a client of a database of a server, until the end of the test.
func bubbleClient(t testing.TB, server *redistest.Server, db int) *redis.Client {
	t.Helper()
	rdb := server.Client(t, func(o *redis.Options) {
		// See plenty of redistest: no call waits for a connection.
		o.DB, o.PoolSize, o.MaxRetries = db, 1000, -1
	})
	rdb.AddHook(&bubbleClock{})
	return rdb
}

func (c *bubbleClock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *bubbleClock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if answer, ok := cmd.(*redis.TimeCmd); ok {
				answer.SetVal(time.Now().Truncate(time.Microsecond))
			}
			if cmd.Name() == isEvalsha {
				return errors.New("a script in a pipeline has the clock of the machine")
			}
		}
		return err
	}
}

func (c *bubbleClock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		now := time.Now().Truncate(time.Microsecond)
		args := cmd.Args()
		switch cmd.Name() {
		case "time":
			answer, ok := cmd.(*redis.TimeCmd)
			if !ok {
				return fmt.Errorf("TIME as a %T", cmd)
			}
			answer.SetVal(now)
			return nil
		case isEvalsha:
			if sha, known := patchedScripts.Load(args[1]); known {
				args[1] = sha
			}
		case isEval:
			text, _ := args[1].(string)
			patched := strings.ReplaceAll(text, shipped, replaced)
			patchedScripts.Store(hashOf(text), hashOf(patched))
			args[1] = patched
		default:
			return next(ctx, cmd)
		}
		if err := c.follow(ctx, next, now); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

// follow stores the clock of the bubble if it has gone on.
func (c *bubbleClock) follow(ctx context.Context, next redis.ProcessHook, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set.Equal(now) {
		return nil
	}
	c.set = now
	return next(ctx, redis.NewStatusCmd(ctx, "set", clockKey, fmt.Sprintf("%d %06d", now.Unix(), now.Nanosecond()/1000)))
}

func hashOf(text string) string {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
