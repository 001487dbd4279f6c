package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// model is a queue in plain Go: what two holders and a Python-like peer must
// observe. A lease lasts an hour or a millisecond, which is waited out, so that the
// result does not depend on the clock.
type model struct {
	t       testing.TB
	f       *fixture
	holders [2]*queueModelHolder

	pending   []*modelMessage // the next one first
	expired   []*modelMessage // the oldest deadline first
	held      []*modelMessage // leased, or waiting for its next attempt
	keys      map[string]*modelMessage
	dead      []string
	completed []string
	failed    []string
	tokens    int // the last one given
	published int
}

type modelMessage struct {
	payload, key string
	order        int // of publishing
	deliveries   int
	token        string // token of its holder
}

type queueModelHolder struct {
	*fixture
	seen  []modelSeen
	last  *exchange.Request
	reply *exchange.Reply
}

// modelSeen is a lease that a holder once had.
type modelSeen struct {
	lease   exchange.Lease
	message *modelMessage
	token   string
}

const modelDeliveries = 3

func TestQueueModel(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	rdb.AddHook(storetest.Contract(t, lua, namedKey))
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t, f: queueOn(t, rdb, fmt.Sprintf("model-%x", rand.Uint64())), keys: map[string]*modelMessage{}}
		for i := range m.holders {
			m.holders[i] = &queueModelHolder{fixture: m.f.holder(SourceOptions{
				MaxDeliveries: modelDeliveries, Completed: 1000, Failed: 1000, FreeKeys: true,
			})}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish":       m.publish,
			"publish again": m.publish,
			"claim":         m.claim,
			"settle":        m.settle,
			"settle more":   m.settle,
			"extend":        m.extend,
			"replay":        m.replay,
			"redrive":       m.redrive,
			"purge":         m.purge,
			"peer reclaims": m.peerReclaims,
			"":              m.check,
		})
	})
}

func (m *model) publish(rt *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(rt, "messages")
	messages, want := make([]Message, n), make([]bool, n)
	for i := range messages {
		m.published++
		mm := &modelMessage{payload: fmt.Sprint(m.published), order: m.published, key: rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(rt, "key")}
		messages[i] = NewMessage([]byte(mm.payload), mm.key)
		if want[i] = mm.key == "" || m.keys[mm.key] == nil; want[i] {
			m.pending = append(m.pending, mm)
			if mm.key != "" {
				m.keys[mm.key] = mm
			}
		}
	}
	times := rapid.IntRange(1, 2).Draw(rt, "times")
	for range times {
		out, _, err := m.f.Publish(m.t.Context(), PublishOptions{OwnKeys: true}, messages...)
		require.NoError(rt, err)
		for i := range out {
			require.Equal(rt, want[i], out[i].Fresh)
		}
	}
}

func (m *model) holder(rt *rapid.T) *queueModelHolder {
	return m.holders[rapid.IntRange(0, 1).Draw(rt, "holder")]
}

func (m *model) claim(rt *rapid.T) {
	h, want := m.holder(rt), rapid.IntRange(0, 4).Draw(rt, "want")
	brief := rapid.Bool().Draw(rt, "brief")
	ttl := time.Hour
	if brief {
		ttl = time.Millisecond
	}
	h.last = h.request(want, ttl)
	h.reply = h.run(m.t, h.last)
	m.claimed(rt, h, want, brief)
}

