package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 2 * time.Minute // of a process, on a busy machine
	endLimit   = 30 * time.Second
)

// Fleet is the nodes of a round.
type Fleet struct {
	// Program is the path of the test binary that the next nodes run. Empty: that of
	// the harness.
	Program string

	t          testing.TB
	deliveries *DeliveryLog
	count      int

	mu    sync.Mutex
	nodes []*Node // all that were started
}

// Node is a node process. Its methods must not be called concurrently.
type Node struct {
	Name   string
	Config NodeConfig

	fleet *Fleet
	cmd   *exec.Cmd
	stdin io.Closer
	ready chan struct{} // closed when it handles timers
	ended chan struct{} // closed when it has ended and all its output is in the delivery log
	log   strings.Builder
}

// NewFleet returns a fleet without nodes.
func NewFleet(t testing.TB, deliveries *DeliveryLog) *Fleet {
	t.Helper()
	return &Fleet{t: t, deliveries: deliveries}
}

// Next returns the name of the next node.
func (f *Fleet) Next() string { return fmt.Sprintf("node-%d", f.count+1) }

// Start starts a node; Ready waits for it. The end of the test kills it.
func (f *Fleet) Start(cfg NodeConfig) *Node {
	f.t.Helper()
	n := &Node{
		Name: f.Next(), Config: cfg, fleet: f,
		ready: make(chan struct{}), ended: make(chan struct{}),
	}
	f.count++
	if err := n.start(); err != nil {
		f.t.Fatalf("faults: start %s: %v", n.Name, err)
	}
	f.t.Cleanup(n.end)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes = append(f.nodes, n)
	return n
}

func (n *Node) start() error {
	config, err := json.Marshal(n.Config)
	if err != nil {
		return err
	}
	program := n.fleet.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	n.cmd = exec.Command(program)
	n.cmd.Env = append(os.Environ(), NodeVariable+"="+string(config))
	stdin, err := n.cmd.StdinPipe()
	if err != nil {
		return err
	}
	n.stdin = stdin
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := n.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return err
	}
	go n.follow(stdout, stderr)
	return nil
}

// follow records the output of the node in the delivery log until the node ends.
func (n *Node) follow(stdout, stderr io.Reader) {
	defer close(n.ended)
	var logged sync.WaitGroup
	logged.Go(func() { _, _ = io.Copy(&n.log, stderr) })
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var line Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			continue // of the race detector or a panic; Drain checks the exit code
		}
		if line.Event == EventReady {
			close(n.ready)
		}
		name := n.Name
		if n.Config.Listen != "" {
			name = "" // a stall of a serving node affects all subscribers
		}
		n.fleet.deliveries.RecordLine(name, line)
	}
	logged.Wait()
	_ = n.cmd.Wait() // ProcessState has the result
}

// Ready waits until the node handles timers.
func (n *Node) Ready() {
	n.fleet.t.Helper()
	select {
	case <-n.ready:
	case <-n.ended:
		n.fleet.t.Fatalf("faults: %s ended before it was ready:\n%s", n.Name, n.log.String())
	case <-time.After(startLimit):
		n.fleet.t.Fatalf("faults: %s is not ready after %v", n.Name, startLimit)
	}
}

// Kill ends the node with SIGKILL, as a crash would, and waits for it.
func (n *Node) Kill() {
	n.fleet.t.Helper()
	fault := Fault{Kind: Kill, Target: n.Name, From: time.Now()}
	n.signal(syscall.SIGKILL)
	<-n.ended
	fault.To = time.Now()
	n.fleet.deliveries.RecordFault(fault)
}

// Stop suspends the node with SIGSTOP until resume is called.
func (n *Node) Stop() (resume func()) {
	n.fleet.t.Helper()
	fault := Fault{Kind: Stop, Target: n.Name, From: time.Now()}
	n.signal(syscall.SIGSTOP)
	return func() {
		n.signal(syscall.SIGCONT)
		fault.To = time.Now()
		n.fleet.deliveries.RecordFault(fault)
	}
}

// running returns the nodes that have not ended.
func (f *Fleet) running() (nodes []*Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		select {
		case <-n.ended:
		default:
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Drain ends the node with SIGTERM, and waits for it.
func (n *Node) Drain() {
	n.fleet.t.Helper()
	fault := Fault{Kind: Drain, Target: n.Name, From: time.Now()}
	n.signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(endLimit):
		n.fleet.t.Fatalf("faults: %s has not ended %v after SIGTERM", n.Name, endLimit)
	}
	fault.To = time.Now()
	n.fleet.deliveries.RecordFault(fault)
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.fleet.t.Errorf("faults: %s ended with %d:\n%s", n.Name, code, tailOf(n.log.String()))
	}
}

func (n *Node) signal(sig syscall.Signal) {
	n.fleet.t.Helper()
	select {
	case <-n.ended:
		n.fleet.t.Fatalf("faults: %s ended by itself: %v\n%s", n.Name, n.cmd.ProcessState, tailOf(n.log.String()))
	default:
	}
	n.send(sig)
}

// send sends a signal. It may be called concurrently with the other methods, and does
// nothing when the process has ended.
func (n *Node) send(sig syscall.Signal) { _ = n.cmd.Process.Signal(sig) }

// end kills the node at the end of the test, without recording a fault.
func (n *Node) end() {
	_ = n.stdin.Close()
	_ = n.cmd.Process.Kill() // it may have ended already
	<-n.ended
}

// tailOf returns the end of a log.
func tailOf(log string) string { return log[max(0, len(log)-4000):] }
