package timers

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// keyKind is what settings a model of keys draws.
type keyKind struct {
	fair            func(*rapid.T) [2]int // nil: keys take no turns
	runs            bool                  // key runs
	rate, unbounded bool                  // rate limits per key, without PerKey
}

// keySettings are the settings of the holders.
type keySettings struct {
	limit      int    // PerKey
	burst      int    // of RateLimitByKey; 0: no rate limit
	runs, fair [2]int // KeyRun and FairKeys of each
}

const longestRun = 3

func drawTurns(rt *rapid.T) (fair [2]int) {
	if turn := rapid.IntRange(1, 3); rapid.Bool().Draw(rt, "on") {
		fair = [2]int{turn.Draw(rt, "fair"), turn.Draw(rt, "fair")}
	}
	return fair
}

// change has all nodes follow other limits, and sweep then, as pollers do, or restarts them with other
// weights. No key has more holders than its limit but for a key run: TestTimersAboveLoweredLimitRunInTheirOrder
// has those.
func (m *keyModel) change(rt *rapid.T) {
	held, least, tokens, runs := map[string]int{}, 1, 1, false
	for _, timer := range m.timers {
		if timer.holds && timer.key != "" {
			held[timer.key]++
			least, runs = max(least, held[timer.key]), runs || timer.unsure
		}
		tokens = max(tokens, len(m.taken[timer.key]))
	}
	s := &m.settings
	switch {
	case m.kind.unbounded:
		s.limit = 0
	case s.limit == 1 && (least > 1 || runs): // a key run
	default:
		s.limit = rapid.IntRange(least, 3).Draw(rt, "limit")
	}
	for i := range m.holders {
		m.holders[i] = m.f.holder(SourceOptions{KeyWeights: rapid.SampledFrom([]string{"", "k=2", "k=1,kk=3", "k=100"}).Draw(rt, "weights")})
		if m.kind.runs {
			s.runs[i] = rapid.IntRange(0, longestRun).Draw(rt, "key run")
		}
	}
	if m.kind.fair != nil {
		s.fair = m.kind.fair(rt)
	}
	s.burst = 0
	if m.kind.rate && (m.kind.unbounded || rapid.Bool().Draw(rt, "rate")) {
		for _, taken := range m.taken {
			tokens = max(tokens, len(taken))
		}
		s.burst = rapid.IntRange(tokens, tokens+2).Draw(rt, "burst")
	}
	for holder := range m.holders {
		require.NoError(rt, m.holders[holder].src.SweepKeys(m.t.Context(), m.flow(holder)))
	}
	m.observe(rt)
	for _, timer := range m.timers {
		require.False(rt, s.burst == 0 && timer.waits, "%q waits for a token without a rate limit", timer.id)
	}
}

func (m *keyModel) flow(holder int) exchange.Flow {
	flow := exchange.Flow{PerKey: m.settings.limit, FairKeys: m.settings.fair[holder]}
	if m.settings.burst > 0 {
		flow.KeyRateLimit, flow.KeyRateBurst, flow.KeyRatePer = 1, m.settings.burst, 30*24*time.Hour
	}
	return flow
}

// keyRun is how many timers a key run of a holder has, as in the core of leasing.
func (m *keyModel) keyRun(holder int) int {
	if s := m.settings; s.limit != 1 || s.fair[holder] > 0 || s.burst > 0 {
		return 0
	}
	return m.settings.runs[holder]
}

// observe reads which timers wait for tokens, and so hold their keys.
func (m *keyModel) observe(rt *rapid.T) {
	ids := slices.Sorted(maps.Keys(m.timers))
	if len(ids) == 0 {
		return
	}
	scores, err := m.f.rdb.ZMScore(m.t.Context(), m.f.key.Timeline, ids...).Result()
	require.NoError(rt, err)
	soon := float64(m.f.now(m.t).Unix() + 1)
	var began []*keyTimer
	for i, id := range ids {
		timer, waited := m.timers[id], m.timers[id].waits
		_, leased := m.leases[id]
		timer.waits = timer.at < 100 && !timer.later && !leased && scores[i] > soon && scores[i] < parkedScore
		if timer.waits && !waited {
			timer.holds, timer.crashed = true, false
			began = append(began, timer)
		}
	}
	for _, timer := range began {
		tokens := m.settings.burst - len(m.taken[timer.key])
		for id, other := range m.timers { // a token that is there is theirs, if they go on before it
			if _, leased := m.leases[id]; other.key == timer.key && other.holds && !leased && !other.later && compareTimers(other, timer) < 0 {
				tokens--
				if other.waits {
					tokens = min(tokens, 0)
				}
			}
		}
		require.LessOrEqual(rt, tokens, 0, "%q waits for a token, and its key has one", timer.id)
	}
}

