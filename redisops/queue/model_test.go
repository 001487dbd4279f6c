package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

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
	tokens    int // the last token issued
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

// makeDead adds a message to the dead letters, and frees its key if the message
// still owns it.
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

func (m *model) redrive(rt *rapid.T) {
	if len(m.dead) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.dead)-1).Draw(rt, "dead letter")
	dead, _, err := m.f.DeadLetters(m.t.Context(), "", "", 1000)
	require.NoError(rt, err)
	outcome, _, err := m.f.RedriveLetter(m.t.Context(), dead[i], "", PublishOptions{})
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

// peerReclaims executes the commands of a Python consumer before its claim.
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
