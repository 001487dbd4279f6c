package gates

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
)

// TestUnreadableNumbersStopNoGate checks that a gate with an unreadable number in
// its state keeps its holder and its order, and that its tickets only grow.
func TestUnreadableNumbersStopNoGate(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"last", "granted", "holder", "until", "lease", "since"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, f *fixture) {
				for i, text := range storetest.NoIntegers {
					a := f.other()
					a.gate = fmt.Sprint(f.gate, i)
					b := a.other()
					first, turn := a.join(t)
					require.True(t, turn)
					second, _ := b.join(t)
					state := a.keys(a.gate).state(a.gate)
					require.NoError(t, f.rdb.HSet(t.Context(), state, field, text).Err())
					if field != "holder" { // then the holder is unknown until the state is healed
						require.NoError(t, a.guards(t, "db", first), "%q", text)
						require.Equal(t, []bool{false}, a.beat(t, first).Lost, "%q", text)
						require.NoError(t, f.rdb.HSet(t.Context(), state, field, text).Err())
					}
					_, err := a.Repair(t.Context(), a.gate, 0, a.terms)
					require.NoError(t, err, "%q", text)
					require.NoError(t, f.rdb.HSet(t.Context(), state, field, text).Err())
					require.Zero(t, b.held(t), "%q", text)
					require.Equal(t, first, a.held(t), "%q", text)
					require.Equal(t, []bool{false}, a.beat(t, first).Lost, "%q", text)
					third, _ := a.join(t)
					require.Greater(t, third, second, "%q", text)
					require.LessOrEqual(t, int64(third), time.Now().Add(time.Hour).UnixMicro(), "%q", text) //nolint:gosec // below 2^53
					require.True(t, a.give(t, first))
					require.Equal(t, second, b.held(t), "%q", text)
					require.NoError(t, b.guards(t, "db", second), "%q", text)
				}
			})
		})
	}
}

// TestUnreadableSharedNumbersOfGates checks that unreadable values in the keys that
// all gates share count as absent.
func TestUnreadableSharedNumbersOfGates(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Start(t).Client(t), embedded} {
		base := newFixture(t, rdb)
		for i, text := range storetest.NoIntegers {
			f := base.other()
			f.gate = fmt.Sprint(base.gate, i)
			require.NoError(t, rdb.Set(t.Context(), f.keys(f.gate).Mark, text, 0).Err())
			score := []float64{math.Inf(1), math.Inf(-1), 1e300, -5, 1.5}[i%5]
			for _, member := range []string{"last", "grace", f.process} {
				require.NoError(t, rdb.ZAdd(t.Context(), f.keys(f.gate).Presence, redis.Z{Score: score, Member: member}).Err())
			}
			first, turn := f.join(t)
			require.True(t, turn, "%q", text)
			require.Equal(t, []bool{false}, f.beat(t, first).Lost, "%q", text)
			b := f.other()
			second, _ := b.join(t)
			require.True(t, f.give(t, first))
			require.Equal(t, second, b.held(t), "%q", text)
		}
	}
}

// TestUnreadableTokensOfGuard checks that an unreadable token of a resource, or of
// a removed gate, refuses no turn, and that a repair clears it.
func TestUnreadableTokensOfGuard(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, text := range storetest.NoIntegers {
			g := f.other()
			g.gate = fmt.Sprint(f.gate, i)
			held, _ := g.join(t)
			guard := g.keys(g.gate).guard(g.gate)
			require.NoError(t, f.rdb.HSet(t.Context(), guard, "db", text, "other", text, removedField, text).Err())
			require.NoError(t, g.guards(t, "db", held), "%q", text)
			require.True(t, g.give(t, held))
			require.NoError(t, g.guards(t, "third", held), "%q", text)
			repaired, err := g.Repair(t.Context(), g.gate, 0, g.terms)
			require.NoError(t, err, "%q", text)
			require.Equal(t, 2, repaired.Cleared, "%q", text)
			require.Positive(t, g.use(t), "%q", text)
		}
	})
}

// TestForeignEntriesOfGate checks that foreign entries of a gate's stream are
// ignored.
func TestForeignEntriesOfGate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, f *fixture) {
		for i, id := range []string{"5-3", "0-1", "17-1"} {
			g := f.other()
			g.gate = fmt.Sprint(f.gate, i)
			owner := g.process + "#1"
			add := &redis.XAddArgs{Stream: g.keys(g.gate).stream(g.gate), ID: id, Values: []string{"owner", owner}}
			require.NoError(t, f.rdb.XAdd(t.Context(), add).Err())
			ticket, turn := g.join(t)
			require.True(t, turn, id)
			require.Positive(t, ticket)
		}
	})
}
