//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/internal/redistest"
)

// process starts the program as a process. cmd sends it signals.
func (b *bundle) process(path string, stdout *os.File, args ...string) (*exec.Cmd, *running) {
	b.t.Helper()
	r := &running{t: b.t, cancel: func() {}, code: make(chan int, 1), out: &buffer{}, err: &buffer{}}
	cmd := exec.Command(path, b.args(args)...)
	cmd.Stdout, cmd.Stderr = r.out, r.err
	if stdout != nil {
		cmd.Stdout = stdout
	}
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended already
	go func() {
		_ = cmd.Wait() // ProcessState has the exit code
		r.code <- cmd.ProcessState.ExitCode()
	}()
	return cmd, r
}

func TestSignals(t *testing.T) {
	t.Parallel()
	path := redistest.Program(t)

	t.Run("the first signal drains", func(t *testing.T) {
		b := setup(t)
		b.fine("schedule", "-t", "TOPIC", "--id", "x")
		gate := filepath.Join(t.TempDir(), "gate")
		require.NoError(t, syscall.Mkfifo(gate, 0o600))
		cmd, node := b.process(path, nil, "node", "-t", "TOPIC", "--exec", "echo waits >&2; read go <"+gate+"; echo went on >&2")
		node.says("waits")
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		node.says("node drains")
		require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0o600))
		require.Equal(t, cli.ExitOK, node.wait(), node.err)
		require.Contains(t, node.err.String(), "went on")
		require.Zero(t, b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val(), "the timer was settled")
	})

	t.Run("signals to a process and its group drain", func(t *testing.T) {
		b := setup(t)
		b.fine("schedule", "-t", "TOPIC", "--id", "x")
		gate := filepath.Join(t.TempDir(), "gate")
		require.NoError(t, syscall.Mkfifo(gate, 0o600))
		cmd, node := b.process(path, nil, "node", "-t", "TOPIC", "--exec", "echo waits >&2; read go <"+gate+"; echo went on >&2")
		node.says("waits")
		for range 2 {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
		node.says("node drains")
		open, err := os.OpenFile(gate, os.O_RDWR, 0) // which does not wait for a reader: a killed command is none
		require.NoError(t, err)
		_, err = open.WriteString("go\n")
		require.NoError(t, err)
		require.Equal(t, cli.ExitOK, node.wait(), node.err)
		require.Contains(t, node.err.String(), "went on")
		require.NoError(t, open.Close())
	})

	t.Run("the second signal ends the node at once", func(t *testing.T) {
		b := setup(t)
		b.fine("schedule", "-t", "TOPIC", "--id", "x")
		cmd, node := b.process(path, nil, "node", "-t", "TOPIC", "--exec", sleeper)
		group := node.group()
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		node.says("node drains")
		node.eventually(func() bool { // those within a second of the first one are ignored
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
			return strings.Contains(node.err.String(), "second signal")
		})
		require.Equal(t, cli.ExitError, node.wait(), node.err)
		require.Eventually(t, func() bool { return groupIsGone(group) }, waitLimit, waitTick)
		require.Equal(t, int64(1), b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val(), "the timer stays leased")
	})

	for name, end := range map[string]func(*redistest.Server){
		"unreachable": (*redistest.Server).Kill,
		"silent":      (*redistest.Server).Pause,
		"read only": func(server *redistest.Server) {
			require.NoError(t, server.Client(t).ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
		},
	} {
		t.Run("an idle node ends soon while redis is "+name, func(t *testing.T) {
			server := redistest.Start(t)
			b := &bundle{t: t, topic: "x", redis: "redis://" + server.Addr}
			const drainTimeout = 5 * time.Minute // the node must not use it
			cmd, node := b.process(path, nil, "node", "-t", "x", "--drain-timeout", drainTimeout.String(), "--max-polling-interval", "100ms")
			node.says("node runs")
			end(server)
			node.says("redis is down")
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.Equal(t, cli.ExitOK, node.wait(), node.err) // within waitLimit
			server.Resume()
		})
	}

	t.Run("a closed pipe ends the node", func(t *testing.T) {
		b := setup(t)
		b.fine("schedule", "-t", "TOPIC", "--id", "x")
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		_, node := b.process(path, w, "node", "-t", "TOPIC")
		require.Equal(t, cli.ExitError, node.wait(), node.err)
		require.NoError(t, w.Close())
		require.Contains(t, node.err.String(), "broken pipe")
		listed := objects(t, b.fine("ls", "-t", "TOPIC", "-o", "json")) // it waits for its retry, or that has come
		require.EqualValues(t, 1, listed[0]["failures"])
	})

	t.Run("three processes", func(t *testing.T) {
		b := setup(t)
		tokens := tokenFile(t, "shop:"+secret)
		gate, listener := b.process(path, nil, "node", "--listen", "127.0.0.1:0", "--token-file", tokens)
		_, node := b.process(path, nil, "node", "-t", "TOPIC")
		shop := func() (*exec.Cmd, *bytes.Buffer) {
			cmd, errs := exec.Command(path, "schedule", "-t", b.topic, "--id", "x", "--text", "hello"), &bytes.Buffer{}
			cmd.Env = append(os.Environ(), "WAKEBELL_REMOTE="+listener.listener(), "WAKEBELL_TOKEN_FILE="+tokens, "WAKEBELL_REDIS=redis://192.0.2.1:1")
			cmd.Stderr = errs
			return cmd, errs
		}
		cmd, errs := shop()
		require.NoError(t, cmd.Run(), errs)
		require.Equal(t, "hello", node.lines(1)[0]["body"])

		require.NoError(t, gate.Process.Kill())
		listener.wait()
		cmd, errs = shop()
		require.Error(t, cmd.Run())
		require.Contains(t, errs.String(), "connection refused", "the command reports the error and ends")
	})

	t.Run("interrupted demo", func(t *testing.T) {
		b := setup(t)
		cmd, demo := b.process(path, nil, "demo", "--redis", "embedded")
		demo.eventually(func() bool { return len(demo.out.String()) > 0 })
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.Equal(t, cli.ExitError, demo.wait())
		require.Equal(t, "wakebell: the demo was interrupted\n", demo.err.String())
	})
}
