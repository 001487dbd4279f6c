package shards

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestMovingTimersAreNeitherLostNorDoubled compares a topic whose timers move, with
// processes that end between any two steps, with a map of its timers.
func TestMovingTimersAreNeitherLostNorDoubled(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	rapid.Check(t, func(r *rapid.T) {
		from, to := rapid.IntRange(1, 3).Draw(r, "from"), rapid.IntRange(1, 3).Draw(r, "to")
		if from == to {
			to++
		}
		m := &movingModel{t: t, fixture: newFixture(t, rdb, wakebelltype.Keys{}, from), to: to, live: map[string]string{}, leases: map[string]heldLease{}}
		m.bounds.timers = rapid.SampledFrom([]int{1, 3, movePage}).Draw(r, "timers of a step")
		defer func() { require.NoError(t, m.Forget(context.WithoutCancel(t.Context()), m.topic)) }()
		r.Repeat(map[string]func(*rapid.T){
			"schedule":   m.schedule,
			"cancel":     m.cancel,
			"get":        m.get,
			"reschedule": m.reschedule,
			"claim":      m.claim,
			"settle":     m.settle,
			"begin":      m.begin,
			"move": func(*rapid.T) {
				m.step(func(l sharding.Layout) { _, _, err := m.move(t.Context(), m.topic, l); require.NoError(t, err) })
			},
			"take":      m.crashAfterTake,
			"arrive":    m.crashAfterArrival,
			"deliver":   func(*rapid.T) { require.NoError(t, m.Deliver(t.Context(), m.topic)) },
			"drop pins": func(*rapid.T) { m.dropPins(t) },
			"":          m.check,
		})
		m.end(r)
	})
}

type movingModel struct {
	*fixture
	t      *testing.T
	to     int
	layout sharding.Layout
	live   map[string]string    // the payloads of the timers
	leases map[string]heldLease // that nodes hold
	number int
}

type heldLease struct {
	stream  *storetest.Stream
	lease   exchange.Lease
	payload string
}

// keyOf gives every other id a key.
func keyOf(id string) string {
	if id[1]%2 == 0 {
		return "key " + string('a'+id[1]%4)
	}
	return ""
}

func (m *movingModel) id(r *rapid.T) string {
	return fmt.Sprintf("t%d", rapid.IntRange(0, 9).Draw(r, "id"))
}

// when draws an instant: the timer is due, or far from it.
func when(r *rapid.T) time.Time {
	if rapid.Bool().Draw(r, "due") {
		return time.Now().Add(-time.Minute)
	}
	return hour.Add(time.Duration(rapid.IntRange(0, 100).Draw(r, "at")) * time.Second)
}

func (m *movingModel) schedule(r *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(r, "timers")
	seen := map[string]bool{}
	var entries []timers.Entry
	for range n {
		id := m.id(r)
		if seen[id] {
			continue
		}
		seen[id] = true
		m.number++
		entries = append(entries, timers.Entry{ID: id, Key: keyOf(id), Payload: fmt.Append(nil, m.number), At: when(r)})
	}
	var done []wakebelltype.Scheduled
	write := func() (err error) {
		done, err = m.Schedule(m.t.Context(), m.topic, entries...)
		return err
	}
	if rapid.Bool().Draw(r, "with an idempotency key") { // and twice
		key := timers.NewKey("owner", fmt.Sprint(m.number), nil)
		write = func() (err error) {
			b := timers.NewBatch("", 0)
			for i := range entries {
				require.NoError(m.t, b.Add(m.topic, &entries[i]))
			}
			first, err := m.Write(m.t.Context(), key, b)
			require.NoError(m.t, err)
			if rapid.Bool().Draw(r, "move between") && m.layout.Moves() {
				_, _, err = m.move(m.t.Context(), m.topic, m.layout)
				require.NoError(m.t, err)
			}
			done, err = m.Write(m.t.Context(), key, b)
			require.Equal(m.t, first, done)
			return err
		}
	}
	require.NoError(m.t, write())
	for i, e := range entries {
		_, known := m.live[e.ID]
		require.Equal(m.t, known, done[i].Outcome != wakebelltype.OutcomeCreated, "%s: %v", e.ID, done[i].Outcome)
		m.live[e.ID] = string(e.Payload)
	}
}

func (m *movingModel) cancel(r *rapid.T) {
	id := m.id(r)
	found, err := m.Cancel(m.t.Context(), m.topic, id)
	require.NoError(m.t, err)
	_, known := m.live[id]
	require.Equal(m.t, known, found[0] != wakebelltype.PresenceAbsent, id)
	delete(m.live, id)
}

func (m *movingModel) get(r *rapid.T) {
	id := m.id(r)
	timer, err := m.Get(m.t.Context(), m.topic, id)
	payload, known := m.live[id]
	if !known {
		require.ErrorIs(m.t, err, wakebelltype.ErrNotFound)
		return
	}
	require.NoError(m.t, err, id)
	require.Equal(m.t, payload, string(timer.Payload))
}

