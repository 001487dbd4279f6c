package firing

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
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

// loadEntries writes n entries that are due at an instant, and returns an engine.
func loadEntries(t testing.TB, rdb *redis.Client, n int, due time.Time) *Engine {
	t.Helper()
	const every = time.Hour
	ctx := context.Background()
	pipe := rdb.Pipeline()
	for i := range n {
		name := fmt.Sprintf("entry-%06d", i)
		e := recur.Entry{
			Definition: recur.Definition{Name: name, Task: fmt.Sprintf("topic-%d", i%10), Enabled: true},
			Meta:       recur.Meta{LastRunAt: due.Add(-every)},
		}
		require.NoError(t, e.SetEvery(every, false))
		raw := e.Raw()
		pipe.HSet(ctx, "redbeat:"+name, "definition", raw.Definition, "meta", raw.Meta)
		pipe.ZAdd(ctx, "redbeat::schedule", redis.Z{Score: float64(due.Unix()), Member: "redbeat:" + name})
		if i%5000 == 4999 || i == n-1 {
			_, err := pipe.Exec(ctx)
			require.NoError(t, err)
		}
	}
	store, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	return New(Config{
		Store: recurring.New(shards.New(store)), Log: slog.New(slog.DiscardHandler), MaxInterval: 300 * time.Second,
		Maker: Maker{Store: recurring.New(shards.New(store)), Limit: 1 << 20},
	})
}

// BenchmarkFire fires 100,000 loaded entries that are due at the same instant.
func BenchmarkFire(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		b.StopTimer()
		server := redistest.Start(b)
		due := time.Now().Add(20 * time.Second).Truncate(time.Second)
		e := loadEntries(b, server.Client(b), n, due)
		for !e.complete {
			_, err := e.Turn(b.Context())
			require.NoError(b, err)
		}
		require.Len(b, e.items, n)
		require.True(b, time.Now().Before(due), "loading took too long")
		<-time.After(time.Until(due) + 10*time.Millisecond)
		fired := 0
		e.cfg.OnFire = func(Fire) { fired++ }
		b.StartTimer()
		began := time.Now()
		for fired < n {
			_, err := e.Turn(b.Context())
			require.NoError(b, err)
		}
		b.ReportMetric(n/time.Since(began).Seconds(), "fires/s")
	}
}

// An engine without due entries causes less than two commands per second, including
// those in its scripts.
func TestIdleCostsLittle(t *testing.T) {
	t.Parallel()
	n := 20_000
	if testing.Short() {
		n = 5_000
	}
	rdb := redistest.Start(t).Client(t)
	e := loadEntries(t, rdb, n, time.Now().Add(24*time.Hour))
	for !e.complete {
		_, err := e.Turn(t.Context())
		require.NoError(t, err)
	}
	before := commands(t, rdb)
	turns := 5
	var waited time.Duration
	for range turns {
		wait, err := e.Turn(t.Context())
		require.NoError(t, err)
		waited += wait
		e.lookAt = time.Now() // as if the wait were over
	}
	sent := commands(t, rdb) - before - 1 // INFO
	require.Less(t, float64(sent)/(float64(turns)*e.cfg.LookEvery.Seconds()), 2.0)
	require.Greater(t, waited, time.Duration(turns-1)*e.cfg.LookEvery/2, "it returns a long wait")
}

func commands(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	info, err := rdb.InfoMap(t.Context(), "stats").Result()
	require.NoError(t, err)
	var n int
	_, err = fmt.Sscan(info["Stats"]["total_commands_processed"], &n)
	require.NoError(t, err)
	return n
}
