package timers

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// model is the store in plain Go: what two holders and a Python-like peer on one
// topic must observe. Instants are long past or far in the future, so that the
// result does not depend on the clock; a lease of a millisecond is waited out.
type model struct {
	t       testing.TB
	f       *fixture
	holders [2]*modelHolder
	timers  map[string]*modelTimer
	marks   map[string]float64 // of ids with Once: the instant
	dead    []modelLetter
	order   Control
}

type modelLetter struct{ id, payload string }

// modelMaxClaims is the cap on claims without a verdict.
const modelMaxClaims = 2

type modelTimer struct {
	score   float64
	payload string
	rec     *modelRecord // nil once another program writes the score
}

type modelRecord struct {
	leased             bool
	claims, failures   int
	activation, before float64
	first              float64 // of a debounced one, else 0
}

type modelHolder struct {
	*fixture
	seen  []exchange.Lease // every lease it ever had, valid or not
	last  *exchange.Request
	reply *exchange.Reply
}

func TestModel(t *testing.T) {
	t.Parallel()
	base := newFixture(t, redistest.Shared(t))
	base.apartFrom = 1 // payloads are sent apart wherever they may be
	rapid.Check(t, func(rt *rapid.T) {
		f := base.on(fmt.Sprintf("model-%x", rand.Uint64()))
		m := &model{t: t, f: f, timers: map[string]*modelTimer{}, marks: map[string]float64{}}
		for i := range m.holders {
			m.holders[i] = &modelHolder{fixture: f.holder(SourceOptions{MaxClaims: modelMaxClaims})}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"schedule":                 m.schedule,
			"reschedule":               m.reschedule,
			"run now":                  m.runNow,
			"redrive":                  m.redrive,
			"delete dead":              m.deleteDead,
			"cancel":                   m.cancel,
			"claim":                    m.claim,
			"crash":                    m.crash,
			"settle":                   m.settle,
			"settle again":             m.settle,
			"extend":                   m.extend,
			"replay":                   m.replay,
			"settle, extend and claim": m.whole,
			"peer":                     m.peer,
			"cancel all":               m.cancelAll,
			"forget":                   m.forget,
			"heal":                     m.heal,
			"control":                  m.control,
			"":                         m.check,
		})
	})
}

var (
	modelIDs    = rapid.SampledFrom([]string{"a", "b", "c", "d", "é", "f"})
	modelScores = rapid.SampledFrom([]float64{1, 2, 3.5, 4, 4.25e9, 4.26e9})
)

func (m *model) holder(rt *rapid.T) *modelHolder {
	return m.holders[rapid.IntRange(0, 1).Draw(rt, "holder")]
}

func (m *model) now() float64 {
	now, err := m.f.rdb.Time(m.t.Context()).Result()
	require.NoError(m.t, err)
	return float64(now.UnixMicro()) / 1e6
}

func (m *model) cancel(rt *rapid.T) {
	id := modelIDs.Draw(rt, "id")
	want := Absent
	if m.timers[id] != nil {
		want = Pending
		if m.held(id) {
			want = Running
		}
	}
	found, err := m.f.Cancel(m.t.Context(), m.f.topic, id)
	require.NoError(rt, err)
	require.Equal(rt, want, found[0])
	delete(m.timers, id)
}

func (m *model) claim(rt *rapid.T) {
	ttl := rapid.SampledFrom([]time.Duration{time.Hour, time.Hour, time.Millisecond}).Draw(rt, "ttl")
	m.claimFor(rt, rapid.IntRange(0, 4).Draw(rt, "want"), ttl)
}

// crash claims and lets the leases expire, until the due timers are dead-lettered.
func (m *model) crash(rt *rapid.T) {
	want := rapid.IntRange(1, 4).Draw(rt, "want")
	for range modelMaxClaims + 1 {
		m.claimFor(rt, want, time.Millisecond)
	}
}

func (m *model) claimFor(rt *rapid.T, want int, ttl time.Duration) {
	h := m.holder(rt)
	h.last = h.request(want, ttl)
	h.reply = h.run(m.t, h.last)
	m.claimed(rt, h)
}

