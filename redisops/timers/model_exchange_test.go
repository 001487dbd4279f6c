package timers

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/scripts"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

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
	h.last = h.Request(want, ttl)
	h.reply = h.Run(m.t, h.last)
	m.claimed(rt, h)
}

// claimed compares what a request claimed with what was due, and its dead letters
// with those of its settlements and those with too many claims.
func (m *model) claimed(rt *rapid.T, h *modelHolder, deadLettered ...exchange.DeadLettered) {
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
	m.grant(h)
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
		require.Equal(rt, timer.rec.snoozed && l.Failures == 0, l.Snoozed)
		require.Equal(rt, scripts.Instant(timer.rec.activation), l.Activation)
		h.seen = append(h.seen, l)
	}
	m.await(end, h.last.LeaseTTL)
}

// grant notes when the tokens of a reply were given out.
func (m *model) grant(h *modelHolder) {
	m.granted[h.reply.Extended] = h.reply.Now.Add(h.reply.Remaining - h.last.LeaseTTL)
}

// named names a lease to the source as a poller does.
func (m *model) named(l exchange.Lease) exchange.Held {
	held := storetest.Held(l)
	held.Granted = m.granted[l.Token]
	return held
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
func (m *model) refusal(rt *rapid.T, l exchange.Lease) exchange.RefusalReason {
	token := parse(rt, string(l.Token))
	timer := m.timers[l.ID]
	switch {
	case timer != nil && timer.score == token:
		return 0
	case token <= m.now():
		return exchange.Lost
	case timer != nil && !m.cancelled[cancelledRun{l.ID, token}]:
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
	v := rapid.SampledFrom([]exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Release}).Draw(rt, "verdict")
	s := storetest.Verdict(v, l)
	s.Held = m.named(l)
	s.Delay = rapid.SampledFrom([]time.Duration{0, 0, time.Hour}).Draw(rt, "delay")
	drawSnooze(rt, &s)
	want := m.refusal(rt, l)
	h.last = h.Request(0, time.Hour)
	h.last.Settle = []exchange.Settlement{s}
	h.reply = h.Run(m.t, h.last)
	if want != 0 {
		require.Equal(rt, []exchange.Refusal{{Reason: want}}, h.reply.Refused)
		return
	}
	require.Empty(rt, h.reply.Refused)
	if v == exchange.DeadLetter {
		m.checkDead(rt, []exchange.DeadLettered{m.makeDead(0, l.ID)}, h.reply)
		return
	}
	require.Empty(rt, h.reply.DeadLettered)
	m.settled(s)
}

// drawSnooze makes some nacks those of timers that were snoozed.
func drawSnooze(rt *rapid.T, s *exchange.Settlement) {
	if s.Verdict == exchange.Nack && rapid.Bool().Draw(rt, "snoozed") {
		s.Snoozed, s.Reason = true, "not yet"
	}
}

func (m *model) settled(s exchange.Settlement) {
	timer := m.timers[s.ID]
	switch s.Verdict {
	case exchange.Ack:
		delete(m.timers, s.ID)
	case exchange.Nack:
		timer.rec.leased, timer.rec.first, timer.rec.snoozed = false, 0, s.Snoozed
		if s.Snoozed {
			timer.rec.claims--
		} else {
			timer.rec.failures++
		}
		// Only Redis knows its now.
		timer.score = m.score(s.ID)
	case exchange.Release:
		timer.score = timer.rec.before
		timer.rec.leased = false
		timer.rec.claims--
		if timer.rec.claims == 0 && !timer.rec.tried() && timer.rec.first == 0 {
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
	h.last = h.Request(0, rapid.SampledFrom([]time.Duration{time.Hour, time.Millisecond}).Draw(rt, "ttl"))
	h.last.Extend = []exchange.Held{m.named(l)}
	h.reply = h.Run(m.t, h.last)
	if want != 0 {
		require.Equal(rt, []exchange.Refusal{{Reason: want}}, h.reply.Refused)
		return
	}
	require.Empty(rt, h.reply.Refused)
	m.grant(h)
	l.Token = h.reply.Extended
	h.seen = append(h.seen, l)
	m.timers[l.ID].score = parse(rt, string(l.Token))
	m.await(m.timers[l.ID].score, h.last.LeaseTTL)
}

// refusedAgain returns the refusals of the last reply, as they are given now: a run that was
// replaced may have been cancelled since, with its whole topic.
func (m *model) refusedAgain(rt *rapid.T, h *modelHolder) []exchange.Refusal {
	refused := slices.Clone(h.reply.Refused)
	for i, r := range refused {
		held := heldOf(h.last, r.Index)
		if r.Reason == exchange.Superseded && m.cancelled[cancelledRun{held.ID, parse(rt, string(held.Token))}] {
			refused[i].Reason = exchange.Cancelled
		}
	}
	return refused
}

// replay sends the last request again: nothing changes, and the reply has the
// leases that are still held.
func (m *model) replay(rt *rapid.T) {
	h := m.holder(rt)
	if h.last == nil {
		return
	}
	again := h.Run(m.t, h.last)
	require.Equal(rt, m.refusedAgain(rt, h), again.Refused)
	require.Equal(rt, h.reply.Extended, again.Extended)
	m.checkDeadAgain(rt, h.reply.DeadLettered, again.DeadLettered)
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
