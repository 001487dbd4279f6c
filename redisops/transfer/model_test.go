package transfer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
)

// TestImportedTimersAreLikeOthers compares a topic to which timers are imported and
// scheduled, with and without keys, while others are claimed, with a map of its timers. In
// the end all timers are delivered once, those of a key one at a time.
func TestImportedTimersAreLikeOthers(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	rapid.Check(t, func(r *rapid.T) {
		f := newFixture(t, rdb)
		m := &putModel{t: t, fixture: f, live: map[string]string{}, leases: map[string]exchange.Lease{}}
		if n := rapid.IntRange(1, 3).Draw(r, "shards"); n > 1 {
			_, err := f.Divide(t.Context(), f.topic, n)
			require.NoError(t, err)
		}
		names, err := f.Physical(t.Context(), f.topic)
		require.NoError(t, err)
		for _, name := range names {
			m.streams = append(m.streams, storetest.NewStream(f.timers.Source(name, timers.SourceOptions{})))
		}
		defer func() { require.NoError(t, f.Forget(context.WithoutCancel(t.Context()), f.topic)) }()
		r.Repeat(map[string]func(*rapid.T){
			"put": m.put, "schedule": m.schedule, "cancel": m.cancel, "claim": m.claim, "settle": m.settle, "": m.check,
		})
		m.drain()
	})
}

type putModel struct {
	*fixture
	t       *testing.T
	streams []*storetest.Stream
	live    map[string]string // the payloads of the timers
	leases  map[string]exchange.Lease
	number  int
}

func keyOf(id string) string {
	if id[1]%2 == 0 {
		return "key " + string('a'+id[1]%4)
	}
	return ""
}

func when(r *rapid.T) time.Time {
	return time.Now().Add(-time.Duration(rapid.IntRange(1, 3).Draw(r, "minutes")) * time.Minute).Truncate(time.Microsecond).UTC()
}

func (m *putModel) id(r *rapid.T) string {
	return fmt.Sprintf("t%d", rapid.IntRange(0, 9).Draw(r, "id"))
}

func (m *putModel) put(r *rapid.T) {
	mode := rapid.SampledFrom([]timers.PutMode{timers.PutKeep, timers.PutReplace, timers.PutTry}).Draw(r, "mode")
	var list []timers.Stored
	for range rapid.IntRange(1, 6).Draw(r, "timers") { // also an id twice
		m.number++
		at := when(r)
		s := timers.Stored{ID: m.id(r), At: at, Due: at, Payload: fmt.Append(nil, m.number), Number: rapid.Int64Range(0, 20).Draw(r, "number")}
		if s.Key = keyOf(s.ID); rapid.IntRange(0, 3).Draw(r, "attempted") == 0 {
			s.Claims, s.Failures, s.LastError = 1, 1, "a:b\n"
		}
		list = append(list, s)
	}
	existed, err := m.Put(m.t.Context(), m.topic, mode, list)
	require.NoError(m.t, err)
	for i, s := range list {
		_, known := m.live[s.ID]
		require.Equal(m.t, known, existed[i], "%d %s", i, s.ID)
		if mode == timers.PutTry || known && mode == timers.PutKeep {
			continue
		}
		if known {
			delete(m.leases, s.ID) // the lease is lost
		}
		m.live[s.ID] = string(s.Payload)
	}
}

func (m *putModel) schedule(r *rapid.T) {
	m.number++
	id := m.id(r)
	_, err := m.Schedule(m.t.Context(), m.topic, timers.Entry{ID: id, Key: keyOf(id), Payload: fmt.Append(nil, m.number), At: when(r)})
	require.NoError(m.t, err)
	m.live[id] = fmt.Sprint(m.number)
	delete(m.leases, id)
}

func (m *putModel) cancel(r *rapid.T) {
	id := m.id(r)
	_, err := m.Cancel(m.t.Context(), m.topic, id)
	require.NoError(m.t, err)
	delete(m.live, id)
	delete(m.leases, id)
}

func (m *putModel) claim(r *rapid.T) { m.claimUpTo(rapid.IntRange(1, 3).Draw(r, "want")) }

// claimUpTo claims timers in each shard. No two of a key have a lease.
func (m *putModel) claimUpTo(want int) (n int) {
	for _, stream := range m.streams {
		request := stream.Request(want, time.Minute)
		request.Flow.PerKey = 1
		for _, l := range stream.Run(m.t, request).Leases {
			n++
			require.NotContains(m.t, m.leases, l.ID)
			require.Equal(m.t, m.live[l.ID], string(l.Payload), l.ID)
			for other := range m.leases {
				require.False(m.t, keyOf(l.ID) != "" && keyOf(other) == keyOf(l.ID), "%s and %s", l.ID, other)
			}
			m.leases[l.ID] = l
		}
	}
	return n
}

func (m *putModel) settle(r *rapid.T) {
	for id := range m.leases {
		m.ack(id, rapid.Bool().Draw(r, "ack"))
		return
	}
}

// ack settles a lease in all shards: the others refuse it.
func (m *putModel) ack(id string, ack bool) {
	l := m.leases[id]
	refused := 0
	for _, stream := range m.streams {
		s := storetest.Verdict(exchange.Nack, l)
		if ack {
			s = storetest.Verdict(exchange.Ack, l)
		}
		refused += len(stream.Settle(m.t, s).Refused)
	}
	require.Equal(m.t, len(m.streams)-1, refused, id)
	delete(m.leases, id)
	if ack {
		delete(m.live, id)
	}
}

func (m *putModel) check(*rapid.T) {
	d, err := m.Dump(m.t.Context(), m.topic)
	require.NoError(m.t, err)
	found := map[string]string{}
	for s, err := range d.EachTimer(m.t.Context()) {
		require.NoError(m.t, err)
		require.NotContains(m.t, found, s.ID)
		require.Equal(m.t, keyOf(s.ID), s.Key)
		found[s.ID] = string(s.Payload)
	}
	require.Equal(m.t, m.live, found)
}

// drain delivers all timers.
func (m *putModel) drain() {
	for len(m.live) > 0 {
		claimed := m.claimUpTo(10)
		require.NotZero(m.t, claimed+len(m.leases), "nothing can be claimed of %v", m.live)
		for id := range m.leases {
			m.ack(id, true)
		}
	}
}
