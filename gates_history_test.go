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
	citizens      = 8
	historyLength = 6 * time.Second
)

// town is the processes of a history, and what they have written.
type town struct {
	t     *testing.T
	addrs [2]string // of Redis, and of the one that the guard uses
	gate  string

	mu    sync.Mutex
	h     history
	turns map[uint64]*held
	gotBy [citizens]int
	told  []string // all lines, by whom
}

// citizenProcess is one life of a citizen.
type citizenProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	killed time.Time // before the signal; zero: it was not
	mine   map[uint64]bool
	read   chan struct{} // closed when all that it wrote is read
}

func (w *town) start(n int, seed uint64) *citizenProcess {
	self, err := os.Executable()
	require.NoError(w.t, err)
	cmd := exec.CommandContext(w.t.Context(), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", citizenVariable, w.addrs[0], w.addrs[1], w.gate, seed))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(w.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	p := &citizenProcess{cmd: cmd, in: in, mine: map[uint64]bool{}, read: make(chan struct{})}
	go func() {
		defer close(p.read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.note(n, p, lines.Text())
		}
	}()
	return p
}

// note takes a line of a citizen. The last one of a citizen that was killed may
// be cut.
func (w *town) note(n int, p *citizenProcess, line string) {
	var what string
	var fence uint64
	var at [3]int64
	read, _ := fmt.Sscan(line, &what, &fence, &at[0], &at[1], &at[2])
	if read < 3 || what == "got" && read < 5 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf("%d/%d %s", n, p.cmd.Process.Pid, line))
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
		// Until something else is known it may end at any time after this.
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

func (w *town) kill(p *citizenProcess) {
	p.killed = time.Now()
	require.NoError(w.t, p.cmd.Process.Kill())
	<-p.read
	_ = p.cmd.Wait() // it was killed
	w.mu.Lock()
	defer w.mu.Unlock()
	for fence := range p.mine { // what it had it had until then, unless it was giving it back or late
		if t := w.turns[fence]; t.live == t.got.to {
			t.live = max(t.live, min(t.good, p.killed.UnixNano()))
			t.freed.from = t.live
		}
	}
}

// endOrderly lets a citizen finish.
func (w *town) endOrderly(p *citizenProcess) {
	require.NoError(w.t, p.in.Close())
	<-p.read
	require.NoError(w.t, p.cmd.Wait())
}

// live runs a history: trouble is what happens to the citizens for its length,
// and then everybody must get a turn.
func (w *town) live(seed uint64, trouble func(random *rand.Rand, all []*citizenProcess)) *history {
	w.h = history{tickets: map[uint64]span{}}
	w.turns = map[uint64]*held{}
	all := make([]*citizenProcess, citizens)
	for n := range all {
		all[n] = w.start(n, seed<<8+uint64(n))
	}
	random := rand.New(rand.NewPCG(seed, 99)) // a history is repeatable
	for end := time.Now().Add(historyLength); time.Now().Before(end); {
		<-time.After(time.Duration(random.IntN(500)) * time.Millisecond)
		trouble(random, all)
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
	}, time.Minute, 10*time.Millisecond, "somebody is stuck: %v, then %v", before, &w.gotBy)
	for _, p := range all {
		w.endOrderly(p)
	}
	for _, turn := range w.turns {
		w.h.turns = append(w.h.turns, *turn)
	}
	return &w.h
}

// usual is the trouble of both classes: a process is killed and replaced, or
// stopped for longer than its lease.
func (w *town) usual(random *rand.Rand, all []*citizenProcess) {
	n := random.IntN(len(all))
	p := all[n]
	if random.IntN(2) == 0 {
		w.kill(p)
		all[n] = w.start(n, random.Uint64())
		return
	}
	require.NoError(w.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	<-time.After(citizenLease + time.Duration(random.IntN(600))*time.Millisecond)
	require.NoError(w.t, p.cmd.Process.Signal(syscall.SIGCONT))
	<-time.After(100 * time.Millisecond) // it finds out that its turn is over
}

// Eight processes take turns while they are killed, stopped for longer than
// their leases, give up, and Redis crashes and comes back with all its data.
func TestGateHistories(t *testing.T) {
	t.Parallel()
	turns := 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		w := &town{t: t, addrs: [2]string{server.Addr, server.Addr}, gate: "town"}
		h := w.live(seed, func(random *rand.Rand, all []*citizenProcess) {
			if random.IntN(4) == 0 {
				server.Kill()
				<-time.After(time.Duration(random.IntN(1000)) * time.Millisecond)
				server.Restart(t)
				return
			}
			w.usual(random, all)
		})
		require.Empty(t, h.faults(), "seed %d\n%s", seed, strings.Join(w.told, "\n"))
		require.Empty(t, h.staleWrites(), "seed %d", seed)
		turns += len(h.turns)
		t.Logf("seed %d: %d turns, %d tickets, %d writes refused", seed, len(h.turns), len(h.tickets), h.refused)
		server.Stop()
	}
	t.Logf("%d histories from seed %d: %d turns, no overlap, no inversion, no fence that did not grow; 3/N = %.2g",
		*historyRounds, *historySeed, turns, 3/float64(max(turns, 1)))
}

// Where Redis loses data, turns may overlap: the guard refuses what is stale,
// and nobody is stuck.
func TestGateHistoriesWithLossOfData(t *testing.T) {
	t.Parallel()
	guard := redistest.Start(t)
	turns, refused := 0, 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		server := redistest.Start(t)
		rdb := server.Client(t)
		w := &town{t: t, addrs: [2]string{server.Addr, guard.Addr}, gate: fmt.Sprint("town", round)}
		h := w.live(seed, func(random *rand.Rand, all []*citizenProcess) {
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

// A replica that has missed the last writes of its master takes over: what it
// has not seen may be granted again. The guard refuses what is stale, and nobody
// is stuck.
func TestGateHistoriesWithFailover(t *testing.T) {
	t.Parallel()
	guard := redistest.Start(t)
	turns, refused := 0, 0
	for round := range *historyRounds {
		seed := *historySeed + uint64(round)
		watched := redistest.Sentinel(t)
		replica := watched.Replica.Client(t)
		w := &town{t: t, addrs: [2]string{bySentinel + watched.Sentinel.Addr, guard.Addr}, gate: fmt.Sprint("failover", round)}
		step := 0
		h := w.live(seed, func(random *rand.Rand, all []*citizenProcess) {
			if step++; step != 3 {
				w.usual(random, all)
				return
			}
			require.NoError(t, replica.ClientKillByFilter(t.Context(), "TYPE", "master").Err()) // it follows again in a second
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
