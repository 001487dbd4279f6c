package schedule_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

// BenchmarkScheduleBatch schedules timers of 100 bytes, 500 per call, from the body
// to the answer.
func BenchmarkScheduleBatch(b *testing.B) {
	const batch = 500
	topic := wakebell.NewTopic[[]byte](redistest.Name(b))
	c := stacktest.Client(b, redistest.Shared(b), connection.Config{})
	body := bytes.Repeat([]byte("x"), 100)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		drafts := make([]wakebell.Draft, batch)
		for i := range drafts {
			n++
			drafts[i] = topic.Draft(body, wakebell.ID(fmt.Sprintf("%036d", n)), wakebell.In(time.Hour))
		}
		_, err := c.Schedule(b.Context(), drafts...)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "µs/timer")
}
