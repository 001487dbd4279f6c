package joins

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/envelope"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// marks returns the joins of which the nodes of a part know.
func (w *world) marks(p wakebelltype.Part) []Ref {
	w.t.Helper()
	timer, err := w.topics.Get(w.t.Context(), p.Topic, p.ID)
	require.NoError(w.t, err)
	env, err := envelope.Decode(timer.Payload)
	require.NoError(w.t, err)
	return RefsOf(env.Headers)
}

// TestFinishAdoptsPartsThatWereFound has parts that scheduling has kept, one that was created,
// and one that was done before.
func TestFinishAdoptsPartsThatWereFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outcomes := []wakebelltype.Outcome{
		wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeKeptEarlier, wakebelltype.OutcomeCreated, wakebelltype.OutcomeAlreadyDone,
	}
	list, stored := make([]Timer, 5), make([]wakebelltype.Scheduled, 6)
	parts := make([]wakebelltype.Part, len(list))
	for i, id := range []string{"pending", "running", "earlier", "new", "done"} {
		parts[i] = w.part(id, false)
		list[i].Part, stored[i].Outcome = parts[i], outcomes[i]
		if id != "done" {
			w.store(parts[i], envelope.Envelope{})
		}
	}
	join := Timer{Part: wakebelltype.Part{Topic: w.of.Topic, ID: w.of.ID}, Name: w.of.Name, Life: time.Hour, Parts: parts}
	plan, err := w.Prepare(t.Context(), nil, append(list, join))
	require.NoError(t, err)
	w.store(join.Part, envelope.Envelope{Headers: Headers(nil, w.of.Name)})
	for range 2 { // it may be repeated
		require.NoError(t, w.Finish(t.Context(), plan, stored))
	}
	for _, p := range parts[:3] {
		require.Equal(t, []Ref{w.of}, w.marks(p), p.ID)
	}
	require.Empty(t, w.marks(parts[3]), "its payload has the header already")
	require.Equal(t, []string{"pending", "running", "earlier", "new", "done missing"}, w.ends())
}

// TestFinishAdoptsPartsOfOpenJoins adds a part that is kept to a join of another call, also
// after a call with the same idempotency key has died before it.
func TestFinishAdoptsPartsOfOpenJoins(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		w := newWorld(t)
		ctx, key := t.Context(), timers.NewKey("", redistest.Name(t), nil).Each()
		require.NoError(t, w.Create(ctx, w.of, time.Hour))
		p := w.part("kept", false)
		w.store(p, envelope.Envelope{})
		list := []Timer{{Part: p, Of: []wakebelltype.Part{{Topic: w.of.Topic, ID: w.of.ID}}}}
		calls := 1
		if dies {
			calls = 2
		}
		for i := range calls {
			plan, err := w.Prepare(ctx, key, list)
			require.NoError(t, err)
			payload, err := envelope.Encode(envelope.Envelope{Headers: Headers(nil, "", plan.Refs[0]...)})
			require.NoError(t, err)
			b := timers.NewBatch("", 1)
			require.NoError(t, b.Add(p.Topic, &timers.Entry{ID: p.ID, Payload: payload, In: time.Hour, Policy: wakebelltype.PolicyKeep}))
			stored, err := w.topics.Write(ctx, key, b)
			require.NoError(t, err)
			require.Equal(t, wakebelltype.OutcomeKeptPending, stored[0].Outcome)
			if i == calls-1 {
				require.NoError(t, w.Finish(ctx, plan, stored))
			}
		}
		require.Equal(t, []Ref{w.of}, w.marks(p), "dies: %t", dies)
	}
}
