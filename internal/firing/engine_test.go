package firing

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
)

func TestFiresAtTheDueInstant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		<-time.After(300 * time.Millisecond) // so that instants lie within their second
		w.began = time.Now()
		w.put("slow", 10*time.Second, nil)
		w.put("quick", 2500*time.Millisecond, nil)
		w.engine(nil)
		w.advance(10100 * time.Millisecond)
		require.Equal(t, "quick@2.5#1 quick@5#2 quick@7.5#3 quick@10#4 slow@10#1", sorted(w.recorded()))
		require.Len(t, w.ids("topic"), 5)
	})
}

func sorted(fires string) string {
	all := strings.Fields(fires)
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(before(a), before(b)) })
	return strings.Join(all, " ")
}

func before(fire string) string { name, _, _ := strings.Cut(fire, "@"); return name }

// Several engines fire each instant once, and continue when one ends.
func TestSeveralEngines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.engine(nil)
		w.engine(nil)
		w.engine(nil)
		w.put("a", 250*time.Millisecond, nil)
		w.advance(10 * time.Second)
		stop()
		w.advance(10 * time.Second)
		fires := strings.Fields(w.recorded())
		require.Len(t, w.ids("topic"), len(fires))
		require.GreaterOrEqual(t, len(fires), 65) // the first look may come after 4 s
		for i, fire := range fires[1:] {
			require.NotEqual(t, fires[i], fire)
			require.NotContains(t, fire, "early")
		}
		require.True(t, strings.HasPrefix(fires[len(fires)-1], "a@20#"), fires[len(fires)-1])
	})
}

// Saving an entry of 6 s every 2 s does not starve it (weakness 5).
func TestSavingOftenDoesNotStarve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine(nil)
		for range 15 {
			w.python("a", 6)
			<-time.After(2 * time.Second)
		}
		w.advance(time.Millisecond)
		require.Equal(t, "a@6#1 a@12#2 a@18#3 a@24#4 a@30#5", w.recorded())
	})
}

// A deleted entry is not fired, and no part of it is written again (weakness 7).
func TestDeletedEntriesStayDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine(nil)
		w.put("a", 5*time.Second, nil)
		w.advance(4900 * time.Millisecond)
		require.NoError(t, w.rdb.Del(t.Context(), "redbeat:a").Err()) // as a Python process that crashes before ZREM
		w.advance(10 * time.Second)
		require.Empty(t, w.recorded())
		require.Zero(t, w.rdb.Exists(t.Context(), "redbeat:a", "redbeat::schedule").Val())
	})
}

// Undecodable entries are ignored, and the others are fired (weakness 3).
func TestBrokenEntries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for name, raw := range map[string]recur.Raw{
			"json": {Definition: []byte("{"), Meta: []byte("{}")},
			"kind": {Definition: []byte(`{"name":"kind","task":"t","schedule":{"__type__":"solar"}}`)},
			"name": {Definition: []byte(`{"name":"other","task":"t","schedule":5}`)},
			"task": {Definition: []byte(`{"name":"task","schedule":5}`)},
		} {
			w.write(name, raw, 5)
		}
		require.NoError(t, w.rdb.Set(t.Context(), "redbeat:odd", "x", 0).Err())
		require.NoError(t, w.rdb.ZAdd(t.Context(), "redbeat::schedule", redis.Z{Score: 5, Member: "redbeat:odd"}).Err())
		w.put("good", 5*time.Second, nil)
		w.engine(nil)
		w.advance(11 * time.Second)
		require.Equal(t, "good@5#1 good@10#2", w.recorded())
		w.put("kind", 2*time.Second, nil)
		w.advance(11 * time.Second)
		require.Contains(t, w.recorded(), "kind@")
	})
}