// claimed compares what a request claimed with what was due, and its dead letters
// with those of its settlements and those with too many claims.
func (m *model) claimed(rt *rapid.T, h *modelHolder, deadLettered ...exchange.Burial) {
	type due struct {
		id    string
		timer *modelTimer
	}
	var all []due
	end := parse(rt, string(h.reply.Extended))
	now := end - h.last.LeaseTTL.Seconds()
	for id, timer := range m.timers {
		if timer.score <= now {
			all = append(all, due{id, timer})
		}
	}
	slices.SortFunc(all, func(a, b due) int {
		return cmp.Or(cmp.Compare(a.timer.score, b.timer.score), cmp.Compare(a.id, b.id))
	})
	all = all[:min(len(all), h.last.Want)]
	all = slices.DeleteFunc(all, func(d due) bool {
		rec := d.timer.rec
		if rec == nil || rec.claims-rec.failures < modelMaxClaims {
			return false
		}
		deadLettered = append(deadLettered, m.makeDead(-1, d.id))
		return true
	})
	m.checkDead(rt, deadLettered, h.reply)
	require.Len(rt, h.reply.Leases, len(all))
	for i, d := range all {
		l, timer := h.reply.Leases[i], d.timer
		if timer.rec == nil {
			timer.rec = &modelRecord{activation: timer.score}
		}
		timer.rec.before = timer.score
		if timer.rec.leased {
			timer.rec.before += 1e-6 // the score is a token of the previous holder
		}
		timer.rec.leased = true
		timer.rec.claims++
		timer.score = end
		require.Equal(rt, d.id, l.ID)
		require.Equal(rt, timer.payload, string(l.Payload))
		require.Equal(rt, timer.rec.claims, l.Claims)
		require.Equal(rt, timer.rec.failures, l.Failures)
		require.Equal(rt, scripts.Instant(timer.rec.activation), l.Activation)
		h.seen = append(h.seen, l)
	}
	m.await(end, h.last.LeaseTTL)
}

// await waits until a short lease has expired.
func (m *model) await(end float64, ttl time.Duration) {
	for ttl == time.Millisecond && m.now() <= end {
		runtime.Gosched() // until the lease has ended
	}
}

func parse(rt *rapid.T, token string) float64 {
	x, err := strconv.ParseFloat(token, 64)
	require.NoError(rt, err)
	return x
}

// refusal returns why a lease is refused; 0 if it is not.
func (m *model) refusal(rt *rapid.T, l exchange.Lease) exchange.Why {
	token := parse(rt, string(l.Token))
	timer := m.timers[l.ID]
	switch {
	case timer != nil && timer.score == token:
		return 0
	case token <= m.now():
		return exchange.Lost
	case timer != nil:
		return exchange.Superseded
	default:
		return exchange.Cancelled
	}
}

func (m *model) settle(rt *rapid.T) {
	h := m.holder(rt)
	if len(h.seen) == 0 {
		return
	}
	l := rapid.SampledFrom(h.seen).Draw(rt, "lease")
	v := rapid.SampledFrom([]exchange.Verdict{exchange.Ack, exchange.Nack, exchange.Bury, exchange.Release}).Draw(rt, "verdict")
	s := storetest.Verdict(v, l)
	s.Delay = rapid.SampledFrom([]time.Duration{0, 0, time.Hour}).Draw(rt, "delay")
	want := m.refusal(rt, l)
	h.last = h.request(0, time.Hour)
	h.last.Settle = []exchange.Settlement{s}
	h.reply = h.run(m.t, h.last)
	if want != 0 {
		require.Equal(rt, []exchange.Refusal{{Why: want}}, h.reply.Refused)
		return
	}
	require.Empty(rt, h.reply.Refused)
	if v == exchange.Bury {
		m.checkDead(rt, []exchange.Burial{m.makeDead(0, l.ID)}, h.reply)
		return
	}
	require.Empty(rt, h.reply.Buried)
	m.settled(l.ID, v)
}

func (m *model) settled(id string, v exchange.Verdict) {
	timer := m.timers[id]
	switch v {
	case exchange.Ack:
		delete(m.timers, id)
	case exchange.Nack:
		timer.rec.leased = false
		timer.rec.failures++
		timer.rec.first = 0
		// Only Redis knows its now.
		timer.score = m.score(id)
	case exchange.Release:
		timer.score = timer.rec.before
		timer.rec.leased = false
		timer.rec.claims--
		if timer.rec.claims == 0 && timer.rec.failures == 0 && timer.rec.first == 0 {
			timer.rec = nil
		}
	}
}

