// Package replicas has the clients of Redis that listings and statistics read from
// replicas with. It makes no compatibility promise: use package wakebell.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// pause is for how long the master is asked after a replica was unavailable.
const pause = 5 * time.Second

// Reader makes a client that is connected to replicas usable for reading, and returns it.
// Scripts are sent to it with EVALSHA_RO, which no script can write with. What it does not
// answer is sent to the master: while no replica is available, on servers before Redis
// 7.0, and if a script would write. The same client may be passed to Reader again with the
// same master. The error wraps [wakebelltype.ErrInvalid]: a client of a Cluster and another one
// have different names of keys.
func Reader(from, master redis.UniversalClient) (redis.UniversalClient, error) {
	_, clustered := from.(*redis.ClusterClient)
	if _, want := master.(*redis.ClusterClient); clustered != want {
		return nil, fmt.Errorf("%w: ReadFrom: a %T beside a %T; both must be clients of the same Cluster, or neither", wakebelltype.ErrInvalid, from, master)
	}
	from.AddHook(&hook{master: master})
	return from, nil
}

// hook is the hook of a client of replicas.
type hook struct {
	master redis.UniversalClient
	until  atomic.Int64 // until when the master is asked, in ns since 1970
}

// claimed marks the context of a command that the outermost of several hooks processes.
type claimed struct{}

func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(claimed{}) != nil {
			return next(ctx, cmd)
		}
		if h.down() {
			return h.master.Process(ctx, cmd)
		}
		setReadOnly(cmd, true)
		err := next(context.WithValue(ctx, claimed{}, true), cmd)
		if !h.fails(ctx, err) {
			return err
		}
		setReadOnly(cmd, false)
		cmd.SetErr(nil)
		return h.master.Process(ctx, cmd)
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if ctx.Value(claimed{}) != nil || cmds[0].Name() == "multi" { // no listing is a transaction
			return next(ctx, cmds)
		}
		if h.down() {
			return h.pipeline(ctx, cmds)
		}
		for _, cmd := range cmds {
			setReadOnly(cmd, true)
		}
		claim := context.WithValue(ctx, claimed{}, true)
		for _, part := range apart(cmds) {
			_ = next(claim, part) // each command has its own error
		}
		var failed []redis.Cmder
		for _, cmd := range cmds {
			if h.fails(ctx, cmd.Err()) {
				setReadOnly(cmd, false)
				cmd.SetErr(nil)
				failed = append(failed, cmd)
			}
		}
		if len(failed) > 0 {
			_ = h.pipeline(ctx, failed)
		}
		for _, cmd := range cmds {
			if err := cmd.Err(); err != nil {
				return err
			}
		}
		return nil
	}
}

// apart divides a pipeline into what a Cluster client sends to replicas, and TIME, which
// does not count as reading: go-redis sends all of a pipeline to masters if one of its
// commands must go there.
func apart(cmds []redis.Cmder) (parts [][]redis.Cmder) {
	var clocks, others []redis.Cmder
	for _, cmd := range cmds {
		if cmd.Name() == "time" {
			clocks = append(clocks, cmd)
		} else {
			others = append(others, cmd)
		}
	}
	for _, part := range [][]redis.Cmder{others, clocks} {
		if len(part) > 0 {
			parts = append(parts, part)
		}
	}
	return parts
}

// pipeline sends commands to the master.
func (h *hook) pipeline(ctx context.Context, cmds []redis.Cmder) error {
	pipe := h.master.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // it is queued
	}
	_, err := pipe.Exec(ctx)
	return err
}

// down reports whether replicas were unavailable a moment ago.
func (h *hook) down() bool { return time.Now().UnixNano() < h.until.Load() }

// fails reports whether an error means that the master is to be asked.
func (h *hook) fails(ctx context.Context, err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || ctx.Err() != nil {
		return false
	}
	if errors.Is(scripts.Wrap(ctx, nil, err), exchange.ErrUnavailable) {
		h.until.Store(time.Now().Add(pause).UnixNano())
		return true
	}
	for _, prefix := range []string{"MOVED", "ASK", "READONLY", "NOPERM", "unknown command"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return strings.Contains(err.Error(), "not allowed from read-only scripts")
}

// commands are the commands that run scripts, and those that run them without writes.
var commands = map[string]string{"evalsha": "evalsha_ro", "eval": "eval_ro"}

// setReadOnly replaces the command that runs a script. go-redis derives the route of a
// command from its first argument when it sends it.
func setReadOnly(cmd redis.Cmder, only bool) {
	args := cmd.Args()
	for plain, readOnly := range commands {
		switch {
		case only && cmd.Name() == plain:
			args[0] = readOnly
			return
		case !only && cmd.Name() == readOnly:
			args[0] = plain
			return
		}
	}
}
