package queue

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/queuemessage"
)

// check compares all of Redis with the model.
func (m *model) check(rt *rapid.T) {
	k, ctx := m.f.keys, m.t.Context()
	var waiting []string
	for _, v := range slices.Backward(m.f.list(m.t, k.pending)) {
		payload := storedPayload(v)
		waiting = append(waiting, payload)
	}
	var want []string
	for _, mm := range m.pending {
		want = append(want, mm.payload)
	}
	require.Equal(rt, want, waiting)
	processing := map[string]string{} // payload → token
	for _, v := range m.f.list(m.t, k.processing) {
		payload := storedPayload(v)
		processing[payload] = m.f.rdb.HGet(ctx, k.tokens, v).Val()
		require.NoError(rt, m.f.rdb.ZScore(ctx, k.deadlines, v).Err())
	}
	held := slices.Concat(m.held, m.expired)
	require.Len(rt, processing, len(held))
	for _, mm := range held {
		if strings.Contains(mm.token, ".") { // the token of a nack belongs to no holder
			require.Equal(rt, mm.token, processing[mm.payload])
		}
	}
	require.EqualValues(rt, len(held), m.f.rdb.ZCard(ctx, k.deadlines).Val())
	require.EqualValues(rt, len(held), m.f.rdb.HLen(ctx, k.tokens).Val())
	counted := int64(0)
	for _, mm := range slices.Concat(held, m.pending) {
		if mm.deliveries > 0 {
			counted++
		}
	}
	require.Equal(rt, counted, m.f.rdb.HLen(ctx, k.counts).Val())
	reversed := func(key string) []string {
		list := m.f.list(m.t, key)
		slices.Reverse(list)
		return list
	}
	require.Equal(rt, append([]string{}, m.dead...), reversed(k.dlq))
	require.Equal(rt, append([]string{}, m.failed...), reversed(k.failed))
	require.Equal(rt, append([]string{}, m.completed...), reversed(k.completed))
	for _, key := range []string{"k", "l"} {
		require.Equal(rt, m.keys[key] != nil, m.f.rdb.Exists(ctx, k.deduplication+key).Val() == 1, key)
	}
}

func storedPayload(value string) string {
	m, _ := queuemessage.Decode(value)
	return string(m.Payload)
}
