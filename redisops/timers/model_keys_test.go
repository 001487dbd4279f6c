package timers

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// keyModel is the timers of a topic with limits per key in plain Go. Instants are long past or far in
// the future, and tokens of keys return after the test, so that the result does not depend on the clock.
type keyModel struct {
	t        *testing.T
	f        *fixture
	kind     keyKind
	settings keySettings
	holders  [2]*fixture
	number   int
	timers   map[string]*keyTimer
	leases   map[string]keyLease  // of running timers, by id
	left     map[string]bool      // ids whose keys a peer may have left behind
	taken    map[string][]float64 // by key: the charges of tokens, in the order of starts
}

type keyTimer struct {
	id, key string
	at      int // the instant; in the future from 100 on
	number  int // of its schedule
	holds   bool
	failed  bool // since it was scheduled
	later   bool // waits for a retry that is not due
	crashed bool // its lease has expired
	unsure  bool // it holds its key, or has lost it because more held it than may
	waits   bool // for a token
}

// keyLease is a lease of a holder, and its place in a key run.
type keyLease struct {
	exchange.Lease
	owner, run, place int
	returns           bool // the key run does not go on: the holder releases it
}

// TestModelOfKeys checks that a claim gives, of each key, the timers that may run, in
// their order, and that no timer waits for a key that is free.
func TestModelOfKeys(t *testing.T) {
	t.Parallel()
	checkKeyModel(t, keyKind{})
}

// TestModelOfKeyRuns checks the same with key runs, of one node or both.
func TestModelOfKeyRuns(t *testing.T) {
	t.Parallel()
	checkKeyModel(t, keyKind{runs: true})
}

// TestModelOfKeyTokens checks the same with rate limits per key, with and without PerKey, in which
// no token returns. TestModelOfKeyRates has the instants of tokens.
func TestModelOfKeyTokens(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]keyKind{
		"limits":             {rate: true, runs: true},
		"rates alone":        {rate: true, unbounded: true},
		"turns":              {rate: true, fair: drawTurns},
		"rates alone, turns": {rate: true, unbounded: true, fair: drawTurns},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkKeyModel(t, kind)
		})
	}
}

// TestModelOfFairKeys checks the same where keys take turns, for the nodes that have FairKeys.
func TestModelOfFairKeys(t *testing.T) {
	t.Parallel()
	turn := rapid.IntRange(1, 3)
	for name, draw := range map[string]func(*rapid.T) [2]int{
		"all nodes": func(rt *rapid.T) [2]int { return [2]int{turn.Draw(rt, "fair"), turn.Draw(rt, "fair")} },
		"one node":  func(rt *rapid.T) [2]int { return [2]int{turn.Draw(rt, "fair"), 0} },
		"by turns":  drawTurns,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkKeyModel(t, keyKind{fair: draw, runs: true})
		})
	}
}

func checkKeyModel(t *testing.T, kind keyKind) {
	t.Helper()
	base := newFixture(t, redistest.Shared(t))
	rapid.Check(t, func(rt *rapid.T) {
		m := &keyModel{
			t: t, f: base.on(fmt.Sprintf("keys-%x", rand.Uint64())), kind: kind,
			timers: map[string]*keyTimer{}, leases: map[string]keyLease{}, left: map[string]bool{}, taken: map[string][]float64{},
		}
		m.change(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"schedule":     m.schedule,
			"reschedule":   m.reschedule,
			"cancel":       m.cancel,
			"claim":        m.claim,
			"claim again":  m.claim,
			"settle":       m.settle,
			"settle again": m.settle,
			"pass on":      m.passOn,
			"pass on more": m.passOn,
			"replay":       m.replay,
			"sweep":        m.sweep,
			"drain":        m.drain,
			"crash":        m.crash,
			"change":       m.change,
			"peer":         m.peer,
		})
		m.drain(rt)
	})
}

var keyModelKeys = sampled("", "k", "k", "k", "kk", "\xff")

