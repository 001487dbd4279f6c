package timers

import (
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/wakebelltype"
)

// checkStats compares the statistics with the model.
func (m *model) checkStats(rt *rapid.T) {
	st := m.f.stats(m.t)
	st.OldestDue, st.Lag = time.Time{}, 0
	want := wakebelltype.Stats{Total: int64(len(m.timers)), Dead: int64(len(m.dead)), Paused: m.topicControl.Paused, PausedAt: m.topicControl.PausedAt}
	for id, timer := range m.timers {
		switch {
		case timer.score <= m.now():
			want.Due++
		case m.held(id):
			want.Leased++
		case timer.rec != nil && timer.rec.claims > 0:
			want.Retrying++
		default:
			want.Pending++
		}
	}
	require.Equal(rt, want, st)
}

// makeDead makes a dead letter of a timer, and returns what an exchange reports of it.
func (m *model) makeDead(index int, id string) exchange.DeadLettered {
	timer := m.timers[id]
	b := exchange.DeadLettered{
		Index: index, ID: id, Claims: timer.rec.claims, Failures: timer.rec.failures,
		Activation: scripts.Instant(timer.rec.activation),
	}
	if index < 0 {
		b.Reason, b.Payload = "never settled", []byte(timer.payload)
	}
	m.dead = append(m.dead, modelDead{id, timer.payload})
	delete(m.timers, id)
	return b
}

// checkDead compares the dead letters that an exchange reports with the expected
// ones, which are the last of the topic.
func (m *model) checkDead(rt *rapid.T, want []exchange.DeadLettered, got *exchange.Reply) {
	if len(want) > 0 {
		dead, _, err := m.f.DeadLetters(m.t.Context(), m.f.topic, wakebelltype.DeadFilter{}, "", layout.MaxPage)
		require.NoError(rt, err)
		require.Len(rt, dead, len(m.dead))
		for i := range want {
			d := dead[len(dead)-len(want)+i]
			want[i].Entry, want[i].At = d.Entry, d.At
		}
	}
	require.Equal(rt, want, got.DeadLettered)
}

// checkDeadAgain compares the dead letters that a replayed exchange reports: all of
// them, but without the payloads of dead letters that are gone.
func (m *model) checkDeadAgain(rt *rapid.T, first, again []exchange.DeadLettered) {
	var want []exchange.DeadLettered
	for _, b := range first {
		_, err := m.f.DeadLetter(m.t.Context(), m.f.topic, b.Entry)
		if b.Index < 0 && errors.Is(err, wakebelltype.ErrNotFound) {
			b.Payload = []byte{}
		}
		want = append(want, b)
	}
	require.Equal(rt, want, again)
}

// drawDead draws a dead letter. It returns false if there is none.
func (m *model) drawDead(rt *rapid.T) (i int, entry string, ok bool) {
	dead, next, err := m.f.DeadLetters(m.t.Context(), m.f.topic, wakebelltype.DeadFilter{}, "", layout.MaxPage)
	require.NoError(rt, err)
	require.Empty(rt, next)
	require.Len(rt, dead, len(m.dead))
	for i, want := range m.dead {
		require.Equal(rt, want, modelDead{dead[i].ID, string(dead[i].Payload)})
	}
	if len(dead) == 0 {
		return 0, "", false
	}
	i = rapid.IntRange(0, len(dead)-1).Draw(rt, "dead letter")
	return i, dead[i].Entry, true
}

// redrive redrives one dead letter, or all of them.
func (m *model) redrive(rt *rapid.T) {
	at, entry, ok := m.drawDead(rt)
	if !ok {
		return
	}
	o := wakebelltype.RedriveOptions{Rate: maxRate, Overwrite: rapid.Bool().Draw(rt, "overwrite")}
	all := m.dead
	if rapid.Bool().Draw(rt, "one") {
		o.Filter.Entry, all = entry, all[at:at+1]
	}
	var got, want []wakebelltype.RedriveOutcome
	o.Each = func(l wakebelltype.RedrivenLetter) { got = append(got, l.Outcome) }
	var left []modelDead
	redriven := map[string]bool{}
	for _, d := range all {
		outcome := wakebelltype.RedriveSucceeded
		if live := m.timers[d.id] != nil; live && !o.Overwrite {
			outcome = wakebelltype.RedriveSkippedLive
			left = append(left, d)
		} else {
			if live {
				outcome = wakebelltype.RedriveOverwrote
			}
			m.timers[d.id] = &modelTimer{payload: d.payload}
			redriven[d.id] = true
		}
		want = append(want, outcome)
	}
	_, err := m.f.Redrive(m.t.Context(), m.f.topic, o)
	require.NoError(rt, err)
	require.Equal(rt, want, got)
	if o.Filter.Entry != "" {
		left = append(left, slices.Delete(slices.Clone(m.dead), at, at+1)...)
		if len(redriven) == 0 {
			left = m.dead
		}
	}
	m.dead = left
	for id := range redriven {
		m.timers[id].score = m.score(id)
		require.LessOrEqual(rt, m.timers[id].score, m.now())
	}
}

func (m *model) deleteDead(rt *rapid.T) {
	at, entry, ok := m.drawDead(rt)
	if !ok {
		return
	}
	if rapid.IntRange(0, 3).Draw(rt, "all") == 0 {
		n, err := m.f.DeleteDead(m.t.Context(), m.f.topic, wakebelltype.DeadFilter{})
		require.NoError(rt, err)
		require.EqualValues(rt, len(m.dead), n)
		m.dead = nil
		return
	}
	n, err := m.f.DeleteDead(m.t.Context(), m.f.topic, wakebelltype.DeadFilter{Entry: entry})
	require.NoError(rt, err)
	require.EqualValues(rt, 1, n)
	m.dead = slices.Delete(m.dead, at, at+1)
}
