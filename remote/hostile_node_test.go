package remote_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/memorylimit"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
)

// The node that TestHostile attacks runs in a separate process, so that its memory,
// goroutines and log are not mixed with those of the attackers.

// introduction is the first line that an attacked node prints.
type introduction struct{ Address, Gateway string }

// usage is the resource usage of its process.
type usage struct {
	Goroutines int
	Live       uint64 // bytes on the heap after a collection
	Held       uint64 // bytes that the Go runtime has from the system
	Most       uint64 // the most of Held since the last answer
}

// sampleEvery is how often the node looks at its memory.
const sampleEvery = 10 * time.Millisecond

// beAttacked serves a System until its stdin ends. It answers each line there with
// its usage. It collects its garbage as the command does.
func beAttacked(redisAddr string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	conn, err := connection.New(redis.NewClient(&redis.Options{Addr: redisAddr}), connection.Config{Logger: log})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(actors, conn, wakebell.Config{DrainTimeout: -1})
	if err != nil {
		return err
	}
	server, err := remote.Serve(sys, withMallory())
	if err != nil {
		return err
	}
	defer server.Stop()
	if err := sys.Start(context.Background()); err != nil {
		return err
	}
	go memorylimit.Keep(context.Background())
	out := json.NewEncoder(os.Stdout)
	err = out.Encode(introduction{server.Address(), sys.Gateway().GetId()})
	questions := make(chan bool)
	go func() {
		defer close(questions)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			questions <- true
		}
	}()
	most, tick := uint64(0), time.NewTicker(sampleEvery)
	for err == nil {
		select {
		case <-tick.C:
			most = max(most, memoryHeld())
		case _, asked := <-questions:
			if !asked {
				return sys.Stop()
			}
			err = out.Encode(usage{Held: memoryHeld(), Most: most, Goroutines: runtime.NumGoroutine(), Live: heap()})
			most = 0
		}
	}
	return errors.Join(err, sys.Stop())
}

// memoryHeld is the memory that the Go runtime has not returned to the system.
func memoryHeld() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// attackedNode is the process of an attacked node.
type attackedNode struct {
	*node
	*helper
}

// serveElsewhere starts a node in a separate process until the end of the test.
func serveElsewhere(t *testing.T) *attackedNode {
	t.Helper()
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{Logger: quiet}), wakebell.Config{})
	require.NoError(t, err)
	n := &attackedNode{&node{System: sys, topic: wakebell.NewTopic[string](redistest.Name(t))}, assist(t, "attacked", redistest.SharedAddr(t))}
	var who introduction
	require.NoError(t, n.out.Decode(&who), n.stderr.tail())
	n.address, n.gateway = who.Address, who.Gateway
	return n
}

// usage returns the node's use of memory, goroutines and log lines.
func (n *attackedNode) usage(t *testing.T) (u usage) {
	t.Helper()
	_, err := io.WriteString(n.in, "\n")
	require.NoError(t, err, n.stderr.tail())
	require.NoError(t, n.out.Decode(&u), n.stderr.tail())
	return u
}

// helper is a process of this binary that works for a test until its stdin ends.
type helper struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *lines
}

func assist(t *testing.T, role string, args ...string) *helper {
	t.Helper()
	h := &helper{stderr: &lines{}, cmd: exec.Command(os.Args[0])} //nolint:gosec // this binary
	h.cmd.Env = append(os.Environ(), roleVar+"="+role+" "+strings.Join(args, " "))
	h.cmd.Stderr, h.cmd.SysProcAttr = h.stderr, redistest.ChildAttr()
	var err error
	h.in, err = h.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	h.out = json.NewDecoder(out)
	require.NoError(t, h.cmd.Start())
	t.Cleanup(func() { _ = h.end() })
	return h
}

// end ends the process in order, or after some patience, and returns how it ended.
func (h *helper) end() error {
	_ = h.in.Close()
	defer time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() }).Stop()
	return h.cmd.Wait()
}

// tail is the end of a log.
func (l *lines) tail() string {
	all := strings.Join(l.with(""), "")
	return all[max(0, len(all)-4000):]
}

// resident is the most memory of a process that the kernel has counted since the
// last call; false: this system does not report it.
func resident(pid int) (most uint64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if kilobytes, found := strings.CutPrefix(line, "VmHWM:"); found {
			most, err = strconv.ParseUint(strings.Fields(kilobytes)[0], 10, 64)
		}
	}
	const resetPeak = "5"
	if err == nil {
		err = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(resetPeak), 0o200)
	}
	return most << 10, err == nil && most > 0
}
