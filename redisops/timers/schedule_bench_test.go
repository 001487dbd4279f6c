package timers

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// BenchmarkSchedule schedules timers of 100 bytes one by one, from several
// goroutines.
func BenchmarkSchedule(b *testing.B) {
	for _, callers := range []int{1, 4, 50} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmarkSchedule(b, callers, false) })
	}
	b.Run("callers=50,no-coalescing", func(b *testing.B) { benchmarkSchedule(b, 50, true) })
}

func benchmarkSchedule(b *testing.B, callers int, alone bool) {
	store, err := New(redistest.Shared(b), wakebelltype.Keys{})
	require.NoError(b, err)
	store.NoCoalescing = alone
	topic, body := redistest.Name(b), bytes.Repeat([]byte("x"), 100)
	var next atomic.Int64
	done := make(chan error, callers)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		go func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					done <- nil
					return
				}
				entry := Entry{ID: fmt.Sprintf("%036d", i), Payload: body, In: time.Hour}
				if _, err := store.Schedule(b.Context(), topic, entry); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range callers {
		require.NoError(b, <-done)
	}
}

// BenchmarkScheduleBatch schedules batches of timers and reports the
// cost of a timer in CPU time of Redis's process.
func BenchmarkScheduleBatch(b *testing.B) {
	for _, size := range []int{16, 50, 100, 200, 500} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) { benchmarkScheduleBatch(b, size, 100) })
	}
	b.Run("size=500,bytes=2000", func(b *testing.B) { benchmarkScheduleBatch(b, 500, 2000) })
}

func benchmarkScheduleBatch(b *testing.B, size, payload int) {
	rdb := redistest.Start(b).Client(b)
	store, err := New(rdb, wakebelltype.Keys{})
	require.NoError(b, err)
	body := bytes.Repeat([]byte("x"), payload)
	entries, next := make([]Entry, size), 0
	batch := func() {
		for i := range entries {
			next++
			entries[i] = Entry{ID: fmt.Sprintf("%036d", next), Payload: body, In: time.Hour}
		}
		_, err := store.Schedule(b.Context(), "bench", entries...)
		require.NoError(b, err)
	}
	batch()
	before := next
	spent := cpuSeconds(b, rdb.Info(b.Context(), "cpu").Val())
	for b.Loop() {
		batch()
	}
	spent = cpuSeconds(b, rdb.Info(b.Context(), "cpu").Val()) - spent
	b.ReportMetric(spent*1e6/float64(next-before), "redis-µs/timer")
}

var cpuUsed = regexp.MustCompile(`used_cpu_(?:sys|user)_main_thread:([\d.]+)`)

// cpuSeconds returns the CPU time of the Redis thread that runs commands, from
// INFO.
func cpuSeconds(b testing.TB, info string) (seconds float64) {
	b.Helper()
	found := cpuUsed.FindAllStringSubmatch(info, -1)
	require.Len(b, found, 2)
	for _, m := range found {
		x, err := strconv.ParseFloat(m[1], 64)
		require.NoError(b, err)
		seconds += x
	}
	return seconds
}
