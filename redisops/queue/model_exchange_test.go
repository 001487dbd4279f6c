package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

func (m *model) claim(rt *rapid.T) {
	h, want := m.holder(rt), rapid.IntRange(0, 4).Draw(rt, "want")
	brief := rapid.Bool().Draw(rt, "brief")
	ttl := time.Hour
	if brief {
		ttl = time.Millisecond
	}
	h.last = h.Request(want, ttl)
	h.reply = h.Run(m.t, h.last)
	m.claimed(rt, h, want, brief)
}

// claimed checks the reply to a claim against the model.
func (m *model) claimed(rt *rapid.T, h *queueModelHolder, want int, brief bool) {
	var got []*modelMessage
	var deadLettered []string
	for len(got) < want && len(m.expired)+len(m.pending) > 0 {
		from := &m.pending
		if len(m.expired) > 0 {
			from = &m.expired
		}
		mm := (*from)[0]
		*from = (*from)[1:]
		if mm.deliveries >= modelDeliveries {
			deadLettered = append(deadLettered, mm.payload)
			m.makeDead(mm)
			continue
		}
		got = append(got, mm)
	}
	require.Len(rt, h.reply.Leases, len(got))
	for i, mm := range got {
		m.tokens++
		token, _, _ := strings.Cut(string(h.reply.Leases[i].Token), " ")
		require.True(rt, strings.HasPrefix(token, fmt.Sprint(m.tokens, ".")), token)
		mm.deliveries, mm.token = mm.deliveries+1, token
		require.Equal(rt, mm.payload, string(h.reply.Leases[i].Payload))
		require.Equal(rt, mm.deliveries, h.reply.Leases[i].Claims)
		h.seen = append(h.seen, modelSeen{h.reply.Leases[i], mm, mm.token})
	}
	var died []string
	for _, b := range h.reply.DeadLettered {
		if b.Index < 0 {
			died = append(died, string(b.Payload))
		}
	}
	require.Equal(rt, deadLettered, died)
	if brief { // equal deadlines are ordered by id
		slices.SortFunc(got, func(a, b *modelMessage) int { return a.order - b.order })
		m.expired = append(m.expired, got...)
		m.f.pass(m.t, h.reply.Now.Add(2*time.Millisecond))
	} else {
		m.held = append(m.held, got...)
	}
}

// settle settles any leases that the holder has had, valid or not, and claims more.
func (m *model) settle(rt *rapid.T) {
	h := m.holder(rt)
	if len(h.seen) == 0 {
		return
	}
	want := rapid.IntRange(0, 2).Draw(rt, "want")
	h.last = h.Request(want, time.Hour)
	verdicts := []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.DeadLetter, exchange.Fail, exchange.Release}
	var seen []modelSeen
	for range rapid.IntRange(1, 4).Draw(rt, "settlements") {
		s := rapid.SampledFrom(h.seen).Draw(rt, "lease")
		v := storetest.Verdict(rapid.SampledFrom(verdicts).Draw(rt, "verdict"), s.lease)
		v.Delay = time.Hour
		seen = append(seen, s)
		h.last.Settle = append(h.last.Settle, v)
	}
	refused := m.settled(seen, h.last.Settle)
	h.reply = h.Run(m.t, h.last)
	var got []int
	for _, r := range h.reply.Refused {
		require.Equal(rt, exchange.Lost, r.Reason)
		got = append(got, r.Index)
	}
	require.ElementsMatch(rt, refused, got)
	m.claimed(rt, h, want, false)
}

// settled updates the model as the script must, verdict by verdict.
func (m *model) settled(seen []modelSeen, settle []exchange.Settlement) (refused []int) {
	var released []modelSeen
	for _, kind := range verdicts {
		for i, s := range seen {
			mm := s.message
			if settle[i].Verdict != kind {
				continue
			}
			if mm.token != s.token {
				refused = append(refused, i)
				continue
			}
			m.drop(mm)
			switch kind {
			case exchange.Ack:
				m.completed = append(m.completed, mm.payload)
			case exchange.Nack:
				m.tokens++
				mm.token = fmt.Sprint("nack ", m.tokens) // it has no holder
				m.held = append(m.held, mm)
			case exchange.DeadLetter:
				m.makeDead(mm)
			case exchange.Fail:
				m.failed = append(m.failed, mm.payload)
				m.free(mm)
			case exchange.Release:
				mm.deliveries--
				released = append(released, s)
			}
		}
	}
	front := make([]*modelMessage, len(released))
	newest := 0
	for i, s := range released {
		front[i], newest = s.message, max(newest, s.message.order)
	}
	for len(front) > 0 && len(m.pending) > 0 && m.pending[0].order < newest {
		front, m.pending = append(front, m.pending[0]), m.pending[1:]
	}
	slices.SortFunc(front, func(a, b *modelMessage) int { return a.order - b.order })
	m.pending = append(front, m.pending...)
	return refused
}

func (m *model) extend(rt *rapid.T) {
	h := m.holder(rt)
	if len(h.seen) == 0 {
		return
	}
	s := rapid.SampledFrom(h.seen).Draw(rt, "lease")
	h.last = h.Request(0, time.Hour)
	h.last.Extend = []exchange.Held{storetest.Held(s.lease)}
	h.reply = h.Run(m.t, h.last)
	require.Empty(rt, h.reply.Extended, "the token stays")
	if s.message.token != s.token {
		require.Len(rt, h.reply.Refused, 1)
		return
	}
	require.Empty(rt, h.reply.Refused)
	if i := slices.Index(m.expired, s.message); i >= 0 {
		m.expired = slices.Delete(m.expired, i, i+1)
		m.held = append(m.held, s.message)
	}
}

// replay sends the last request again: the reply has the claims that are still
// held, and the refusals.
func (m *model) replay(rt *rapid.T) {
	h := m.holder(rt)
	if h.last == nil {
		return
	}
	again := h.Run(m.t, h.last)
	require.Equal(rt, h.reply.Refused, again.Refused)
	require.Equal(rt, h.reply.DeadLettered, again.DeadLettered)
	var want []string
	for _, l := range h.reply.Leases {
		for _, s := range h.seen {
			if s.lease.Token == l.Token && s.message.token == s.token {
				want = append(want, l.ID)
			}
		}
	}
	require.Equal(rt, want, append([]string(nil), storetest.IDs(again.Leases)...))
}
