package timers

import (
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// held reports whether a Wakebell holder has a valid lease on a timer.
func (m *model) held(id string) bool {
	timer := m.timers[id]
	return timer != nil && timer.rec != nil && timer.rec.leased && timer.score > m.now()
}

// score reads the stored score, because only Redis knows its now.
func (m *model) score(id string) float64 {
	return m.f.rdb.ZScore(m.t.Context(), m.f.key.Timeline, id).Val()
}

// overdueSince is the instant with which PolicyEarliest compares: of a timer that was claimed
// and whose lease has expired, that since which it was due.
func (timer *modelTimer) overdueSince() float64 {
	switch {
	case timer.rec == nil:
		return timer.score
	case !timer.rec.tried():
		return min(timer.score, timer.rec.activation)
	case timer.rec.leased:
		return timer.rec.before
	default:
		return timer.score
	}
}

// schedule schedules two timers in one batch, each with its own policy.
func (m *model) schedule(rt *rapid.T) {
	ids := rapid.SliceOfNDistinct(modelIDs, 1, 2, rapid.ID[string]).Draw(rt, "ids")
	entries := make([]Entry, len(ids))
	wants := make([]wakebelltype.Outcome, len(ids))
	for i, id := range ids {
		entries[i] = drawEntry(rt, id)
		wants[i] = m.outcome(&entries[i])
	}
	for i, got := range m.f.schedule(m.t, entries...) {
		e, old := &entries[i], m.timers[ids[i]]
		require.Equal(rt, wants[i], got.Outcome, "%+v", e)
		if old != nil {
			require.Equal(rt, scripts.Instant(old.score), got.Found)
		} else {
			require.Zero(rt, got.Found)
		}
		switch got.Outcome {
		case wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeKeptEarlier:
		case wakebelltype.OutcomeAlreadyDone:
			require.Equal(rt, scripts.Instant(m.marks[e.ID]), got.Due)
		default:
			m.written(rt, e, got, old)
		}
	}
}

func drawEntry(rt *rapid.T, id string) Entry {
	e := Entry{
		ID: id, Policy: rapid.SampledFrom([]wakebelltype.Policy{wakebelltype.PolicyReplace, wakebelltype.PolicyReplace, wakebelltype.PolicyKeep, wakebelltype.PolicyEarliest, wakebelltype.PolicyDebounce}).Draw(rt, "policy"),
		Payload: []byte(rapid.StringN(0, 4, -1).Draw(rt, "payload")),
	}
	if e.Policy == wakebelltype.PolicyDebounce {
		e.In = rapid.SampledFrom([]time.Duration{time.Microsecond, time.Hour}).Draw(rt, "in")
		e.MaxDelay = rapid.SampledFrom([]time.Duration{0, time.Hour, 2 * time.Hour}).Draw(rt, "max")
	} else {
		e.At = scripts.Instant(modelScores.Draw(rt, "score"))
	}
	if rapid.IntRange(0, 3).Draw(rt, "once") == 0 {
		e.Once = time.Hour
	}
	return e
}

// outcome is the expected outcome of scheduling an entry.
func (m *model) outcome(e *Entry) wakebelltype.Outcome {
	timer := m.timers[e.ID]
	mark, marked := m.marks[e.ID]
	marked = marked && e.Once > 0
	if timer == nil {
		return map[bool]wakebelltype.Outcome{false: wakebelltype.OutcomeCreated, true: wakebelltype.OutcomeAlreadyDone}[marked]
	}
	held := m.held(e.ID)
	switch {
	case e.Policy == wakebelltype.PolicyKeep, marked && timer.score != mark:
		return map[bool]wakebelltype.Outcome{false: wakebelltype.OutcomeKeptPending, true: wakebelltype.OutcomeKeptRunning}[held]
	case held:
		return wakebelltype.OutcomeSuperseded
	case e.Policy == wakebelltype.PolicyEarliest && timer.overdueSince() <= float64(e.At.UnixMicro())/1e6:
		return wakebelltype.OutcomeKeptEarlier
	case e.Policy == wakebelltype.PolicyDebounce:
		return wakebelltype.OutcomeMoved
	default:
		return wakebelltype.OutcomeReplaced
	}
}

// written updates the model with the outcome of an entry.
func (m *model) written(rt *rapid.T, e *Entry, got wakebelltype.Scheduled, old *modelTimer) {
	timer := &modelTimer{score: m.score(e.ID), payload: string(e.Payload)}
	require.Equal(rt, scripts.Instant(timer.score), got.Due)
	if e.Policy == wakebelltype.PolicyDebounce {
		timer.rec = &modelRecord{activation: timer.score, before: timer.score}
		first := m.f.get(m.t, e.ID).FirstScheduled
		if got.Outcome == wakebelltype.OutcomeMoved && old.rec != nil && old.rec.first != 0 {
			require.Equal(rt, scripts.Instant(old.rec.first), first, "it is not the first")
		} else {
			require.WithinDuration(rt, m.f.now(m.t), first, time.Minute)
		}
		timer.rec.first = float64(first.UnixMicro()) / 1e6
		if e.MaxDelay > 0 {
			require.False(rt, got.Due.After(first.Add(e.MaxDelay+time.Microsecond)), "past its max")
		}
	} else {
		require.Equal(rt, e.At, got.Due.Truncate(500*time.Millisecond))
	}
	m.timers[e.ID] = timer
	if e.Once > 0 {
		m.marks[e.ID] = timer.score
	}
}

func (m *model) reschedule(rt *rapid.T) {
	id, at := modelIDs.Draw(rt, "id"), scripts.Instant(modelScores.Draw(rt, "score"))
	old, held := m.timers[id], m.held(id)
	got, err := m.f.Reschedule(m.t.Context(), m.f.topic, id, at, 0)
	if old == nil {
		require.ErrorIs(rt, err, wakebelltype.ErrNotFound)
		return
	}
	require.NoError(rt, err)
	require.Equal(rt, map[bool]wakebelltype.Outcome{false: wakebelltype.OutcomeMoved, true: wakebelltype.OutcomeSuperseded}[held], got.Outcome)
	require.Equal(rt, scripts.Instant(old.score), got.Found)
	score := m.score(id)
	if mark, ok := m.marks[id]; ok && mark == old.score {
		m.marks[id] = score
	}
	m.timers[id] = &modelTimer{score: score, payload: old.payload}
}

func (m *model) runNow(rt *rapid.T) {
	id := modelIDs.Draw(rt, "id")
	timer, held := m.timers[id], m.held(id)
	got, err := m.f.RunNow(m.t.Context(), m.f.topic, id)
	switch {
	case timer == nil:
		require.ErrorIs(rt, err, wakebelltype.ErrNotFound)
		return
	case held:
		require.Equal(rt, wakebelltype.PresenceRunning, got)
		return
	}
	require.NoError(rt, err)
	require.Equal(rt, wakebelltype.PresencePending, got)
	if timer.score > m.now() {
		timer.score = m.score(id)
		require.LessOrEqual(rt, timer.score, m.now())
		if timer.rec != nil {
			if timer.rec.claims == 0 && !timer.rec.tried() {
				timer.rec.activation = timer.score
			}
			timer.rec.leased = false
		}
	}
}
