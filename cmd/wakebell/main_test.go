package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	waitLimit = time.Minute
	waitTick  = 5 * time.Millisecond
)

// atOnce is the number of tests that run in parallel: they mostly wait.
const atOnce = "6"

func TestMain(m *testing.M) {
	logging.Disable()
	cli.SuggestLimit = time.Minute
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	redistest.Main(m)
}

// bundle is the environment of a test: a topic of its own on the shared server.
type bundle struct {
	t     *testing.T
	topic string
	redis string
	rdb   *redis.Client
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	return &bundle{t, redistest.Name(t), "redis://" + redistest.SharedAddr(t), redistest.Shared(t)}
}

func (b *bundle) Client() *wakebell.Client {
	b.t.Helper()
	c, err := wakebell.NewClient(conntest.New(b.t, b.rdb, connection.Config{}))
	require.NoError(b.t, err)
	return c
}

// call runs a command on the bundle's Redis and returns its exit code and its output.
// TOPIC in the arguments is replaced with the bundle's topic.
func (b *bundle) call(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	return b.callWith(strings.NewReader(""), args...)
}

func (b *bundle) callWith(stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	var out, errs bytes.Buffer
	code = run(b.t.Context(), b.args(args), stdin, &out, &errs)
	return code, out.String(), errs.String()
}

func (b *bundle) args(args []string) []string {
	all := []string{"--redis", b.redis}
	for _, arg := range args {
		if arg == "TOPIC" {
			arg = b.topic
		}
		all = append(all, arg)
	}
	return all
}

// fine calls a command that must succeed.
func (b *bundle) fine(args ...string) string {
	b.t.Helper()
	code, stdout, stderr := b.call(args...)
	require.Zero(b.t, code, "%v: %s", args, stderr)
	return stdout
}

// objects parses lines of JSON.
func objects(t *testing.T, lines string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(lines) {
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		all = append(all, object)
	}
	return all
}

// golden compares text with a file of testdata, in which the bundle's topic is called
// TOPIC.
func (b *bundle) golden(name, text string) {
	b.t.Helper()
	text = strings.ReplaceAll(text, b.topic, "TOPIC")
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(b.t, os.WriteFile(path, []byte(text), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(b.t, err)
	require.Equal(b.t, string(want), text)
}

// running is a command that runs until it is stopped.
type running struct {
	t      *testing.T
	cancel context.CancelFunc
	code   chan int
	out    *buffer
	err    *buffer
}

// start runs a command until stop is called or the test ends.
func (b *bundle) start(args ...string) *running {
	b.t.Helper()
	out := &buffer{}
	r := b.startTo(out, args...)
	r.out = out
	return r
}

// startTo is start with another stdout.
func (b *bundle) startTo(stdout io.Writer, args ...string) *running {
	b.t.Helper()
	r := &running{t: b.t, code: make(chan int, 1), out: &buffer{}, err: &buffer{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	r.cancel = cancel
	all := b.args(args)
	if slices.Contains(args, "--remote") {
		all = all[2:] // without --redis
	}
	go func() { r.code <- run(ctx, all, strings.NewReader(""), stdout, r.err) }()
	b.t.Cleanup(func() { r.stop() })
	return r
}

// stop ends the command as a signal does, and waits for its exit code.
func (r *running) stop() int {
	r.cancel()
	code := <-r.code
	r.code <- code
	return code
}

// wait waits for the command to end without a signal.
func (r *running) wait() int {
	r.t.Helper()
	select {
	case code := <-r.code:
		r.code <- code
		return code
	case <-time.After(waitLimit):
		require.FailNow(r.t, "the command goes on", r.err.String())
		return 0
	}
}

// lines waits for n lines on stdout.
func (r *running) lines(n int) []map[string]any {
	r.t.Helper()
	r.eventually(func() bool { return strings.Count(r.out.String(), "\n") >= n })
	return objects(r.t, r.out.String())
}

// says waits for text on stderr.
func (r *running) says(text string) {
	r.t.Helper()
	r.eventually(func() bool { return strings.Contains(r.err.String(), text) })
}

func (r *running) eventually(condition func() bool) {
	r.t.Helper()
	require.Eventually(r.t, condition, waitLimit, waitTick, "stdout: %s\nstderr: %s", r.out, r.err)
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
