package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
)

const (
	fastTimers = 3_000
	fastScript = "faststream/bench.py"
)

// faststream handles timers with faststream-redis-timers, with its defaults or with a
// number of concurrent handlers.
func faststream(concurrency int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if err := exec.CommandContext(ctx, "python3", "-c", "import faststream_redis_timers").Run(); err != nil {
			return nil, fmt.Errorf("%w: python3 cannot import faststream_redis_timers", errAbsent)
		}
		_, port, err := net.SplitHostPort(w.server.Addr)
		if err != nil {
			return nil, err
		}
		n := w.many(fastTimers)
		if err := loadTimers(ctx, w, "faststream", n, 100); err != nil {
			return nil, err
		}
		out, err := exec.CommandContext(ctx, "python3", fastScript, port, strconv.Itoa(n), strconv.Itoa(concurrency)).Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("faststream: %w: %s", err, exit.Stderr)
		}
		if err != nil {
			return nil, err
		}
		s := sample{}
		return s, json.Unmarshal(out, &s)
	}
}
