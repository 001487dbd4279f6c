package timers

import (
	"cmp"
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

// keyModel is the timers of a topic with PerKey(limit) in plain Go. Instants are long
// past or far in the future, so that the result does not depend on the clock.
type keyModel struct {
	t       *testing.T
	f       *fixture
	holders [2]*fixture
	limit   int
	fair    [2]int // FairKeys of the holders
	draw    func(*rapid.T) [2]int
	number  int
	timers  map[string]*keyTimer
	leases  map[string]exchange.Lease // of running timers, by id
	owner   map[string]int            // which holder has them
	left    map[string]bool           // ids whose keys a peer may have left behind
}

type keyTimer struct {
	id, key string
	at      int // the instant; in the future from 100 on
	number  int // of its schedule
	holds   bool
	failed  bool // since it was scheduled
	later   bool // waits for a retry that is not due
}

// TestModelOfKeys checks that a claim gives, of each key, the timers that may run, in
// their order, and that no timer waits for a key that is free.
func TestModelOfKeys(t *testing.T) {
	t.Parallel()
	checkKeyModel(t, func(*rapid.T) (fair [2]int) { return fair })
}

// TestModelOfFairKeys checks the same where keys take turns, for the nodes that have FairKeys.
func TestModelOfFairKeys(t *testing.T) {
	t.Parallel()
	turn := rapid.IntRange(1, 3)
	for name, draw := range map[string]func(*rapid.T) [2]int{
		"all nodes": func(rt *rapid.T) [2]int { return [2]int{turn.Draw(rt, "fair"), turn.Draw(rt, "fair")} },
		"one node":  func(rt *rapid.T) [2]int { return [2]int{turn.Draw(rt, "fair"), 0} },
		"by turns": func(rt *rapid.T) [2]int {
			if rapid.Bool().Draw(rt, "off") {
				return [2]int{}
			}
			return [2]int{turn.Draw(rt, "fair"), turn.Draw(rt, "fair")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkKeyModel(t, draw)
		})
	}
}

// change has all nodes follow other limits, and sweep then, as pollers do. No key has more holders
// than its limit: TestTimersAboveLoweredLimitRunInTheirOrder has those.
func (m *keyModel) change(rt *rapid.T) {
	held, least := map[string]int{}, 1
	for _, timer := range m.timers {
		if timer.holds && timer.key != "" {
			held[timer.key]++
			least = max(least, held[timer.key])
		}
	}
	m.limit, m.fair = rapid.IntRange(least, 3).Draw(rt, "limit"), m.draw(rt)
	for holder := range m.holders {
		require.NoError(rt, m.holders[holder].src.SweepKeys(m.t.Context(), m.flow(holder)))
	}
}

// peer removes a timer as a Python worker does, which does not free its key. A sweep does.
func (m *keyModel) peer(rt *rapid.T) {
	id := modelIDs.Draw(rt, "id")
	m.f.peerCommit(m.t, id)
	m.left[id] = true
	delete(m.timers, id)
	delete(m.leases, id)
	m.sweep(rt)
}

func checkKeyModel(t *testing.T, fair func(rt *rapid.T) [2]int) {
	t.Helper()
	base := newFixture(t, redistest.Shared(t))
	rapid.Check(t, func(rt *rapid.T) {
		f := base.on(fmt.Sprintf("keys-%x", rand.Uint64()))
		m := &keyModel{
			t: t, f: f, draw: fair,
			timers: map[string]*keyTimer{}, leases: map[string]exchange.Lease{}, owner: map[string]int{}, left: map[string]bool{},
		}
		for i := range m.holders {
			m.holders[i] = f.holder(SourceOptions{KeyWeights: "k=2"})
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

func (m *keyModel) put(id, key string, at int) {
	m.number++
	delete(m.leases, id)
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
	delete(m.leases, id)
}

// ready returns the ids of the timers that may be claimed.
func (m *keyModel) ready() (ids []string) {
	held := map[string]int{}
	var waiting []*keyTimer
	for _, timer := range m.timers {
		_, running := m.leases[timer.id]
		switch {
		case timer.holds:
			held[timer.key]++
			if !running && !timer.later {
				ids = append(ids, timer.id)
			}
		case timer.at < 100:
			waiting = append(waiting, timer)
		}
	}
	slices.SortFunc(waiting, func(a, b *keyTimer) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number)) })
	for _, timer := range waiting {
		if timer.key == "" || held[timer.key] < m.limit {
			held[timer.key]++
			ids = append(ids, timer.id)
		}
	}
	return ids
}

func (m *keyModel) claim(rt *rapid.T) {
	m.claimUpTo(rt, rapid.IntRange(1, 3).Draw(rt, "want"))
}

func (m *keyModel) claimUpTo(rt *rapid.T, want int) int {
	return len(m.claimFor(rt, want, time.Minute).Leases)
}

// crash claims timers whose leases expire, because their holder is gone. The timers keep
// their keys, and are due again.
func (m *keyModel) crash(rt *rapid.T) {
	const ttl = time.Millisecond
	reply := m.claimFor(rt, rapid.IntRange(1, 3).Draw(rt, "want"), ttl)
	for _, l := range reply.Leases {
		delete(m.leases, l.ID)
	}
	for end := m.f.now(m.t).Add(2 * ttl); !m.f.now(m.t).After(end); {
		runtime.Gosched() // until the leases have expired
	}
}

func (m *keyModel) claimFor(rt *rapid.T, want int, ttl time.Duration, settle ...exchange.Settlement) *exchange.Reply {
	holder := rapid.IntRange(0, 1).Draw(rt, "holder")
	ready := m.ready()
	r := m.holders[holder].Request(want, ttl)
	r.Flow, r.Settle = m.flow(holder), settle
	reply := m.holders[holder].Run(m.t, r)
	require.Empty(rt, reply.Refused)
	if most := min(want, len(ready)); m.fair[0] == m.fair[1] || m.fair[holder] > 0 {
		require.Len(rt, reply.Leases, most, "ready: %q, claimed: %q", ready, storetest.IDs(reply.Leases))
	} else { // places that another node with FairKeys left for the next turns
		require.GreaterOrEqual(rt, len(reply.Leases), min(most, 1), "ready: %q", ready)
	}
	for _, l := range reply.Leases {
		require.Contains(rt, ready, l.ID)
		require.Equal(rt, m.instant(m.timers[l.ID].at).UTC(), l.Activation.UTC())
		m.timers[l.ID].holds = true
		m.leases[l.ID], m.owner[l.ID] = l, holder
	}
	return reply
}

func (m *keyModel) flow(holder int) exchange.Flow {
	return exchange.Flow{PerKey: m.limit, FairKeys: m.fair[holder]}
}

func (m *keyModel) settle(rt *rapid.T) {
	if len(m.leases) == 0 {
		return
	}
	s := m.verdict(rt)
	require.Empty(rt, m.settleOne(s).Refused)
}

func (m *keyModel) settleOne(s exchange.Settlement) *exchange.Reply {
	f := m.holders[m.owner[s.ID]]
	r := f.Request(0, time.Minute)
	r.Flow, r.Settle = m.flow(m.owner[s.ID]), []exchange.Settlement{s}
	return f.Run(m.t, r)
}

// passOn settles timers and claims others in the same exchange.
func (m *keyModel) passOn(rt *rapid.T) {
	var settle []exchange.Settlement
	for n := rapid.IntRange(1, 2).Draw(rt, "settlements"); len(settle) < n && len(m.leases) > 0; {
		settle = append(settle, m.verdict(rt))
	}
	m.claimFor(rt, rapid.IntRange(1, 3).Draw(rt, "want"), time.Minute, settle...)
}

// verdict returns a settlement of a timer, and applies it to the model.
func (m *keyModel) verdict(rt *rapid.T) exchange.Settlement {
	var ids []string
	for id := range m.leases {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	id := rapid.SampledFrom(ids).Draw(rt, "id")
	verdict := rapid.SampledFrom([]exchange.Verdict{exchange.Ack, exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release}).Draw(rt, "verdict")
	s := storetest.Verdict(verdict, m.leases[id])
	if verdict == exchange.Nack && rapid.Bool().Draw(rt, "later") {
		s.Delay = time.Hour
	}
	delete(m.leases, id)
	switch timer := m.timers[id]; verdict {
	case exchange.Ack, exchange.DeadLetter:
		delete(m.timers, id)
	case exchange.Release:
		timer.holds = timer.failed // it still waits for its retry
	default:
		timer.failed, timer.later = true, s.Delay > 0
	}
	return s
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
}

// drain claims and acks until nothing can be claimed: nothing stays parked for a key
// that is free.
func (m *keyModel) drain(rt *rapid.T) {
	for {
		for id, l := range m.leases {
			require.Empty(rt, m.settleOne(ack(l)).Refused)
			delete(m.timers, id)
			delete(m.leases, id)
		}
		if m.claimUpTo(rt, 10) == 0 {
			break
		}
	}
	require.Empty(rt, m.ready())
}
