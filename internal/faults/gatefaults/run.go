package gatefaults

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// Participants is the number of processes of a history.
	Participants = 8

	// stuckAfter is the wait for a turn after which a participant counts as stuck. A
	// turn comes within a few seconds; the rest is for a machine that stalls.
	stuckAfter = time.Minute
)

// Run has the processes of a history and what they have printed.
type Run struct {
	T     testing.TB
	Gate  string
	Redis func(participant int) string // the address; see [BySentinel] and [InCluster]
	Guard string                       // the address of the Redis of the guard; empty: that of the gate
	Lasts time.Duration                // how long faults are injected; 0: 6 s

	all []*process

	mu    sync.Mutex
	h     History
	turns map[uint64]*held
	gotBy [Participants]int
	lines []string // all lines, with the number and the process id of the participant
}

// process is a process of a participant, from its start to its end.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	killed time.Time // before the signal; zero: it was not killed
	mine   map[uint64]bool
	read   chan struct{} // closed when all its output is read
}

func (w *Run) start(n int, seed uint64) *process {
	self, err := os.Executable()
	require.NoError(w.T, err)
	cmd := exec.CommandContext(w.T.Context(), self)
	redis := w.Redis(n)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", Variable, redis, cmp.Or(w.Guard, redis), w.Gate, seed))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(w.T, err)
	out, err := cmd.StdoutPipe()
	require.NoError(w.T, err)
	require.NoError(w.T, cmd.Start())
	p := &process{cmd: cmd, in: in, mine: map[uint64]bool{}, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.note(n, p, lines.Text())
		}
	}()
	return p
}

// note parses a line of a participant. The last line of a killed participant may be
// incomplete.
func (w *Run) note(n int, p *process, line string) {
	var what string
	var fence uint64
	var at [3]int64
	read, _ := fmt.Sscan(line, &what, &fence, &at[0], &at[1], &at[2])
	if read < 3 || what == "got" && read < 5 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%d/%d %s", n, p.cmd.Process.Pid, line))
	turn := w.turns[fence]
	switch what {
	case "ticket":
		w.h.tickets[fence] = span{at[0], at[1]}
	case "got":
		if turn != nil {
			w.h.twice = append(w.h.twice, fence)
		}
		p.mine[fence] = true
		w.gotBy[n]++
		// Without further information it may end at any time after this.
		w.turns[fence] = &held{fence: fence, got: span{at[0], at[1]}, live: at[1], good: at[2], freed: span{at[1], never}}
	case "holds":
		turn.good = at[0]
	case "wrote":
		w.h.wrote = append(w.h.wrote, write{fence, span{at[0], at[1]}})
	case "refused":
		w.h.refused++
	case "releasing":
		turn.live, turn.freed.from = at[0], at[0]
	case "released":
		turn.freed, turn.known = span{at[0], at[1]}, true
	case "lost":
		turn.live, turn.freed.from = at[0], at[0]
	}
	if what == "released" || what == "lost" {
		delete(p.mine, fence)
	}
}

// Kill ends a participant with SIGKILL and starts another in its place.
func (w *Run) Kill(n int, random *rand.Rand) {
	p := w.all[n]
	p.killed = time.Now()
	require.NoError(w.T, p.cmd.Process.Kill())
	<-p.read
	_ = p.cmd.Wait() // it was killed
	w.ended(p)
	w.all[n] = w.start(n, random.Uint64())
}

// ended notes until when a killed participant had its turns, except those that it was
// releasing or had lost.
func (w *Run) ended(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for fence := range p.mine {
		if t := w.turns[fence]; t.live == t.got.to {
			t.live = max(t.live, min(t.good, p.killed.UnixNano()))
			t.freed.from = t.live
		}
	}
}

// Suspend stops a participant with SIGSTOP for a while, which is longer than its lease.
// It returns after the participant can have noticed that it has lost its turn.
func (w *Run) Suspend(n int, random *rand.Rand) {
	p := w.all[n]
	require.NoError(w.T, p.cmd.Process.Signal(syscall.SIGSTOP))
	<-time.After(Lease + time.Duration(random.IntN(600))*time.Millisecond)
	require.NoError(w.T, p.cmd.Process.Signal(syscall.SIGCONT))
	<-time.After(100 * time.Millisecond)
}

// Usual injects the fault of all classes of histories: a participant is killed and
// replaced, or suspended for longer than its lease.
func (w *Run) Usual(random *rand.Rand) {
	n := random.IntN(Participants)
	if random.IntN(2) == 0 {
		w.Kill(n, random)
		return
	}
	w.Suspend(n, random)
}

// endOrderly lets a participant finish.
func (w *Run) endOrderly(p *process) {
	require.NoError(w.T, p.in.Close())
	<-p.read
	require.NoError(w.T, p.cmd.Wait())
}

// Play records a history: it injects faults for a while, and then waits until every
// participant has had a turn since.
func (w *Run) Play(seed uint64, fault func(random *rand.Rand)) *History {
	w.h = History{tickets: map[uint64]span{}}
	w.turns = map[uint64]*held{}
	w.all = make([]*process, Participants)
	for n := range w.all {
		w.all[n] = w.start(n, seed<<8+uint64(n))
	}
	random := rand.New(rand.NewPCG(seed, 99)) // a history is repeatable
	for end := time.Now().Add(cmp.Or(w.Lasts, 6*time.Second)); time.Now().Before(end); {
		<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
		fault(random)
	}
	w.h.Stuck = w.stuck()
	for _, p := range w.all {
		w.endOrderly(p)
	}
	for _, turn := range w.turns {
		w.h.turns = append(w.h.turns, *turn)
	}
	return &w.h
}

// stuck waits until every participant has had another turn, and returns those that get
// none.
func (w *Run) stuck() (all []int) {
	w.mu.Lock()
	before := w.gotBy
	w.mu.Unlock()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(stuckAfter); ; {
		w.mu.Lock()
		now := w.gotBy
		w.mu.Unlock()
		all = all[:0]
		for n := range before {
			if now[n] == before[n] {
				all = append(all, n)
			}
		}
		if len(all) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-limit:
			return all
		}
	}
}

// Lines returns what the participants have printed.
func (w *Run) Lines() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}