func (m *keyModel) instant(at int) time.Time {
	if at >= 100 {
		return time.Unix(4_000_000_000+int64(at), 0)
	}
	return time.Unix(1_700_000_000+int64(at), 0)
}

// end forgets the lease of a timer. What waits behind it in its key run is released.
func (m *keyModel) end(id string) {
	ended, leased := m.leases[id]
	delete(m.leases, id)
	if !leased || m.follows(ended) {
		return
	}
	for id, l := range m.leases {
		if l.run == ended.run {
			l.returns = true
			m.leases[id] = l
		}
	}
}

// follows reports whether a lease waits behind another one of its key run.
func (m *keyModel) follows(l keyLease) bool {
	for _, other := range m.leases {
		if other.run == l.run && other.place < l.place {
			return true
		}
	}
	return false
}

func (m *keyModel) put(id, key string, at int) {
	m.number++
	m.end(id)
	m.timers[id] = &keyTimer{id: id, key: key, at: at, number: m.number}
}

func (m *keyModel) schedule(rt *rapid.T) {
	var entries []Entry
	for _, id := range rapid.SliceOfNDistinct(modelIDs, 1, 3, rapid.ID).Draw(rt, "ids") {
		key, at := keyModelKeys.Draw(rt, "key"), rapid.SampledFrom([]int{1, 1, 2, 3, 100, 101}).Draw(rt, "at")
		if key == "" && (m.timers[id] != nil || m.left[id]) {
			key = "k" // a timer without a key would keep its key, and its place until a claim looks at it
		}
		entries = append(entries, Entry{ID: id, Key: key, At: m.instant(at)})
		m.put(id, key, at)
	}
	m.f.schedule(m.t, entries...)
}

func (m *keyModel) reschedule(rt *rapid.T) {
	id, at := modelIDs.Draw(rt, "id"), rapid.SampledFrom([]int{1, 2, 3, 100, 101}).Draw(rt, "at")
	if old := m.timers[id]; old != nil {
		_, err := m.f.Reschedule(m.t.Context(), m.f.topic, id, m.instant(at), 0)
		require.NoError(rt, err)
		m.put(id, old.key, at)
	}
}

func (m *keyModel) cancel(rt *rapid.T) {
	id := modelIDs.Draw(rt, "id")
	_, err := m.f.Cancel(m.t.Context(), m.f.topic, id)
	require.NoError(rt, err)
	delete(m.timers, id)
	m.end(id)
}

// peer removes a timer as a Python worker does, which does not free its key. A sweep does.
func (m *keyModel) peer(rt *rapid.T) {
	id := modelIDs.Draw(rt, "id")
	m.f.peerCommit(m.t, id)
	m.left[id] = true
	delete(m.timers, id)
	m.end(id)
	m.sweep(rt)
}

func (m *keyModel) claim(rt *rapid.T) {
	m.claimFor(rt, rapid.IntRange(1, 3).Draw(rt, "want"), time.Minute)
}

// crash claims timers whose leases expire, because their holder is gone. The timers keep
// their keys, and are due again.
func (m *keyModel) crash(rt *rapid.T) {
	const ttl = time.Millisecond
	reply := m.claimFor(rt, rapid.IntRange(1, 3).Draw(rt, "want"), ttl)
	for _, l := range reply.Leases {
		delete(m.leases, l.ID)
		m.timers[l.ID].crashed = true
	}
	for end := m.f.now(m.t).Add(2 * ttl); !m.f.now(m.t).After(end); {
		runtime.Gosched() // until the leases have expired
	}
}

func (m *keyModel) settle(rt *rapid.T) {
	if len(m.leases) > 0 {
		owner, settle := m.verdicts(rt)
		m.settleOf(rt, owner, settle...)
	}
}

