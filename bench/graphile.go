package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
)

const (
	graphileJobs = 60_000
	graphileDir  = "graphile" // beside the bench, where npm has installed it
)

// graphile runs graphile-worker in a process of Node on a PostgreSQL, with batches of jobs,
// and measures how it handles those that are due.
func graphile(concurrency int) func(context.Context, *world) (sample, error) {
	return func(ctx context.Context, w *world) (s sample, err error) {
		if _, err := exec.LookPath("node"); err != nil {
			return nil, fmt.Errorf("%w: there is no Node", errAbsent)
		}
		if _, err := os.Stat(graphileDir + "/node_modules/graphile-worker"); err != nil {
			return nil, fmt.Errorf("%w: graphile-worker is not installed (make bench-peers does it, from the folder of the bench)", errAbsent)
		}
		if err := w.startPostgres(ctx); err != nil {
			return nil, err
		}
		jobs := w.many(graphileJobs)
		cmd := exec.CommandContext(ctx, "node", "bench.mjs", w.postgres.dir, strconv.Itoa(jobs), strconv.Itoa(concurrency))
		cmd.Dir, cmd.Stderr = graphileDir, os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		s, err = w.graphileFigures(in, bufio.NewReader(out), jobs)
		return s, errors.Join(err, in.Close(), cmd.Wait())
	}
}

// graphileFigures follows bench.mjs, which waits for a line after each of its parts.
func (w *world) graphileFigures(in io.Writer, out *bufio.Reader, jobs int) (sample, error) {
	next := func() (parts map[string]sample, err error) {
		line, err := out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &parts)
		}
		if err != nil {
			return nil, fmt.Errorf("read the figures of graphile-worker: %w", err)
		}
		return parts, nil
	}
	if _, err := next(); err != nil { // the jobs are added
		return nil, err
	}
	before := w.postgres.cpu()
	if _, err := io.WriteString(in, "\n"); err != nil {
		return nil, err
	}
	parts, err := next()
	if err != nil {
		return nil, err
	}
	s := parts["handle"]
	s[redisUS] = (w.postgres.cpu() - before).Seconds() * 1e6 / float64(jobs)
	_, err = io.WriteString(in, "\n")
	return s, err
}
