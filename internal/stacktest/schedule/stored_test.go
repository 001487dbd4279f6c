package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/stacktest"
)

func TestTopicGetDecodesBody(t *testing.T) {
	t.Parallel()
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{Prefix: redistest.Name(t) + ":"})
	topic := wakebell.NewTopic[stacktest.Invoice]("invoices")
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	_, err := topic.Schedule(t.Context(), c, stacktest.Invoice{Number: "7", Cents: 100}, wakebell.ID("a"), wakebell.At(at), wakebell.Header("x-a", "1"))
	require.NoError(t, err)

	stored, err := topic.Get(t.Context(), c, "a")
	require.NoError(t, err)
	require.Equal(t, stacktest.Invoice{Number: "7", Cents: 100}, stored.Body)
	require.Equal(t, "a", stored.ID)
	require.Equal(t, c.Prefix()+"invoices", stored.Topic)
	require.Equal(t, wakebell.StatePending, stored.State)
	require.WithinDuration(t, at, stored.Due, 0)
	require.JSONEq(t, `{"Number":"7","Cents":100}`, string(stored.Content.Body))
	require.Equal(t, map[string]string{"x-a": "1"}, stored.Content.Headers.Map())

	_, err = topic.Get(t.Context(), c, "b")
	require.ErrorIs(t, err, wakebell.ErrNotFound)
}

func TestTopicGetReturnsTimerWithUnreadableBody(t *testing.T) {
	t.Parallel()
	c := stacktest.Client(t, redistest.Shared(t), connection.Config{})
	name := redistest.Name(t)
	_, err := wakebell.NewTopic[string](name).Schedule(t.Context(), c, "no invoice", wakebell.ID("a"), wakebell.In(time.Hour))
	require.NoError(t, err)

	stored, err := wakebell.NewTopic[stacktest.Invoice](name).Get(t.Context(), c, "a")
	require.ErrorIs(t, err, wakebell.ErrUnreadable)
	require.ErrorContains(t, err, `get "a" on "`+name)
	require.Zero(t, stored.Body)
	require.Equal(t, wakebell.StatePending, stored.State)
	require.Equal(t, "no invoice", string(stored.Content.Body))
}
