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
	"github.com/wakebell/wakebell/redisops/shards"
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
		w := &world{t: t, rdb: rdb, store: recurring.New(shards.New(store)), began: time.Now()}
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