func (m *keyModel) settleOf(rt *rapid.T, holder int, settle ...exchange.Settlement) {
	m.giveBack(settle)
	r := m.holders[holder].Request(0, time.Minute)
	r.Flow, r.KeyRun, r.Settle = m.flow(holder), m.keyRun(holder), settle
	require.Empty(rt, m.holders[holder].Run(m.t, r).Refused)
}

// passOn settles timers and claims others in the same exchange.
func (m *keyModel) passOn(rt *rapid.T) {
	var settle []exchange.Settlement
	for n := rapid.IntRange(1, 2).Draw(rt, "settlements"); len(settle) < n && len(m.leases) > 0; {
		_, more := m.verdicts(rt)
		settle = append(settle, more...)
	}
	m.claimFor(rt, rapid.IntRange(1, 3).Draw(rt, "want"), time.Minute, settle...)
}

// verdicts returns a settlement of a timer, and applies it to the model. If it does not end the timer,
// the rest of its key run is released, often at once.
func (m *keyModel) verdicts(rt *rapid.T) (owner int, list []exchange.Settlement) {
	var ids []string
	for id, l := range m.leases {
		if l.returns || !m.follows(l) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	l, timer := m.leases[id], m.timers[id]
	verdict := rapid.SampledFrom([]exchange.Verdict{exchange.Ack, exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release}).Draw(rt, "verdict")
	if l.returns {
		return l.owner, []exchange.Settlement{m.release(l)}
	}
	s := storetest.Verdict(verdict, l.Lease)
	switch verdict {
	case exchange.Ack, exchange.DeadLetter:
		delete(m.leases, id)
		delete(m.timers, id)
		return l.owner, []exchange.Settlement{s}
	case exchange.Release:
		m.end(id)
		m.leases[id] = l
		s = m.release(l)
	default:
		if rapid.Bool().Draw(rt, "later") {
			s.Delay = time.Hour
		}
		m.end(id)
		timer.failed, timer.later = true, s.Delay > 0
	}
	list = []exchange.Settlement{s}
	if rapid.Bool().Draw(rt, "rest at once") {
		for place := 1; place <= longestRun; place++ {
			for _, rest := range m.leases {
				if rest.run == l.run && rest.place == place {
					list = append(list, m.release(rest))
				}
			}
		}
	}
	return l.owner, list
}

// release returns the release of a lease, and applies it to the model.
func (m *keyModel) release(l keyLease) exchange.Settlement {
	timer := m.timers[l.ID]
	delete(m.leases, l.ID)
	timer.holds, timer.unsure = timer.failed && !m.kind.unbounded, false // it still waits for its retry
	return storetest.Verdict(exchange.Release, l.Lease)
}

func (m *keyModel) replay(rt *rapid.T) {
	holder := rapid.IntRange(0, 1).Draw(rt, "holder")
	f := m.holders[holder]
	r := f.Request(0, time.Minute)
	r.Flow = m.flow(holder)
	first := f.Run(m.t, r)
	require.Equal(rt, storetest.IDs(first.Leases), storetest.IDs(f.Run(m.t, r).Leases))
}

func (m *keyModel) sweep(rt *rapid.T) {
	require.NoError(rt, m.f.src.SweepKeys(m.t.Context(), m.flow(rapid.IntRange(0, 1).Draw(rt, "holder"))))
	m.observe(rt) // it wakes timers that wait behind others, for longer than for one token
}

// drain claims and acks until nothing can be claimed: nothing stays parked for a key
// that is free.
func (m *keyModel) drain(rt *rapid.T) {
	for round := 0; ; round++ {
		require.Less(rt, round, 100, "exchanges without end")
		for id, l := range m.leases {
			m.settleOf(rt, l.owner, ack(l.Lease))
			delete(m.timers, id)
			delete(m.leases, id)
		}
		if reply := m.claimFor(rt, 10, time.Minute); len(reply.Leases) == 0 && !looksSoon(reply) {
			break
		}
	}
	require.Empty(rt, m.startable(0))
}
