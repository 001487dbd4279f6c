package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// beatFleet has the `wakebell beat` processes of a round.
type beatFleet struct {
	w       *world
	account *runAccount
	program string
	prefix  string // of the schedules; empty: none
	addr    string // of Redis, or of a proxy in front of it
	beats   []*beatProcess
}

// beatProcess is a `wakebell beat` process.
type beatProcess struct {
	cmd   *exec.Cmd
	log   bytes.Buffer
	fired chan struct{} // closed when it has printed a run
	ended chan struct{} // closed when it has ended and all its output is in the account
}

// newBeatFleet returns a fleet without processes.
func newBeatFleet(w *world, account *runAccount) *beatFleet {
	w.Helper()
	return &beatFleet{w: w, account: account, addr: w.server.Addr, program: redistest.Program(w)}
}

// launch starts a beat. The end of the test kills it.
func (f *beatFleet) launch() *beatProcess {
	f.w.Helper()
	b := &beatProcess{fired: make(chan struct{}), ended: make(chan struct{})}
	b.cmd = exec.Command(f.program, "beat", "--log-level", "error", "--prefix", f.prefix, "--redis", "redis://"+f.addr)
	b.cmd.Stderr, b.cmd.SysProcAttr = &b.log, redistest.ChildAttr()
	stdout, err := b.cmd.StdoutPipe()
	require.NoError(f.w, err)
	require.NoError(f.w, b.cmd.Start())
	f.w.Cleanup(func() { _ = b.cmd.Process.Kill(); <-b.ended }) // it may have ended already
	f.w.suspectOf(suspect{
		send:  func(sig syscall.Signal) { _ = b.cmd.Process.Signal(sig) }, // it fails only if the process has ended
		ended: b.ended,
	})
	go func() {
		defer close(b.ended)
		f.follow(b, bufio.NewReader(stdout))
		_ = b.cmd.Wait() // ProcessState has the result
	}()
	return b
}

// follow records the runs that a beat prints until it ends. The last line may be
// incomplete, if it was killed.
func (f *beatFleet) follow(b *beatProcess, stdout *bufio.Reader) {
	for first := true; ; first = false {
		line, err := stdout.ReadBytes('\n')
		if err != nil {
			return
		}
		var p printedRun
		if err := json.Unmarshal(line, &p); err != nil {
			f.w.Errorf("a beat printed %q: %v", line, err)
			continue
		}
		if f.account.printed(p); first {
			close(b.fired)
		}
	}
}

func (f *beatFleet) start() { f.beats = append(f.beats, f.launch()) }

// fires reports whether all beats have fired.
func (f *beatFleet) fires() bool {
	for _, b := range f.beats {
		select {
		case <-b.fired:
		default:
			return false
		}
	}
	return true
}

// kill ends a beat with SIGKILL and starts another one. It does not wait for that
// one: a kill may hit it while it starts.
func (f *beatFleet) kill(i int) {
	f.w.Helper()
	b := f.beats[i]
	select {
	case <-b.ended:
		f.w.Fatalf("a beat ended by itself: %v\n%s", b.cmd.ProcessState, tailOf(b.log.String()))
	default:
	}
	f.account.killed(time.Now())
	_ = b.cmd.Process.Kill() // it fails only if the process has just ended
	<-b.ended
	f.beats[i] = f.launch()
}

// end kills all beats.
func (f *beatFleet) end() {
	for _, b := range f.beats {
		_ = b.cmd.Process.Kill() // it fails only if the process has just ended
		<-b.ended
	}
}
