package faults

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
)

const (
	mostShards = 6
	// Parked timers are those that are moved: timers that are due within 3 s are handled
	// where they are, and the moves begin 10 s after the first command.
	parkedTimers = 1000
	parkedFirst  = 16 * time.Second
	parkedLast   = 24 * time.Second
	// mostMoves is the largest number of writes to outboxes before a kill.
	mostMoves = 6
	// longestReshard is the longest time until `wakebell topics reshard` is killed.
	longestReshard = 1500 * time.Millisecond
)

// reshard changes the number of shards of a topic with `wakebell topics reshard`, which is
// killed at random instants and at writes to outboxes, and started again until it is done,
// while nodes handle the topic and clients schedule.
func reshard(w *world) {
	w.redis()
	w.divided = true
	before := 1 + w.rng.IntN(mostShards)
	cfg := w.config()
	cfg.Shards = map[string]int{topic: before}
	w.start(3, cfg)
	for _, err := range newClient(w.T, w.rdb).Reshard(w.Context(), topic, before) { // until nodes and clients have the first number
		require.NoError(w, err)
	}
	l := w.usual()
	l.pause = 150 * time.Millisecond
	end := w.begin(l)
	w.park()
	m := w.mover(1 + (before+w.rng.IntN(mostShards-1))%mostShards)
	kills := 0
	for !m.runs(between(w.rng, 20*time.Millisecond, longestReshard), 1+w.rng.IntN(mostMoves)) {
		kills++
		w.tried()
		w.pause(between(w.rng, 0, 100*time.Millisecond))
	}
	end()
	w.settled(settleLimit)
	// The last command of a killed process may run after the next process has ended, and
	// take a batch. Nodes deliver it when they look for what has come since.
	w.eventually("nodes empty the outboxes", func() bool {
		return len(w.keys(w.Context(), "timers_exchange:*:moving")) == 0
	})
	report.Note("reshard", "from %d shards to %d: %d kills", before, m.shards, kills)
}

// park schedules the timers that are to be moved.
func (w *world) park() {
	w.Helper()
	s := &scheduler{pace: usualPace(), calls: w.deliveries, name: "client-parked", client: newClient(w.T, w.rdb)}
	var plans []plan
	for i := range parkedTimers {
		work := usualWork(w.rng)
		work.Generation = 1
		plans = append(plans, plan{id: fmt.Sprintf("%s/%d", s.name, i+1), work: work, in: between(w.rng, parkedFirst, parkedLast)})
	}
	require.True(w, s.try(w.Context(), plans))
}

// mover runs `wakebell topics reshard`.
type mover struct {
	*world
	program string
	addr    string // of a proxy that counts commands
	shards  int

	mu    sync.Mutex
	moves int // writes to outboxes until kill is called
	kill  func()
}

func (w *world) mover(shards int) *mover {
	w.Helper()
	p := faultproxy.Start(w.T, w.server.Addr)
	m := &mover{world: w, program: redistest.Program(w), addr: p.Addr, shards: shards}
	p.SetRule(m.rule)
	return m
}

// rule kills the command when it has sent so many writes to outboxes. The last one is
// executed.
func (m *mover) rule(command []string) faultproxy.Fate {
	writes := strings.HasPrefix(strings.ToLower(command[0]), "eval")
	if !writes || !slices.ContainsFunc(command, func(word string) bool { return strings.HasSuffix(word, ":moving") }) {
		return faultproxy.Fate{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moves--; m.moves != 0 {
		return faultproxy.Fate{}
	}
	m.kill()
	return faultproxy.Lose()
}

// runs starts the command, kills it with SIGKILL after a while or after a number of writes
// to outboxes, and reports whether it was done before.
func (m *mover) runs(lasts time.Duration, moves int) (done bool) {
	m.Helper()
	var log bytes.Buffer
	cmd := exec.CommandContext(m.Context(), m.program, "topics", "reshard", topic,
		"--shards", strconv.Itoa(m.shards), "--redis", fmt.Sprintf("redis://%s?read_timeout=%s", m.addr, settleLimit))
	cmd.Stderr, cmd.SysProcAttr = &log, redistest.ChildAttr()
	require.NoError(m, cmd.Start())
	killed := false
	kill := func() { killed = cmd.Process.Kill() == nil || killed } // it fails if the process has ended
	m.mu.Lock()
	m.moves, m.kill = moves, kill
	m.mu.Unlock()
	timer := time.AfterFunc(lasts, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		kill()
	})
	err := cmd.Wait()
	timer.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moves = 0
	if !killed {
		require.NoError(m, err, log.String())
	}
	return err == nil
}