// After downtime, each misfire policy applies.
func TestMisfires(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put("once", 10*time.Second, nil)
		w.put("skip", 60*time.Second, func(e *recur.Entry) { e.Ours.Misfire = recur.MisfireSkip })
		w.put("all", 30*time.Second, func(e *recur.Entry) { e.Ours.Misfire = recur.MisfireAll })
		w.advance(95 * time.Second)
		w.engine(nil)
		w.advance(time.Millisecond)
		require.Equal(t, "all@30#1+1m5s all@60#2+35s all@90#3+5s once@90#1+5s", sorted(w.recorded()))
		w.advance(26 * time.Second)
		require.Equal(t, "all@120#4 once@100#2 once@110#3 once@120#4 skip@120#1", sorted(w.recorded()))
	})
}

func TestOverlaps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put("skip", 10*time.Second, func(e *recur.Entry) { e.Ours.Overlap, e.Ours.Topic = recur.OverlapSkip, "s" })
		w.put("queue", 10*time.Second, func(e *recur.Entry) { e.Ours.Overlap, e.Ours.Topic = recur.OverlapQueue, "q" })
		w.engine(nil)
		w.advance(35 * time.Second)
		require.Equal(t, "queue@10#1 skip@10#1", sorted(w.recorded()))
		for _, topic := range []string{"s", "q"} { // both timers are handled
			require.NoError(t, w.rdb.Del(t.Context(), "timers_timeline:"+topic).Err())
		}
		w.advance(2 * time.Second)
		require.Contains(t, w.recorded(), "queue@30#2+", "one waited")
		w.advance(4 * time.Second)
		require.Equal(t, "skip@40#2", w.recorded())
	})
}

// If the topic is in another slot, runs pass through the outbox, exactly once, also
// when an engine ends in between.
func TestOutbox(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		apart := func(c *Config) { c.Maker.Shares = func(context.Context, string) bool { return false } }
		w.put("a", 10*time.Second, func(e *recur.Entry) {
			e.Ours.Run = 7
			e.Ours.Outbox = []recur.Put{{Topic: "topic", ID: "a@left", Run: 7, At: time.Now()}}
		})
		w.engine(apart)
		w.engine(apart)
		w.advance(25 * time.Second)
		require.Equal(t, "a@10#8 a@20#9", w.recorded())
		require.Len(t, w.ids("topic"), 3)
		raw, err := w.store.Load(t.Context(), "a")
		require.NoError(t, err)
		require.NotContains(t, string(raw[0].Ours), "outbox")
	})
}

// A run of an entry that Python has created has its args and kwargs, and the entry
// stays readable for RedBeat.
func TestEntriesOfPython(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.python("p", 5)
		w.engine(nil)
		w.advance(5 * time.Second)
		require.Equal(t, "p@5#1", w.recorded())
		payload := w.rdb.HGet(t.Context(), "timers_payloads:topic", w.ids("topic")[0]).Val()
		require.Contains(t, payload, `{"args":[1],"kwargs":{"a":2}}`)
		require.Contains(t, payload, HeaderSchedule)
		meta := w.rdb.HGet(t.Context(), "redbeat:p", "meta").Val()
		require.Contains(t, meta, `"total_run_count":1`)
		require.InDelta(t, float64(w.began.Add(10*time.Second).Unix()), w.rdb.ZScore(t.Context(), "redbeat::schedule", "redbeat:p").Val(), 0)
	})
}

// A failed send consumes no run (weakness 4), and delays only its own entry.
func TestFailedSends(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put("bad", 5*time.Second, func(e *recur.Entry) { e.Ours.Topic = "broken" })
		w.put("good", 5*time.Second, nil)
		require.NoError(t, w.rdb.Set(t.Context(), "timers_payloads:broken", "x", 0).Err())
		w.engine(nil)
		w.advance(6 * time.Second)
		require.Equal(t, "good@5#1", w.recorded())
		require.NoError(t, w.rdb.Del(t.Context(), "timers_payloads:broken").Err())
		w.advance(3 * time.Second)
		require.Contains(t, w.recorded(), "bad@5#1")
	})
}