// claimed returns what a claim must return.
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
		mm.deliveries, mm.token = mm.deliveries+1, fmt.Sprint(m.tokens)
		require.Equal(rt, mm.payload, string(h.reply.Leases[i].Payload))
		require.Equal(rt, mm.deliveries, h.reply.Leases[i].Claims)
		h.seen = append(h.seen, modelSeen{h.reply.Leases[i], mm, mm.token})
	}
	var died []string
	for _, b := range h.reply.Buried {
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

// makeDead notes that a message is dead, and frees its key if it is still its own.
func (m *model) makeDead(mm *modelMessage) {
	m.dead, mm.token = append(m.dead, mm.payload), ""
	m.free(mm)
}

func (m *model) free(mm *modelMessage) {
	if m.keys[mm.key] == mm {
		delete(m.keys, mm.key)
	}
}

func (m *model) drop(mm *modelMessage) {
	same := func(other *modelMessage) bool { return other == mm }
	m.held, m.expired = slices.DeleteFunc(m.held, same), slices.DeleteFunc(m.expired, same)
	mm.token = ""
}

// settle settles anything that the holder ever had, and claims on.
func (m *model) settle(rt *rapid.T) {
	h := m.holder(rt)
	if len(h.seen) == 0 {
		return
	}
	want := rapid.IntRange(0, 2).Draw(rt, "want")
	h.last = h.request(want, time.Hour)
	verdicts := []exchange.Verdict{exchange.Ack, exchange.Nack, exchange.Bury, exchange.Fail, exchange.Release}
	var seen []modelSeen
	for range rapid.IntRange(1, 4).Draw(rt, "settlements") {
		s := rapid.SampledFrom(h.seen).Draw(rt, "lease")
		v := storetest.Verdict(rapid.SampledFrom(verdicts).Draw(rt, "verdict"), s.lease)
		v.Delay = time.Hour
		seen = append(seen, s)
		h.last.Settle = append(h.last.Settle, v)
	}
	refused := m.settled(seen, h.last.Settle)
	h.reply = h.run(m.t, h.last)
	var got []int
	for _, r := range h.reply.Refused {
		require.Equal(rt, exchange.Lost, r.Why)
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
			case exchange.Bury:
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
	h.last = h.request(0, time.Hour)
	h.last.Extend = []exchange.Held{storetest.Held(s.lease)}
	h.reply = h.run(m.t, h.last)
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
	again := h.run(m.t, h.last)
	require.Equal(rt, h.reply.Refused, again.Refused)
	require.Equal(rt, h.reply.Buried, again.Buried)
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

func (m *model) redrive(rt *rapid.T) {
	if len(m.dead) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.dead)-1).Draw(rt, "letter")
	letters, _, err := m.f.DeadLetters(m.t.Context(), "", "", 1000)
	require.NoError(rt, err)
	outcome, _, err := m.f.RedriveLetter(m.t.Context(), letters[i], "", PublishOptions{})
	require.NoError(rt, err)
	require.Equal(rt, wakebelltype.QueueRedriveSucceeded, outcome)
	m.published++
	m.pending = append(m.pending, &modelMessage{payload: m.dead[i], order: m.published})
	m.dead = slices.Delete(m.dead, i, i+1)
}

func (m *model) purge(rt *rapid.T) {
	if rapid.IntRange(0, 9).Draw(rt, "rarely") > 0 {
		return
	}
	all := rapid.Bool().Draw(rt, "all")
	_, err := m.f.Purge(m.t.Context(), all)
	require.NoError(rt, err)
	gone := m.pending
	m.pending = nil
	if all {
		gone = slices.Concat(gone, m.held, m.expired)
		m.held, m.expired = nil, nil
	}
	for _, mm := range gone {
		mm.token = ""
		m.free(mm)
	}
}

// peerReclaims does what a Python consumer does before it claims.
func (m *model) peerReclaims(rt *rapid.T) {
	k, ctx := m.f.keys, m.t.Context()
	for _, mm := range slices.Backward(m.expired) {
		var value string
		for _, v := range m.f.list(m.t, k.processing) {
			if payload := storedPayload(v); payload == mm.payload {
				value = v
			}
		}
		require.NotEmpty(rt, value, "it must be in processing, or the peer drops it")
		require.NoError(rt, m.f.rdb.ZRem(ctx, k.deadlines, value).Err())
		require.NoError(rt, m.f.rdb.HDel(ctx, k.tokens, value).Err())
		require.EqualValues(rt, 1, m.f.rdb.LRem(ctx, k.processing, 1, value).Val())
		require.NoError(rt, m.f.rdb.RPush(ctx, k.pending, value).Err())
		mm.token = ""
	}
	m.pending = append(m.expired, m.pending...)
	m.expired = nil
}
