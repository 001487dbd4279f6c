package timers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// cancelledRun is a run that a cancel has ended.
type cancelledRun struct {
	id    string
	token float64
}

// model is the store in plain Go: what two holders and a Python-like peer on one
// topic must observe. Instants are long past or far in the future, so that the
// result does not depend on the clock; a lease of a millisecond is waited out.
type model struct {
	t            testing.TB
	f            *fixture
	holders      [2]*modelHolder
	timers       map[string]*modelTimer
	marks        map[string]float64 // of ids with Once: the instant
	cancelled    map[cancelledRun]bool
	granted      map[exchange.Token]time.Time
	dead         []modelDead
	topicControl wakebelltype.Control
}

type modelDead struct{ id, payload string }

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
	snoozed            bool    // by the last nack
}

// tried reports whether a handler has failed or snoozed the timer.
func (r *modelRecord) tried() bool { return r.failures > 0 || r.snoozed }

type modelHolder struct {
	*fixture
	seen  []exchange.Lease // all leases of the holder, valid or not
	last  *exchange.Request
	reply *exchange.Reply
}

func TestModel(t *testing.T) {
	t.Parallel()
	base := newFixture(t, redistest.Shared(t))
	rapid.Check(t, func(rt *rapid.T) {
		f := base.on(fmt.Sprintf("model-%x", rand.Uint64()))
		m := &model{
			t: t, f: f, timers: map[string]*modelTimer{}, marks: map[string]float64{},
			cancelled: map[cancelledRun]bool{}, granted: map[exchange.Token]time.Time{},
		}
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
	modelIDs    = sampled("a", "b", "c", "d", "é", "f")
	modelScores = sampled(1, 2, 3.5, 4, 4.25e9, 4.26e9)
)

// sampled returns a generator that parallel tests share. A generator names itself when its
// name is first needed, while other tests may read it; so it does that here.
func sampled[T any](values ...T) *rapid.Generator[T] {
	g := rapid.SampledFrom(values)
	_ = g.String()
	return g
}

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
	want := wakebelltype.PresenceAbsent
	if m.timers[id] != nil {
		want = wakebelltype.PresencePending
		if m.held(id) {
			want = wakebelltype.PresenceRunning
			m.cancelled[cancelledRun{id, m.timers[id].score}] = true
		}
	}
	found, err := m.f.Cancel(m.t.Context(), m.f.topic, id)
	require.NoError(rt, err)
	require.Equal(rt, want, found[0])
	delete(m.timers, id)
}

// peer executes the commands of faststream-redis-timers.
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
