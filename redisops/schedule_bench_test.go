package redisops

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// BenchmarkSchedule schedules timers of 100 bytes one by one, from so many
// goroutines at a time.
func BenchmarkSchedule(b *testing.B) {
	for _, callers := range []int{1, 4, 50} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchmarkSchedule(b, callers) })
	}
}

func benchmarkSchedule(b *testing.B, callers int) {
	store, err := NewTimers(redistest.Shared(b), Keys{})
	require.NoError(b, err)
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
