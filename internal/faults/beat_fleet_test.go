package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// flock is the processes of `wakebell beat` of a round.
type flock struct {
	w       *world
	account *runAccount
	program string
	prefix  string // of the schedules; empty: none
	addr    string // of Redis, or of a proxy before it
	beats   []*beatProcess
}

// beatProcess is one of them.
type beatProcess struct {
	cmd   *exec.Cmd
	log   bytes.Buffer
	fired chan struct{} // closed when it has printed a run
	ended chan struct{} // closed when it is gone and all it printed is in the account
}

// newFlock builds the program.
func newFlock(w *world, account *runAccount) *flock {
	w.Helper()
	f := &flock{w: w, account: account, addr: w.server.Addr, program: filepath.Join(w.TempDir(), "wakebell")}
	out, err := exec.CommandContext(w.Context(), "go", "build", "-o", f.program, "../../cmd/wakebell").CombinedOutput()
	require.NoError(w, err, string(out))
	return f
}

// launch starts a beat. It ends with the test at the latest.
func (f *flock) launch() *beatProcess {
	f.w.Helper()
	b := &beatProcess{fired: make(chan struct{}), ended: make(chan struct{})}
	b.cmd = exec.Command(f.program, "beat", "--log-level", "error", "--prefix", f.prefix, "--redis", "redis://"+f.addr)
	b.cmd.Stderr, b.cmd.SysProcAttr = &b.log, redistest.ChildAttr()
	stdout, err := b.cmd.StdoutPipe()
	require.NoError(f.w, err)
	require.NoError(f.w, b.cmd.Start())
	f.w.Cleanup(func() { _ = b.cmd.Process.Kill(); <-b.ended }) // it may have ended
	go func() {
		defer close(b.ended)
		f.follow(b, bufio.NewReader(stdout))
		_ = b.cmd.Wait() // how it ended is in ProcessState
	}()
	return b
}

// follow puts the runs that a beat prints into the account until it is gone. It
// may be killed within a line.
func (f *flock) follow(b *beatProcess, stdout *bufio.Reader) {
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

func (f *flock) start() { f.beats = append(f.beats, f.launch()) }

// fires reports whether all beats have fired.
func (f *flock) fires() bool {
	for _, b := range f.beats {
		select {
		case <-b.fired:
		default:
			return false
		}
	}
	return true
}

// kill ends a beat as a crash would (SIGKILL) and starts one in its place, which
// is not waited for: it may be struck while it starts.
func (f *flock) kill(i int) {
	f.w.Helper()
	b := f.beats[i]
	select {
	case <-b.ended:
		f.w.Fatalf("a beat ended by itself: %v\n%s", b.cmd.ProcessState, tailOf(b.log.String()))
	default:
	}
	f.account.killed(time.Now())
	_ = b.cmd.Process.Kill() // it ends at the same moment at worst
	<-b.ended
	f.beats[i] = f.launch()
}

// end kills all of them.
func (f *flock) end() {
	for _, b := range f.beats {
		_ = b.cmd.Process.Kill() // it ends at the same moment at worst
		<-b.ended
	}
}
