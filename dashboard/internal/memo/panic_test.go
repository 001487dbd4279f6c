package memo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/memo"
)

func TestReadThatPanicsIsError(t *testing.T) {
	t.Parallel()
	c := memo.New[string](t.Context(), time.Minute, time.Minute)
	_, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { panic("broken") })
	require.EqualError(t, err, "panic in reading for the dashboard: broken")
}
