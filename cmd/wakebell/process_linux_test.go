package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

func TestCommandsEndWithNodeThatIsKilled(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	cmd, node := b.process(redistest.Program(t), nil, "node", "-t", "TOPIC", "--exec", `echo "group $$" >&2; exec sleep 1000`)
	sleeper := node.group()
	t.Cleanup(func() { _ = syscall.Kill(-sleeper, syscall.SIGKILL) })
	require.NoError(t, cmd.Process.Kill())
	node.wait()
	node.eventually(func() bool { return !runs(sleeper) })
}

// The node is the first process of a PID namespace, as in a container.
func TestFirstProcessOfContainerLeavesNoZombies(t *testing.T) {
	b := setup(t)
	b.fine("schedule", "-t", "TOPIC", "--id", "x")
	cmd := exec.CommandContext(t.Context(), redistest.Program(t), b.args([]string{"node", "-t", "TOPIC", "--exec", "sleep 0.01 & exit 0"})...)
	stderr := &buffer{}
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if id := os.Getuid(); id != 0 { // other users need a namespace of users too
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	}
	require.NoError(t, cmd.Start())
	node := &running{t: t, cancel: func() {}, out: &buffer{}, err: stderr}
	node.eventually(func() bool { return b.rdb.ZCard(t.Context(), "timers_timeline:"+b.topic).Val() == 0 })
	node.eventually(func() bool {
		children := childrenOf(t, cmd.Process.Pid)
		return len(children) == 1 && runs(children[0]) // the node
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), stderr.String())
}

// runs reports whether a process exists and is no zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// childrenOf returns the children of a process.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, file := range all {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
			children = append(children, child)
		}
	}
	return children
}
