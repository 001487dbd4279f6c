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
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/wakebell/wakebell/internal/redistest"
)

// postgres is a PostgreSQL server on a Unix socket.
type postgres struct {
	dir  string
	cmd  *exec.Cmd
	pool *pgxpool.Pool
}

// postgresConns is the number of connections of the pool.
const postgresConns = 60

// startPostgres starts the world's PostgreSQL, unless it runs already. The error wraps
// errAbsent if PostgreSQL is not installed.
func (w *world) startPostgres(ctx context.Context) (err error) {
	if w.postgres == nil {
		w.postgres, err = launchPostgres(ctx, w.durable)
	}
	return err
}

// launchPostgres starts a server in a temporary folder. Unless it is durable it does not wait
// for a disk, like a Redis without persistence.
func launchPostgres(ctx context.Context, durable bool) (p *postgres, err error) {
	server, initdb := postgresProgram("postgres"), postgresProgram("initdb")
	if server == "" || initdb == "" {
		return nil, fmt.Errorf("%w: PostgreSQL is not installed", errAbsent)
	}
	p = &postgres{}
	if p.dir, err = os.MkdirTemp("", "wb"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	attr, err := unprivileged(p.dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(p.dir, "data")
	create := exec.CommandContext(ctx, initdb, "-D", data, "-U", "postgres", "-A", "trust", "--locale=C", "-E", "UTF8", "--no-sync")
	create.Dir, create.SysProcAttr = p.dir, attr
	if out, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	args := []string{"-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c", "shared_buffers=512MB", "-c", "max_connections=200"}
	if !durable {
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	cmd := exec.Command(server, args...) //nolint:noctx // close ends it
	cmd.Dir, cmd.SysProcAttr = p.dir, attr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.cmd = cmd
	if p.pool, err = pgxpool.New(ctx, fmt.Sprintf("host=%s user=postgres dbname=postgres pool_max_conns=%d", p.dir, postgresConns)); err != nil {
		return nil, err
	}
	return p, untilEvery(ctx, 20*time.Millisecond, func() bool { return p.pool.Ping(ctx) == nil })
}

func (p *postgres) close() error {
	if p.pool != nil {
		p.pool.Close()
	}
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		_ = p.cmd.Wait() // it was ended by a signal
	}
	return os.RemoveAll(p.dir)
}

// postgresProgram finds a program; Debian does not put it into PATH. It is empty if there
// is none.
func postgresProgram(name string) string {
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	slices.Sort(found)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// unprivileged returns how to run the programs of PostgreSQL in a folder: they refuse to
// run as root.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attr := redistest.ChildAttr()
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	if os.Getuid() != 0 {
		return attr, nil
	}
	as, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(as.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(as.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, int(uid), int(gid))
}

// cpu returns the CPU time of the server and its backends, also of those that have ended.
func (p *postgres) cpu() time.Duration {
	pid := p.cmd.Process.Pid
	own := fmt.Sprint(pid)
	children, err := os.ReadFile(filepath.Join("/proc", own, "task", own, "children"))
	if err != nil {
		return 0
	}
	sum := processCPU(own)
	for _, child := range strings.Fields(string(children)) {
		sum += processCPU(child)
	}
	return sum
}

// processCPU returns the CPU time of a process and of its children that have ended; 0:
// unknown.
func processCPU(pid string) time.Duration {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:15] { // utime stime cutime cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

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