func compareTimers(a, b *keyTimer) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
}

// start is what an exchange may start of a key: at least and at most so many.
type start struct {
	line        []string // in this order
	any         []string // before or after those of line
	alone       []string // instead of all others
	least, most int
}

// startable returns what an exchange of a holder may start, by key. Each timer without a key has an entry.
func (m *keyModel) startable(holder int) map[string]start {
	all, keys := map[string]start{}, map[string][]*keyTimer{}
	for id, timer := range m.timers {
		_, leased := m.leases[id]
		if timer.key != "" {
			keys[timer.key] = append(keys[timer.key], timer)
		} else if !leased && !timer.later && timer.at < 100 {
			all["no key "+id] = start{any: []string{id}, least: 1, most: 1}
		}
	}
	for key, list := range keys {
		slices.SortFunc(list, compareTimers)
		s := m.startOf(holder, list)
		if m.settings.burst > 0 { // the next timers are woken one after the other
			s.most = min(s.most, m.settings.burst-len(m.taken[key]))
			s.least = min(s.least, s.most, 1)
		}
		if s.most > 0 {
			all[key] = s
		}
	}
	return all
}

// startOf returns what may start of a key with these timers, which are in their order, if it has tokens.
func (m *keyModel) startOf(holder int, list []*keyTimer) (s start) {
	var due []string // all of them
	held, holding, unsure, waiting := 0, 0, false, false
	for _, timer := range list {
		_, leased := m.leases[timer.id]
		if timer.holds {
			held++
		}
		switch {
		case leased || timer.later || timer.at >= 100:
		case waiting || timer.waits: // those behind one that waits for a token wait too
			waiting = true
		case timer.holds:
			s.any, holding, unsure = append(s.any, timer.id), holding+1, unsure || timer.unsure
			due = append(due, timer.id)
			if timer.failed || holding == 1 {
				s.alone = append(s.alone, timer.id)
			}
		case m.kind.unbounded && (timer.failed || timer.crashed): // it has started once
			s.any = append(s.any, timer.id)
		default:
			s.line, due = append(s.line, timer.id), append(due, timer.id)
		}
	}
	switch run := max(m.keyRun(holder), 1); {
	case m.kind.unbounded && waiting:
		return start{}
	case m.kind.unbounded:
		return start{line: s.line, any: s.any, least: 1, most: len(s.line) + len(s.any)}
	case held > m.settings.limit && holding < held: // a key run has not ended
		return start{}
	case held > m.settings.limit || unsure: // one whose leases have expired: they start in their order
		return start{line: due, alone: s.alone, most: min(run, len(due))}
	case held == 0 && run > 1:
		s.most = min(run, len(s.line)) // those that are parked are not of it
		return start{line: s.line, least: min(s.most, 1), most: s.most}
	}
	places := max(0, m.settings.limit-held)
	s.most = holding + min(places, len(s.line))
	return start{line: s.line, any: s.any, least: s.most, most: s.most}
}

// giveBack gives back the tokens of the last timers of keys that have started, if they are released.
func (m *keyModel) giveBack(settle []exchange.Settlement) {
	for m.settings.burst > 0 {
		given := false
		for _, s := range settle {
			if timer := m.timers[s.ID]; s.Verdict == exchange.Release && len(m.taken[timer.key]) > 0 {
				last := len(m.taken[timer.key]) - 1
				if math.Abs(m.taken[timer.key][last]-s.Charge.Key) < 1e6 { // a token is 2.6e6 s
					m.taken[timer.key], given = m.taken[timer.key][:last], true
				}
			}
		}
		if !given {
			return
		}
	}
}

