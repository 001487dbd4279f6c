package wakebell_test

import (
	"bufio"
	"flag"
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

	"github.com/wakebell/wakebell/internal/redistest"
)

var (
	historySeed   = flag.Uint64("gate-seed", 1, "seed of the histories of gates")
	historyRounds = flag.Int("gate-rounds", 1, "how many histories of each class to make")
)

const (
	participants  = 8
	historyLength = 6 * time.Second
)

// historyRun has the processes of a history and what they have printed.
type historyRun struct {
	t     *testing.T
	addrs [2]string // of Redis, and of the Redis of the guard
	gate  string

	mu    sync.Mutex
	h     history
	turns map[uint64]*held
	gotBy [participants]int
	lines []string // all lines, with the number and the process id of the participant
}

// participantProcess is a process of a participant, from its start to its end.
type participantProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	killed time.Time // before the signal; zero: it was not killed
	mine   map[uint64]bool
	read   chan struct{} // closed when all its output is read
}

func (w *historyRun) start(n int, seed uint64) *participantProcess {
	self, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", participantVariable, w.addrs[0], w.addrs[1], w.gate, seed))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(w.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	p := &participantProcess{cmd: cmd, in: in, mine: map[uint64]bool{}, read: make(chan struct{})}
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
func (w *historyRun) note(n int, p *participantProcess, line string) {
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
			w.t.Errorf("fence %d was granted twice", fence)
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

func (w *historyRun) kill(p *participantProcess) {
	p.killed = time.Now()
	require.NoError(w.t, p.cmd.Process.Kill())
	<-p.read
	_ = p.cmd.Wait() // it was killed
	w.mu.Lock()
	defer w.mu.Unlock()
	for fence := range p.mine { // its turns lasted until then, except those that it was releasing or had lost
		if t := w.turns[fence]; t.live == t.got.to {
			t.live = max(t.live, min(t.good, p.killed.UnixNano()))
			t.freed.from = t.live
		}
	}
}

// endOrderly lets a participant finish.
func (w *historyRun) endOrderly(p *participantProcess) {
	require.NoError(w.t, p.in.Close())
	<-p.read
	require.NoError(w.t, p.cmd.Wait())
}

// play runs a history: it injects faults for its length, and then requires that every
// participant gets a turn.
func (w *historyRun) play(seed uint64, fault func(random *rand.Rand, all []*participantProcess)) *history {
	w.h = history{tickets: map[uint64]span{}}
	w.turns = map[uint64]*held{}
	all := make([]*participantProcess, participants)
	for n := range all {
		all[n] = w.start(n, seed<<8+uint64(n))
	}
	random := rand.New(rand.NewPCG(seed, 99)) // a history is repeatable
	for end := time.Now().Add(historyLength); time.Now().Before(end); {
		<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
		fault(random, all)
	}
	w.mu.Lock()
	before := w.gotBy
	w.mu.Unlock()
	require.Eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for n := range before {
			if w.gotBy[n] == before[n] {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond, "a participant is stuck: %v, then %v", before, &w.gotBy)
	for _, p := range all {
		w.endOrderly(p)
	}
	for _, turn := range w.turns {
		w.h.turns = append(w.h.turns, *turn)
	}
	return &w.h
}

// usual injects the faults of both classes: a participant is killed and replaced, or
// suspended for longer than its lease.
func (w *historyRun) usual(random *rand.Rand, all []*participantProcess) {
	n := random.IntN(len(all))
	p := all[n]
	if random.IntN(2) == 0 {
		w.kill(p)
		all[n] = w.start(n, random.Uint64())
		return
	}
	require.NoError(w.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	<-time.After(participantLease + time.Duration(random.IntN(600))*time.Millisecond)
	require.NoError(w.t, p.cmd.Process.Signal(syscall.SIGCONT))
	<-time.After(100 * time.Millisecond) // it notices that it has lost its turn
}

// Eight processes take turns while they are killed, suspended for longer than their
// leases and give up, and while Redis crashes and restarts with all its data.
func TestGateHistories(t *testing.T) {
	t.Parallel()
	turns := 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		w := &historyRun{t: t, addrs: [2]string{server.Addr, server.Addr}, gate: "historyRun"}
		h := w.play(seed, func(random *rand.Rand, all []*participantProcess) {
			if random.IntN(4) == 0 {
				server.Kill()
				<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
				server.Restart(t)
				return
			}
			w.usual(random, all)
		})
		require.Empty(t, h.faults(), "seed %d\n%s", seed, strings.Join(w.lines, "\n"))
		require.Empty(t, h.staleWrites(), "seed %d", seed)
		turns += len(h.turns)
		t.Logf("seed %d: %d turns, %d tickets, %d writes refused", seed, len(h.turns), len(h.tickets), h.refused)
		server.Stop()
	}
	t.Logf("%d histories from seed %d: %d turns, no overlap, no inversion, no fence that did not grow; 3/N = %.2g",
		*historyRounds, *historySeed, turns, 3/float64(max(turns, 1)))
}

// If Redis loses data, turns may overlap. The guard refuses stale writes, and no
// participant is stuck.
func TestGateHistoriesWithLossOfData(t *testing.T) {
	t.Parallel()
	guard := redistest.Start(t)
	turns, refused := 0, 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		server := redistest.Start(t)
		rdb := server.Client(t)
		w := &historyRun{t: t, addrs: [2]string{server.Addr, guard.Addr}, gate: fmt.Sprint("historyRun", round)}
		h := w.play(seed, func(random *rand.Rand, all []*participantProcess) {
			switch random.IntN(4) {
			case 0:
				require.NoError(t, rdb.FlushAll(t.Context()).Err())
			case 1:
				server.Kill()
				server.Restart(t)
			default:
				w.usual(random, all)
			}
		})
		require.Empty(t, h.staleWrites(), "seed %d", seed)
		t.Logf("seed %d: %d turns, %d writes, %d refused", seed, len(h.turns), len(h.wrote), h.refused)
		turns, refused = turns+len(h.turns), refused+h.refused
		server.Stop()
	}
	t.Logf("%d histories from seed %d: %d turns, %d writes refused, none that was stale let through", *historyRounds, *historySeed, turns, refused)
}

// A replica that has missed the last writes of its master takes over, so a fence may
// be granted twice. The guard refuses stale writes, and no participant is stuck.
func TestGateHistoriesWithFailover(t *testing.T) {
	t.Parallel()
	guard := redistest.Start(t)
	turns, refused := 0, 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		watched := redistest.Sentinel(t)
		replica := watched.Replica.Client(t)
		w := &historyRun{t: t, addrs: [2]string{bySentinel + watched.Sentinel.Addr, guard.Addr}, gate: fmt.Sprint("failover", round)}
		step := 0
		h := w.play(seed, func(random *rand.Rand, all []*participantProcess) {
			if step++; step != 3 {
				w.usual(random, all)
				return
			}
			require.NoError(t, replica.ClientKillByFilter(t.Context(), "TYPE", "master").Err()) // it connects again within a second
			<-time.After(time.Duration(random.IntN(900)) * time.Millisecond)
			watched.Master.Kill()
		})
		require.Empty(t, h.staleWrites(), "seed %d", seed)
		require.Equal(t, "master", replica.Do(t.Context(), "ROLE").Val().([]any)[0])
		t.Logf("seed %d: %d turns, %d writes, %d refused", seed, len(h.turns), len(h.wrote), h.refused)
		turns, refused = turns+len(h.turns), refused+h.refused
		watched.Sentinel.Stop()
		watched.Replica.Stop()
	}
	t.Logf("%d failovers from seed %d: %d turns, %d writes refused, none that was stale let through", *historyRounds, *historySeed, turns, refused)
}
