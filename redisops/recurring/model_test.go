package recurring

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
)

// model is the expected state of the store of recurring schedules. Several nodes
// act on state that they have read earlier.
type model struct {
	entries map[string]recur.Raw
	scores  map[string]int64
	timers  map[string]bool
	locked  bool
	version int
}

// TestBeatModel applies operations of nodes, Python processes and people to
// entries, in any order, and compares all that Redis stores.
func TestBeatModel(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		f := newFixture(t, rdb)
		m := model{entries: map[string]recur.Raw{}, scores: map[string]int64{}, timers: map[string]bool{}}
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		read := map[string]recur.Raw{} // what a node has in memory
		fresh := func() recur.Raw {
			m.version++
			return raw(fmt.Sprintf("-%d-%d", round, m.version))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"save": func(rt *rapid.T) { // as Python does: without a check
				name, r := names.Draw(rt, "name"), fresh()
				m.scores[name] = int64(m.version)
				require.NoError(rt, f.Put(t.Context(), name, f.load(name), r, int64(m.version)))
				m.entries[name] = r
			},
			"read": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				read[name] = f.load(name)
			},
			"put": func(rt *rapid.T) {
				name, r := names.Draw(rt, "name"), fresh()
				err := f.Put(t.Context(), name, read[name], r, int64(m.version))
				if !equalRaw(read[name], m.entries[name]) {
					require.ErrorIs(rt, err, ErrChanged)
					return
				}
				require.NoError(rt, err)
				m.entries[name], m.scores[name] = r, int64(m.version)
			},
			"delete": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				_, there := m.entries[name]
				found, err := f.Delete(t.Context(), name, read[name].Ours)
				if there && string(read[name].Ours) != string(m.entries[name].Ours) {
					require.ErrorIs(rt, err, ErrChanged)
					return
				}
				require.NoError(rt, err)
				require.Equal(rt, there, found)
				delete(m.entries, name)
				delete(m.scores, name)
			},
			"lock": func(rt *rapid.T) {
				m.locked = !m.locked
				if m.locked {
					require.NoError(rt, rdb.Set(t.Context(), f.lock(), "foreign", time.Hour).Err())
				} else {
					require.NoError(rt, rdb.Del(t.Context(), f.lock()).Err())
				}
			},
			"fire": func(rt *rapid.T) {
				var firings []Firing
				for _, name := range rapid.SliceOfNDistinct(names, 1, 3, rapid.ID[string]).Draw(rt, "names") {
					r := fresh()
					g := f.firing(name, "", fmt.Sprintf("%s@%d", name, m.version))
					g.Raw, g.Meta, g.Ours, g.Score = read[name], r.Meta, r.Ours, int64(m.version)
					firings = append(firings, g)
				}
				m.fire(rt, f, firings)
			},
			"": func(rt *rapid.T) { m.compare(rt, f) },
		})
	})
}

func equalRaw(a, b recur.Raw) bool {
	return string(a.Definition) == string(b.Definition) && string(a.Meta) == string(b.Meta) && string(a.Ours) == string(b.Ours)
}

func (m *model) fire(rt *rapid.T, f *fixture, firings []Firing) {
	reply, err := f.Fire(f.t.Context(), "", Lock{}, firings)
	require.NoError(rt, err)
	require.Equal(rt, m.locked, reply.Barred)
	if m.locked {
		return
	}
	for i, g := range firings {
		entry, there := m.entries[g.Name]
		switch {
		case !there:
			require.Equal(rt, Gone, reply.Outcomes[i])
		case !equalRaw(entry, g.Raw):
			require.Equal(rt, Changed, reply.Outcomes[i])
			require.True(rt, equalRaw(entry, reply.Found[i]))
		default:
			require.Equal(rt, Fired, reply.Outcomes[i])
			m.entries[g.Name] = recur.Raw{Definition: g.Raw.Definition, Meta: g.Meta, Ours: g.Ours}
			m.scores[g.Name] = g.Score
			m.timers[g.Runs[0].ID] = true
		}
	}
}

func (m *model) compare(rt *rapid.T, f *fixture) {
	for _, name := range []string{"a", "b", "c"} {
		require.True(rt, equalRaw(m.entries[name], f.load(name)), name)
	}
	members, _, err := f.Names(f.t.Context(), 0)
	require.NoError(rt, err)
	require.Len(rt, members, len(m.scores))
	for _, member := range members {
		require.InDelta(rt, float64(m.scores[member.Name]), member.Score, 0)
	}
	ids := f.ids()
	require.Len(rt, ids, len(m.timers))
	for _, id := range ids {
		require.True(rt, m.timers[id], id)
	}
}
