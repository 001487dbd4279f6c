package stacktest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/wakebelltype"
)

// ScheduleAll schedules timers with these ids in one call.
func ScheduleAll(t testing.TB, c *wakebell.Client, topic wakebell.Topic[string], ids []string, opts ...wakebell.ScheduleOption) {
	t.Helper()
	var drafts []wakebell.Draft
	for _, id := range ids {
		drafts = append(drafts, topic.Draft("body of "+id, append(slices.Clone(opts), wakebell.ID(id))...))
	}
	_, err := c.Schedule(t.Context(), drafts...)
	require.NoError(t, err)
}

// Numbered returns n ids.
func Numbered(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("t%03d", i))
	}
	return ids
}

// NewClient returns a client on the shared Redis and the name of a topic.
func NewClient(t *testing.T) (*wakebell.Client, *redis.Client, string) {
	t.Helper()
	rdb := redistest.Shared(t)
	c, err := wakebell.NewClient(conntest.New(t, rdb, connection.Config{}))
	require.NoError(t, err)
	return c, rdb, redistest.Name(t)
}

// Nothing is a handler that acks.
func Nothing(context.Context, wakebell.Timer[string]) error { return nil }

// Invoice is the body of timers.
type Invoice struct {
	Number string
	Cents  int
}

// Count returns the number of pending and running timers of a topic.
func Count(t testing.TB, c *wakebell.Client, topic string) int64 {
	t.Helper()
	stats, err := c.Stats(t.Context(), topic)
	require.NoError(t, err)
	return stats.Total
}

// DeadLetters returns all dead letters of a topic.
func DeadLetters(t testing.TB, c *wakebell.Client, topic string) (all []wakebell.DeadLetter) {
	t.Helper()
	for d, err := range c.DeadLetters(t.Context(), topic, wakebelltype.DeadFilter{}, wakebelltype.Page{}) {
		require.NoError(t, err)
		all = append(all, d)
	}
	return all
}
