package gates

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestHoldsAreAddedUp(t *testing.T) {
	t.Parallel()
	embedded, _ := redistest.Embedded(t)
	for _, rdb := range []*redis.Client{redistest.Shared(t), embedded} {
		s, err := New(rdb, wakebelltype.GateKeys{}, nil)
		require.NoError(t, err)
		name, ctx := redistest.Name(t), t.Context()
		many := map[string]gate.Holds{name: {1, 0, 2}}
		for i := range 150 {
			many[fmt.Sprint(name, i)] = gate.Holds{1}
		}
		require.NoError(t, s.AddHolds(ctx, many))
		require.NoError(t, s.AddHolds(ctx, map[string]gate.Holds{name: {0, 0, 1, 0, 0, 0, 0, 5}}))
		info, err := s.Show(ctx, name)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 0, 3, 0, 0, 0, 0, 5}, turnsOf(info))
		require.Equal(t, 10*time.Millisecond, info.Holds[0].UpTo)
		require.Zero(t, info.Holds[7].UpTo)
		other, err := s.Show(ctx, name+"149")
		require.NoError(t, err)
		require.EqualValues(t, 1, turnsOf(other)[0])
		// What another program has written is ignored.
		require.NoError(t, rdb.HSet(ctx, "{gates}:holds:"+name, "x", "1", "1:x", "2", "99999999:77", "3", "99999999:0", "-4").Err())
		info, err = s.Show(ctx, name)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 0, 3, 0, 0, 0, 0, 5}, turnsOf(info))
		require.NoError(t, rdb.Set(ctx, "{gates}:holds:"+name+"-odd", "x", 0).Err())
		require.NoError(t, s.AddHolds(ctx, map[string]gate.Holds{name + "-odd": {1}}), "it is no part of the gate's state")
	}
}

func turnsOf(info wakebelltype.GateInfo) (turns []int64) {
	for _, h := range info.Holds {
		turns = append(turns, h.Turns)
	}
	return turns
}

// A Cluster of those that named all keys before there were durations starts as before.
func TestKeyOfHoldsFollowsThatOfState(t *testing.T) {
	t.Parallel()
	k, err := NewKeyspace(wakebelltype.GateKeys{State: "{shop}:state"})
	require.NoError(t, err)
	require.Equal(t, "{shop}:state-holds:deploy", k.holds("deploy"))
}

func TestHoldsAreKeptForDays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		s, err := New(rdb, wakebelltype.GateKeys{}, nil)
		require.NoError(t, err)
		for range 20 {
			require.NoError(t, s.AddHolds(t.Context(), map[string]gate.Holds{"g": {1, 1}}))
			<-time.After(24 * time.Hour)
		}
		info, err := s.Show(t.Context(), "g")
		require.NoError(t, err)
		require.Equal(t, []int64{6, 6, 0, 0, 0, 0, 0, 0}, turnsOf(info), "today has none yet")
		require.EqualValues(t, 2*holdDays, rdb.HLen(t.Context(), "{gates}:holds:g").Val())
		<-time.After(8 * 24 * time.Hour)
		require.Zero(t, rdb.Exists(t.Context(), "{gates}:holds:g").Val())
	})
}
