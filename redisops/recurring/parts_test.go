package recurring

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/internal/layout"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func storeOn(t *testing.T, rdb redis.UniversalClient, keys wakebelltype.Keys) *Store {
	t.Helper()
	s, err := timers.New(rdb, keys)
	require.NoError(t, err)
	return New(shards.New(s))
}

// The part of a schedule must stay the same for all versions: it would be lost otherwise.
func TestSchedulesAreSpreadOverSlots(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{})
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	b := storeOn(t, rdb, wakebelltype.Keys{})
	require.Equal(t, 16, Parts)
	require.Equal(t, "{redbeat:2}:nightly", b.of("nightly").entry("nightly"))
	require.Equal(t, "{redbeat:11}:billing-nightly", b.of("billing-nightly").entry("billing-nightly"))
	for _, n := range []int{3, 100, 1000} {
		slots := map[int]bool{}
		for i := range n {
			name := fmt.Sprintf("nightly-%d", i)
			part := b.of(name)
			slots[layout.SlotOf(part.entry(name))] = true
			for _, key := range []string{part.schedule(), part.lock(), part.done(timers.NewCallKey())} {
				require.Equal(t, layout.SlotOf(part.entry(name)), layout.SlotOf(key), key)
			}
		}
		require.GreaterOrEqual(t, float64(len(slots)), 0.9*float64(min(n, Parts)), n)
	}
	require.Equal(t, "{redbeat:3}:", partPrefix("redbeat:", 3))
	require.Equal(t, "{beat:3}", partPrefix("beat", 3))
	require.Len(t, storeOn(t, rdb, wakebelltype.Keys{Beat: "{beat}:"}).Parts(), 1, "a hash tag keeps the schedules together")
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	for name, reserved := range map[string]bool{
		"{redbeat:3}:nightly": true, "{redbeat:15}": true, "{redbeat}:x": true, "{redbeat:x}:nightly": false, "{redbeats:3}:x": false, "redbeat": false,
	} {
		require.Equal(t, reserved, Reserves("redbeat:", name), name)
	}
	require.False(t, Reserves("{beat}:", "{beat:3}:x"))
}

// Each call finds a schedule in its part, and a beat finds all schedules by the parts.
func TestSchedulesOnCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t)
	rdb := cluster.Client(t)
	b := storeOn(t, rdb, wakebelltype.Keys{HashTag: true})
	require.NoError(t, b.Check(t.Context()))
	require.False(t, b.Shares(t.Context(), "topic"))
	var names []string
	for i := range 50 {
		name := fmt.Sprintf("nightly-%02d", i)
		names = append(names, name)
		require.NoError(t, b.Put(t.Context(), name, recur.Raw{}, raw("1"), 5))
		require.ErrorIs(t, b.Put(t.Context(), name, recur.Raw{}, raw("1"), 5), ErrChanged)
	}
	for _, master := range cluster {
		require.NotEmpty(t, master.Client(t).Keys(t.Context(), "{redbeat:*}:nightly-*").Val())
	}
	raws, err := b.Load(t.Context(), names[0], "absent", names[1])
	require.NoError(t, err)
	require.Equal(t, []recur.Raw{raw("1"), {}, raw("1")}, raws)
	found, err := b.Delete(t.Context(), names[0], raw("1").Ours)
	require.NoError(t, err)
	require.True(t, found)
	reply, err := b.Fire(t.Context(), "", Lock{}, []Firing{{Name: names[1], Raw: raw("1"), Meta: []byte("m"), Ours: []byte("o"), Score: 6}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Fired}, reply.Outcomes)

	var looked []string
	for _, part := range b.Parts() {
		seen, err := part.Look(t.Context(), "token", time.Hour, 0, 0, 1000)
		require.NoError(t, err)
		require.Equal(t, "token", seen.Lock.Holder)
		for _, m := range seen.Page {
			looked = append(looked, m.Name)
		}
	}
	slices.Sort(looked)
	require.Equal(t, names[1:], looked)

	require.NoError(t, b.AddStatics(t.Context(), "", "service", names...))
	require.NoError(t, b.DropStatics(t.Context(), "", "service", names[1:]...))
	statics, err := b.Statics(t.Context(), "", "service")
	require.NoError(t, err)
	require.Equal(t, names[:1], statics)

	// A Python process has stored schedules that no beat of Wakebell would see.
	require.NoError(t, rdb.ZAdd(t.Context(), "redbeat::schedule", redis.Z{Score: 1, Member: "redbeat:a"}).Err())
	err = b.Check(t.Context())
	require.ErrorIs(t, err, wakebelltype.ErrUnsupported)
	require.ErrorContains(t, err, "{redbeat}:")
}
