package pulse_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/pulse"
)

func TestCheckThatPanicsHasNoAnswer(t *testing.T) {
	t.Parallel()
	p := pulse.New(func(context.Context) bool { panic("broken") })
	require.True(t, p.State(t.Context(), 0).Down)
}