func (m *model) extend(rt *rapid.T) {
	h := m.holder(rt)
	if len(h.seen) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.seen)-1).Draw(rt, "lease")
	l := h.seen[i]
	want := m.refusal(rt, l)
	h.last = h.request(0, rapid.SampledFrom([]time.Duration{time.Hour, time.Millisecond}).Draw(rt, "ttl"))
	h.last.Extend = []exchange.Held{storetest.Held(l)}
	h.reply = h.run(m.t, h.last)
	if want != 0 {
		require.Equal(rt, []exchange.Refusal{{Why: want}}, h.reply.Refused)
		return
	}
	require.Empty(rt, h.reply.Refused)
	l.Token = h.reply.Extended
	h.seen = append(h.seen, l)
	m.timers[l.ID].score = parse(rt, string(l.Token))
	m.await(m.timers[l.ID].score, h.last.LeaseTTL)
}

// replay sends the last request again: nothing changes, and the reply has the
// leases that are still held.
func (m *model) replay(rt *rapid.T) {
	h := m.holder(rt)
	if h.last == nil {
		return
	}
	again := h.run(m.t, h.last)
	require.Equal(rt, h.reply.Refused, again.Refused)
	require.Equal(rt, h.reply.Extended, again.Extended)
	m.checkDeadAgain(rt, h.reply.Buried, again.Buried)
	var want []exchange.Lease
	for _, l := range h.reply.Leases {
		if timer := m.timers[l.ID]; timer != nil && timer.rec != nil && timer.score == parse(rt, string(l.Token)) {
			l.Payload = []byte(timer.payload)
			want = append(want, l)
		}
	}
	require.Equal(rt, storetest.IDs(want), storetest.IDs(again.Leases))
	if h.last.Sequence > 1 {
		late := *h.last
		late.Sequence--
		_, err := h.src.Exchange(m.t.Context(), &late)
		require.ErrorIs(rt, err, exchange.ErrStale)
	}
}

// peer does what faststream-redis-timers does, with plain commands.
func (m *model) peer(rt *rapid.T) {
	id := modelIDs.Draw(rt, "id")
	ctx := m.t.Context()
	switch rapid.SampledFrom([]string{"publish", "claim", "commit"}).Draw(rt, "what") {
	case "publish":
		score := modelScores.Draw(rt, "score")
		m.f.peerPublish(m.t, id, score)
		m.timers[id] = &modelTimer{score: score, payload: "peer's " + id}
	case "claim":
		timer := m.timers[id]
		if now := m.now(); timer != nil && timer.score <= now {
			timer.score, timer.rec = now+3600, nil
			require.NoError(rt, m.f.rdb.ZAdd(ctx, m.f.key.Timeline, z(timer.score, id)).Err())
		}
	case "commit":
		m.f.peerCommit(m.t, id)
		delete(m.timers, id)
	}
}

// check compares all of the store with the model.
func (m *model) check(rt *rapid.T) {
	stats, err := m.f.Stats(m.t.Context(), m.f.topic)
	require.NoError(rt, err)
	require.EqualValues(rt, len(m.timers), stats.Total)
	require.EqualValues(rt, len(m.dead), stats.Dead)
	m.checkStats(rt)
	m.checkControl(rt)
	listed, next, err := m.f.List(m.t.Context(), m.f.topic, Filter{})
	require.NoError(rt, err)
	require.Empty(rt, next)
	require.Len(rt, listed, len(m.timers))
	for _, got := range listed {
		want := m.timers[got.ID]
		require.NotNil(rt, want, got.ID)
		text := fmt.Sprintf("%s: %+v %+v", got.ID, got, want.rec)
		require.Equal(rt, scripts.Instant(want.score), got.Due, text)
		rec := modelRecord{activation: want.score}
		if want.rec != nil {
			rec = *want.rec
		}
		require.Equal(rt, rec.claims, got.Claims, text)
		require.Equal(rt, rec.failures, got.Failures, text)
		require.Equal(rt, scripts.Instant(rec.activation), got.Activation, text)
		if rec.first != 0 {
			require.Equal(rt, scripts.Instant(rec.first), got.FirstScheduled, text)
		} else {
			require.Zero(rt, got.FirstScheduled, text)
		}
		require.Equal(rt, want.payload, string(m.f.get(m.t, got.ID).Payload))
	}
}
