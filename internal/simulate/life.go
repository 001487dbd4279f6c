package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/redis/go-redis/v9"
)

// immortal are the commands of a process that does not die.
const immortal = math.MaxInt32

var errDied = errors.New("the process has died")

// life is a client hook that lets a process die. It counts the commands on each key, and fails
// those after the last one: commands on several keys run at once, in an order that differs.
type life struct {
	mu    sync.Mutex
	left  int // commands on each key
	made  map[string]int
	alike bool // all commands count as ones on the same key: none run at once
}

// begin begins the life of another process.
func (l *life) begin(commands int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.made = commands, map[string]int{}
}

// DialHook implements redis.Hook.
func (l *life) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (l *life) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := l.spend(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (l *life) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := l.spend(cmds[len(cmds)/2]); err != nil { // the first one may be MULTI
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

func (l *life) spend(cmd redis.Cmder) error {
	at := 1
	if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
		at = 3
	}
	key := cmd.Name()
	if args := cmd.Args(); len(args) > at {
		key = fmt.Sprint(args[at])
	}
	if l.alike {
		key = ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made[key]++; l.made[key] > l.left {
		return errDied
	}
	return nil
}

// mortal reports whether the process may die.
func (l *life) mortal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left < immortal
}