func (m *movingModel) reschedule(r *rapid.T) {
	id := m.id(r)
	_, err := m.Reschedule(m.t.Context(), m.topic, id, when(r), 0)
	if _, known := m.live[id]; !known {
		require.ErrorIs(m.t, err, wakebelltype.ErrNotFound)
		return
	}
	require.NoError(m.t, err, id)
	if h, held := m.leases[id]; held { // its lease is superseded, and it is delivered again
		h.payload = ""
		m.leases[id] = h
	}
}

// claim claims due timers of one physical topic, as a node does that polls all of them.
func (m *movingModel) claim(r *rapid.T) {
	names := m.names(m.t)
	name := names[rapid.IntRange(0, len(names)-1).Draw(r, "place")]
	stream := storetest.NewStream(m.timers.Source(name, timers.SourceOptions{}))
	for _, l := range stream.Claim(m.t, 3).Leases {
		require.Equal(m.t, m.live[l.ID], string(l.Payload), "%s is delivered with its last payload", l.ID)
		m.leases[l.ID] = heldLease{stream, l, string(l.Payload)}
	}
}

func (m *movingModel) settle(r *rapid.T) {
	if len(m.leases) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(m.leases))
	id := ids[rapid.IntRange(0, len(ids)-1).Draw(r, "lease")]
	h := m.leases[id]
	delete(m.leases, id)
	verdict := storetest.Verdict(exchange.Ack, h.lease)
	if rapid.Bool().Draw(r, "fails") {
		verdict.Verdict, verdict.Delay = exchange.Nack, time.Hour
	}
	h.stream.Settle(m.t, verdict)
	if verdict.Verdict == exchange.Ack && h.payload == m.live[id] {
		delete(m.live, id)
	}
}

func (m *movingModel) begin(*rapid.T) {
	if !m.layout.Moves() {
		m.layout = m.startMoving(m.t, m.to)
	}
}

func (m *movingModel) step(do func(l sharding.Layout)) {
	if m.layout.Moves() {
		do(m.layout)
	}
}

func (m *movingModel) crashAfterTake(r *rapid.T) {
	m.step(func(l sharding.Layout) {
		k := rapid.IntRange(0, l.From-1).Draw(r, "from")
		_, err := m.toShards(m.topic, l).take(m.t.Context(), sharding.Name(m.topic, l.From, k))
		require.NoError(m.t, err)
	})
}

// crashAfterArrival stores parts of the batches of an outbox.
func (m *movingModel) crashAfterArrival(r *rapid.T) {
	m.step(func(l sharding.Layout) {
		from := sharding.Name(m.topic, l.From, rapid.IntRange(0, l.From-1).Draw(r, "from"))
		_, err := m.toShards(m.topic, l).take(m.t.Context(), from)
		require.NoError(m.t, err)
		batches, err := m.outbox(m.t.Context(), from)
		require.NoError(m.t, err)
		for token, text := range batches {
			batch, err := readBatch(text)
			require.NoError(m.t, err)
			parts, _ := m.spread(m.topic, l, batch)
			for name, part := range parts {
				if rapid.Bool().Draw(r, "arrives") {
					_, err := m.toShards(m.topic, l).arrive(m.t.Context(), batch, name, token+" "+from, part)
					require.NoError(m.t, err)
					if rapid.Bool().Draw(r, "are handled") {
						m.handleAll(name)
					}
				}
			}
		}
	})
}

// handleAll claims the due timers of a physical topic and acks them.
func (m *movingModel) handleAll(name string) {
	stream := storetest.NewStream(m.timers.Source(name, timers.SourceOptions{}))
	for _, l := range stream.Claim(m.t, 100).Leases {
		require.Equal(m.t, m.live[l.ID], string(l.Payload), l.ID)
		stream.Settle(m.t, storetest.Verdict(exchange.Ack, l))
		delete(m.live, l.ID)
		delete(m.leases, l.ID)
	}
}

// check requires that no timer is in two places.
func (m *movingModel) check(r *rapid.T) {
	ids := m.in(m.t, m.names(m.t))
	require.Equal(r, slices.Compact(slices.Clone(ids)), ids)
	for _, id := range ids {
		require.Contains(r, m.live, id)
	}
}

// end moves all timers that no node holds, and compares them.
func (m *movingModel) end(r *rapid.T) {
	if m.layout.Moves() {
		m.dropPins(m.t)
		m.moveAll(m.t, m.layout)
		require.NoError(r, m.Deliver(m.t.Context(), m.topic))
	}
	ids := m.in(m.t, m.names(m.t))
	require.Equal(r, slices.Sorted(maps.Keys(m.live)), ids)
	for _, id := range ids {
		timer, err := m.Get(m.t.Context(), m.topic, id)
		require.NoError(r, err)
		require.Equal(r, m.live[id], string(timer.Payload))
	}
	if m.layout.Moves() && len(m.leases) == 0 {
		require.Empty(r, m.in(m.t, sharding.Names(m.topic, m.layout.From)))
	}
}
