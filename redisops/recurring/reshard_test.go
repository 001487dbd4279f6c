package recurring

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// TestRunIsSentOnceWhenItsTopicGetsShards sends a run again that a beat sent, but did not
// note, before its topic was divided.
func TestRunIsSentOnceWhenItsTopicGetsShards(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	s, err := timers.New(redistest.Cluster(t).Client(t), wakebelltype.Keys{Beat: "{" + name + "}:", HashTag: true}, timers.Names{Shards: name + ":shards"})
	require.NoError(t, err)
	divided := shards.New(s)
	b := New(divided)
	send := func(run int64) {
		p := recur.Put{Topic: name, ID: fmt.Sprintf("a@%d", run), Run: run, At: time.Unix(1, 0), Payload: []byte("p")}
		require.NoError(t, b.Send(t.Context(), "a", "x", p))
	}
	send(1)
	_, err = s.Cancel(t.Context(), name, "a@1") // it was handled
	require.NoError(t, err)
	_, err = divided.Divide(t.Context(), name, 4)
	require.NoError(t, err)
	stored := func() (n int64) {
		for _, shard := range append(sharding.Names(name, 4), name) {
			found, err := s.RDB.ZCard(t.Context(), s.Keys().Of(shard).Timeline).Result()
			require.NoError(t, err)
			n += found
		}
		return n
	}
	send(1)
	require.Zero(t, stored())
	send(2)
	send(2)
	require.EqualValues(t, 1, stored())
}

// TestOverlapOnCluster fires a schedule whose topic was in its slot when it was stored, and has
// shards in other slots now.
func TestOverlapOnCluster(t *testing.T) {
	t.Parallel()
	name := redistest.Name(t)
	s, err := timers.New(redistest.Cluster(t).Client(t), wakebelltype.Keys{Beat: "{" + name + "}:", HashTag: true}, timers.Names{Shards: name + ":shards"})
	require.NoError(t, err)
	divided := shards.New(s)
	b := New(divided)
	require.True(t, b.Shares(t.Context(), name))
	require.NoError(t, b.Put(t.Context(), "a", recur.Raw{}, raw("1"), 5))
	_, err = divided.Divide(t.Context(), name, 4)
	require.NoError(t, err)
	require.False(t, b.Shares(t.Context(), name))
	last := recur.Put{Topic: name, ID: "a@1", Run: 1, At: time.Now().Add(time.Hour), Payload: []byte("p")}
	require.NoError(t, b.Send(t.Context(), "a", "x", last))
	fire := func(found recur.Raw) Outcome {
		f := Firing{Name: "a", Raw: found, Meta: []byte("m2"), Ours: []byte("o2"), Score: 6, Topic: name, Last: last.ID}
		reply, err := b.Fire(t.Context(), "", Lock{}, []Firing{f})
		require.NoError(t, err)
		return reply.Outcomes[0]
	}
	require.Equal(t, Overlapping, fire(raw("1")))
	require.Equal(t, Changed, fire(raw("0")))
	_, err = divided.Cancel(t.Context(), name, last.ID)
	require.NoError(t, err)
	require.Equal(t, Fired, fire(raw("1")))
}
