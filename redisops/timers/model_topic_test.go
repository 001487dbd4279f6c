package timers

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// cancelAll cancels all timers, as Wakebell or as the peer does.
func (m *model) cancelAll(rt *rapid.T) {
	ctx := m.t.Context()
	if rapid.Bool().Draw(rt, "peer") {
		require.NoError(rt, m.f.rdb.Unlink(ctx, m.f.key.Timeline, m.f.key.Payloads).Err())
	} else {
		n, err := m.f.CancelAll(ctx, m.f.topic)
		require.NoError(rt, err)
		require.EqualValues(rt, len(m.timers), n)
		require.Zero(rt, m.f.rdb.HLen(ctx, m.f.key.Leases).Val())
		for _, h := range m.holders {
			for _, l := range h.seen {
				m.cancelled[cancelledRun{l.ID, parse(rt, string(l.Token))}] = true
			}
		}
	}
	clear(m.timers)
}

// forget removes everything except the marks of Once.
func (m *model) forget(rt *rapid.T) {
	ctx := m.t.Context()
	require.NoError(rt, m.f.Forget(ctx, m.f.topic))
	k := m.f.key
	require.Zero(rt, m.f.rdb.Exists(ctx, k.Timeline, k.Payloads, k.Leases, k.Dead, k.Control, k.Hint).Val())
	require.False(rt, m.f.rdb.SIsMember(ctx, m.f.keys.Topics, m.f.topic).Val())
	clear(m.timers)
	clear(m.cancelled)
	for _, h := range m.holders { // that a run was cancelled is forgotten too
		if h.reply != nil && slices.ContainsFunc(h.reply.Refused, func(r exchange.Refusal) bool { return r.Reason == exchange.Cancelled }) {
			h.last = nil
		}
	}
	m.dead, m.topicControl = nil, wakebelltype.Control{}
}

// heal removes entries without a timer, and nothing else.
func (m *model) heal(rt *rapid.T) {
	ctx := m.t.Context()
	orphans := func() (n int) {
		for _, hash := range []string{m.f.key.Payloads, m.f.key.Leases} {
			for _, id := range m.f.rdb.HKeys(ctx, hash).Val() {
				if id != "" && m.timers[id] == nil { // "" is the sentinel
					n++
				}
			}
		}
		return n
	}
	want := orphans()
	swept, err := m.holder(rt).src.RemoveOrphans(ctx)
	require.NoError(rt, err)
	require.Equal(rt, want, swept.Removed)
	require.Zero(rt, orphans())
}

// control changes the control of the topic.
func (m *model) control(rt *rapid.T) {
	ctx, topic := m.t.Context(), m.f.topic
	var got wakebelltype.Control
	var err error
	switch rapid.SampledFrom([]string{"pause", "resume", "retune"}).Draw(rt, "what") {
	case "pause":
		by, reason := rapid.StringN(0, 3, -1).Draw(rt, "by"), rapid.StringN(0, 3, -1).Draw(rt, "reason")
		got, err = m.f.Pause(ctx, topic, by, reason)
		if !m.topicControl.Paused { // only Redis knows since when
			require.WithinDuration(rt, m.f.now(m.t), got.PausedAt, time.Minute)
			m.topicControl.PausedAt = got.PausedAt
		}
		m.topicControl.Paused, m.topicControl.PausedBy, m.topicControl.Reason = true, by, reason
	case "resume":
		got, err = m.f.Resume(ctx, topic)
		m.topicControl = wakebelltype.Control{Settings: m.topicControl.Settings}
	case "retune":
		m.topicControl.Settings = wakebelltype.Settings{
			MaxConcurrent: rapid.SampledFrom([]int{0, 1, 10_000}).Draw(rt, "max concurrent"),
			LeaseTTL:      rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(rt, "lease"),
			RetryLimit:    rapid.SampledFrom([]time.Duration{0, 90 * time.Second}).Draw(rt, "retry limit"),
		}
		got, err = m.f.Retune(ctx, topic, m.topicControl.Settings)
	}
	require.NoError(rt, err)
	require.Equal(rt, m.topicControl, got)
}

// checkControl compares the control with the model.
func (m *model) checkControl(rt *rapid.T) {
	got, err := m.f.Control(m.t.Context(), m.f.topic)
	require.NoError(rt, err)
	require.Equal(rt, m.topicControl, got)
}

// whole is an exchange that settles, extends and claims at once.
func (m *model) whole(rt *rapid.T) {
	h := m.holder(rt)
	if len(h.seen) == 0 {
		return
	}
	// One lease of each id: of two, the first valid one would count.
	leases := rapid.SliceOfNDistinct(rapid.SampledFrom(h.seen), 1, 3,
		func(l exchange.Lease) string { return l.ID }).Draw(rt, "leases")
	h.last = h.Request(rapid.IntRange(0, 4).Draw(rt, "want"), time.Hour)
	var refused []exchange.Refusal
	var good []exchange.Lease
	extends := rapid.Bool().Draw(rt, "extend the last")
	for i, l := range leases {
		if extends && i == len(leases)-1 {
			h.last.Extend = []exchange.Held{m.named(l)}
		} else {
			v := rapid.SampledFrom([]exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release}).Draw(rt, "verdict")
			s := storetest.Verdict(v, l)
			s.Held = m.named(l)
			s.Delay = time.Hour // not to be claimed in the same exchange
			drawSnooze(rt, &s)
			h.last.Settle = append(h.last.Settle, s)
		}
		if why := m.refusal(rt, l); why != 0 {
			refused = append(refused, exchange.Refusal{Index: i, Reason: why})
		} else {
			good = append(good, l)
		}
	}
	h.reply = h.Run(m.t, h.last)
	require.ElementsMatch(rt, refused, h.reply.Refused)
	m.claimed(rt, h, m.apply(rt, h, good)...)
}

// apply updates the model with what an exchange settled and extended, for the
// leases that were valid.
func (m *model) apply(rt *rapid.T, h *modelHolder, good []exchange.Lease) (deadLettered []exchange.DeadLettered) {
	for i, s := range h.last.Settle {
		switch {
		case !slices.ContainsFunc(good, func(l exchange.Lease) bool { return l.ID == s.ID }):
		case s.Verdict == exchange.DeadLetter:
			deadLettered = append(deadLettered, m.makeDead(i, s.ID))
		default:
			m.settled(s)
		}
	}
	for _, l := range good {
		if slices.Contains(h.last.Extend, m.named(l)) {
			l.Token = h.reply.Extended
			h.seen = append(h.seen, l)
			m.timers[l.ID].score = parse(rt, string(l.Token))
		}
	}
	return deadLettered
}
