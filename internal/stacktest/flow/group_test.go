package flow_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/stacktest"
	"github.com/wakebell/wakebell/wakebelltest"
)

// TestTopicsShareHandlersByWeight has two topics with a backlog each: the heavier one
// has most of the starts, and the lighter one never starves. When the first is done, the
// other has all handlers.
func TestTopicsShareHandlersByWeight(t *testing.T) {
	t.Parallel()
	urgent, bulk := wakebell.NewTopic[string]("urgent"), wakebell.NewTopic[string]("bulk")
	var mu sync.Mutex
	var order []string
	running, most := 0, 0
	handle := func(_ context.Context, timer wakebell.Timer[string]) error {
		mu.Lock()
		order = append(order, timer.Topic)
		running++
		most = max(most, running)
		mu.Unlock()
		<-time.After(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		running--
		return nil
	}
	wakebelltest.RunWith(t, connection.Config{Logger: stacktest.Quiet}, wakebell.Config{Handlers: []wakebell.Handler{
		wakebell.Handle(urgent, handle, wakebell.MaxConcurrent(10), wakebell.Weight("mail", 9)),
		wakebell.Handle(bulk, handle, wakebell.MaxConcurrent(10), wakebell.Weight("mail", 1)),
	}}, func(t *testing.T, w *wakebelltest.World) {
		stacktest.ScheduleAll(t, w.Client(), bulk, stacktest.Numbered(200))
		w.Advance(time.Second)
		require.GreaterOrEqual(t, len(order), 90, "a topic alone has all handlers")
		stacktest.ScheduleAll(t, w.Client(), urgent, stacktest.Numbered(400))
		w.Advance(200 * time.Millisecond)
		order = nil
		w.Advance(3 * time.Second)
		count := map[string]int{}
		for _, topic := range order {
			count[topic]++
		}
		require.GreaterOrEqual(t, len(order), 280, "no handler is idle")
		require.InDelta(t, 9*count["bulk"], count["urgent"], 60, "%v", count)
		require.NotZero(t, count["bulk"])
		w.Advance(time.Minute)
		require.Len(t, w.Delivered("urgent"), 400)
		require.Len(t, w.Delivered("bulk"), 200)
		require.Equal(t, 10, most)
	})
}