func (m *keyModel) claimFor(rt *rapid.T, want int, ttl time.Duration, settle ...exchange.Settlement) *exchange.Reply {
	holder := rapid.IntRange(0, 1).Draw(rt, "holder")
	m.giveBack(settle)
	f, starts, least, most := m.holders[holder], m.startable(holder), 0, 0
	for _, s := range starts {
		least, most = least+s.least, most+s.most
	}
	mixed := m.settings.fair[0] != m.settings.fair[1] && m.settings.fair[holder] == 0
	if mixed { // places that another node with FairKeys left for the next turns
		least = min(least, 1)
	}
	r := f.Request(want, ttl)
	r.Flow, r.KeyRun, r.Settle = m.flow(holder), m.keyRun(holder), settle
	reply := f.Run(m.t, r)
	require.Empty(rt, reply.Refused)
	require.GreaterOrEqual(rt, len(reply.Leases), min(want, least), "startable: %+v, claimed: %q", starts, storetest.IDs(reply.Leases))
	require.LessOrEqual(rt, len(reply.Leases), min(want, most), "startable: %+v, claimed: %q", starts, storetest.IDs(reply.Leases))
	m.started(rt, holder, reply, starts)
	if ttl == time.Minute && rapid.Bool().Draw(rt, "again") {
		again := f.Run(m.t, r)
		require.Equal(rt, reply.Leases, again.Leases)
		require.Equal(rt, reply.KeyRuns, again.KeyRuns)
	}
	m.observe(rt)
	if rest := m.startable(holder); len(rest) > 0 && !mixed {
		require.True(rt, looksSoon(reply), "no exchange is due for %+v, but in %v", rest, reply.Next)
	}
	return reply
}

// looksSoon reports whether the next exchange is due; Next is negative if no timer waits.
func looksSoon(reply *exchange.Reply) bool { return reply.Next >= 0 && reply.Next < time.Second }

// started checks which timers an exchange has started, and applies it to the model.
func (m *keyModel) started(rt *rapid.T, holder int, reply *exchange.Reply, starts map[string]start) {
	m.number++
	byKey, last := map[string][]string{}, map[string]int{}
	for i, l := range reply.Leases {
		timer := m.timers[l.ID]
		require.NotNil(rt, timer, l.ID)
		require.Equal(rt, m.instant(timer.at).UTC(), l.Activation.UTC())
		key := timer.key
		if key == "" {
			key = "no key " + l.ID
		}
		byKey[key] = append(byKey[key], l.ID)
		if m.keyRun(holder) > 1 {
			require.True(rt, reply.KeyRuns == nil && last[key] == 0 || reply.KeyRuns != nil && reply.KeyRuns[i] == last[key], "%q: %v", storetest.IDs(reply.Leases), reply.KeyRuns)
		} else {
			require.Nil(rt, reply.KeyRuns)
		}
		last[key] = i + 1
		lease := keyLease{Lease: l, owner: holder, run: m.number<<10 + i}
		if m.keyRun(holder) > 1 && len(byKey[key]) > 1 {
			lease.run, lease.place = m.leases[byKey[key][0]].run, len(byKey[key])-1
		}
		m.leases[l.ID] = lease
		if m.settings.burst > 0 && timer.key != "" {
			m.taken[key] = append(m.taken[key], l.Charge.Key)
		}
	}
	for key, ids := range byKey {
		s := starts[key]
		line := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(s.any, id) })
		inOrder := len(line) <= len(s.line) && slices.Equal(line, s.line[:len(line)])
		require.True(rt, len(ids) <= s.most && inOrder || len(ids) == 1 && slices.Contains(s.alone, ids[0]), "of %q: %+v, claimed: %q", key, s, ids)
	}
	m.hold(byKey)
}

// hold notes which timers hold their keys after these have started. Where more held a key than may,
// those that are due may have lost it; when one starts, all others have.
func (m *keyModel) hold(started map[string][]string) {
	held := map[string]int{}
	for _, timer := range m.timers {
		if timer.holds {
			held[timer.key]++
		}
	}
	for id, timer := range m.timers {
		_, leased := m.leases[id]
		switch ids := started[timer.key]; {
		case timer.key == "":
			timer.crashed = timer.crashed && !leased
		case slices.Contains(ids, id):
			timer.holds, timer.crashed, timer.unsure = !m.kind.unbounded, false, false
		case m.settings.limit == 1 && len(ids) > 0:
			timer.holds, timer.unsure = timer.holds && timer.later, false
		case held[timer.key] > max(m.settings.limit, 1) && timer.holds && !leased && !timer.later && !timer.waits:
			timer.unsure = true
		}
	}
}
