package firing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/recur"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/recurring"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// world is a Redis in virtual time and the engines on it.
type world struct {
	t     *testing.T
	rdb   *redis.Client
	store *recurring.Store
	began time.Time

	mu    sync.Mutex
	fires []string // "name@seconds since the beginning#run", late ones with "+lateness"
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := redistest.Embedded(t)
		store, err := timers.New(rdb, wakebelltype.Keys{})
		require.NoError(t, err)
		w := &world{t: t, rdb: rdb, store: recurring.New(store), began: time.Now()}
		test(t, w)
	})
}

// engine runs an engine as its actor does, until stop.
func (w *world) engine(change func(*Config)) (stop func()) {
	cfg := Config{
		Store: w.store, Log: slog.New(slog.DiscardHandler), MaxInterval: 300 * time.Second,
		Maker: Maker{Store: w.store, Limit: 1 << 20}, OnFire: w.fired,
	}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := New(cfg); ; {
			wait, err := e.Turn(ctx)
			if err != nil {
				wait = time.Second
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
	}()
	stop = func() { cancel(); <-done }
	w.t.Cleanup(stop)
	return stop
}

func (w *world) fired(f Fire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%s@%g#%d", f.Name, f.Due.Sub(w.began).Seconds(), f.Run)
	if late := f.Fired.Sub(f.Due); late > 10*time.Millisecond {
		text += "+" + late.Round(time.Millisecond).String()
	} else if late < 0 {
		text += " early"
	}
	w.fires = append(w.fires, text)
}

// advance lets virtual time pass.
func (w *world) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// recorded returns the runs since the last call.
func (w *world) recorded() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.fires)
	w.fires = nil
	return strings.Join(all, " ")
}

// put writes an entry as a System does; change may be nil.
func (w *world) put(name string, every time.Duration, change func(*recur.Entry)) {
	w.t.Helper()
	e := recur.Entry{
		Definition: recur.Definition{Name: name, Task: "topic", Enabled: true},
		Meta:       recur.Meta{LastRunAt: time.Now()}, Ours: recur.Ours{ID: "x"},
	}
	require.NoError(w.t, e.SetEvery(every, false))
	if change != nil {
		change(&e)
	}
	require.NoError(w.t, e.Resolve(nil))
	w.write(name, e.Raw(), recur.Score(e.Plan(time.Now()).Next))
}

func (w *world) write(name string, raw recur.Raw, score int64) {
	w.t.Helper()
	old, err := w.store.Load(w.t.Context(), name)
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.Put(w.t.Context(), name, old[0], raw, score))
}

// python saves an entry as RedBeat does: the meta only if there is none, the
// score from now.
func (w *world) python(name string, seconds int64) {
	w.t.Helper()
	ctx := w.t.Context()
	definition := fmt.Sprintf(`{"name": %q, "task": "topic", "args": [1], "kwargs": {"a": 2}, "options": {}, `+
		`"schedule": {"__type__": "interval", "every": %d.0, "relative": false}, "enabled": true}`, name, seconds)
	w.rdb.HSet(ctx, "redbeat:"+name, "definition", definition)
	w.rdb.HSetNX(ctx, "redbeat:"+name, "meta", recur.Meta{LastRunAt: time.Now()}.Bytes())
	w.rdb.ZAdd(ctx, "redbeat::schedule", redis.Z{Score: float64(time.Now().Unix() + seconds), Member: "redbeat:" + name})
}

func (w *world) ids(topic string) []string {
	return w.rdb.ZRange(w.t.Context(), "timers_timeline:"+topic, 0, -1).Val()
}

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
		require.NoError(t, w.rdb.Del(t.Context(), "redbeat:a").Err()) // as a Python process that dies before ZREM
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

// A foreign beat is respected while it renews its lock, and counts as dead
// 330 s after it has stopped to (weaknesses 1 and 2).
func TestForeignLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		renew := func() { w.rdb.Set(t.Context(), "redbeat::lock", "foreign", 1500*time.Second) }
		renew()
		w.put("a", 60*time.Second, nil)
		w.engine(nil)
		for range 4 {
			w.advance(250 * time.Second)
			require.Empty(t, w.recorded())
			renew()
		}
		w.advance(325 * time.Second)
		require.Empty(t, w.recorded())
		w.advance(15 * time.Second)
		require.Contains(t, w.recorded(), "#1+")
		w.advance(60 * time.Second)
		require.Contains(t, w.recorded(), "#2")
		renew() // it runs again
		w.advance(70 * time.Second)
		require.Empty(t, w.recorded())
		require.NoError(t, w.rdb.Del(t.Context(), "redbeat::lock").Err())
		w.advance(5 * time.Second)
		require.Contains(t, w.recorded(), "#3")
	})
}

// Engines with the same token hold the lock together, and all of them fire.
func TestOwnLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		own := func(c *Config) { c.Token = "fleet" }
		stop := w.engine(own)
		w.engine(own)
		w.put("a", 5*time.Second, nil)
		w.advance(time.Second)
		require.Equal(t, "fleet", w.rdb.Get(t.Context(), "redbeat::lock").Val())
		require.Positive(t, w.rdb.PTTL(t.Context(), "redbeat::lock").Val())
		stop()
		w.advance(9500 * time.Millisecond)
		require.Equal(t, "a@5#1 a@10#2", w.recorded())
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
