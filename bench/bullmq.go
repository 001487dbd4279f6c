package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
)

const (
	bullJobs = 30_000
	bullDir  = "bullmq" // beside the bench, where npm has installed it
)

// bullMQ runs BullMQ in a process of its own; part is what it is measured at,
// "add" or "handle".
func bullMQ(part string, concurrency int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if err := bullInstalled(); err != nil {
			return nil, err
		}
		return runBullMQ(ctx, w, part, w.many(bullJobs), concurrency)
	}
}

// steadyBullMQ has BullMQ handle jobs that are delayed to instants evenly spread.
func steadyBullMQ(perSecond int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (sample, error) {
		if err := bullInstalled(); err != nil {
			return nil, err
		}
		s, err := runBullMQ(ctx, w, "handle", int(w.long(steadyFor).Seconds())*perSecond, 100, strconv.Itoa(perSecond))
		if err == nil {
			s[bothUS] = s[clientUS] + s[redisUS]
			delete(s, rate)
		}
		return s, err
	}
}

// bullInstalled returns why BullMQ cannot run here.
func bullInstalled() error {
	if _, err := exec.LookPath("node"); err != nil {
		return fmt.Errorf("%w: there is no Node", errAbsent)
	}
	if _, err := os.Stat(bullDir + "/node_modules/bullmq"); err != nil {
		return fmt.Errorf("%w: BullMQ is not installed (make bench-peers does it, from the folder of the bench)", errAbsent)
	}
	return nil
}

func runBullMQ(ctx context.Context, w *world, part string, jobs, concurrency int, more ...string) (sample, error) {
	_, port, err := net.SplitHostPort(w.server.Addr)
	if err != nil {
		return nil, err
	}
	args := append([]string{"bench.mjs", port, strconv.Itoa(jobs), strconv.Itoa(concurrency), strconv.Itoa(batchSize)}, more...)
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = bullDir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("bullmq: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	return bullFigures(out, part)
}

// bullFigures reads what bench.mjs prints.
func bullFigures(out []byte, part string) (sample, error) {
	var parts map[string]sample
	if err := json.Unmarshal(out, &parts); err != nil {
		return nil, fmt.Errorf("read the figures of bullmq: %w", err)
	}
	s, ok := parts[part]
	if !ok {
		return nil, fmt.Errorf("bullmq measured no %q", part)
	}
	delete(s, "seconds")
	return s, nil
}
