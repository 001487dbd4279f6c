package scheduler

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestHintsReachSchedulerOfTheirPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hint func(part int)
		h := NewHints(func(ctx context.Context, deliver func(int)) error {
			hint = deliver
			<-ctx.Done()
			return ctx.Err()
		})
		got := map[string]int{}
		listen := func(part int, name string) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- h.Of(part)(ctx, func() { got[name]++ }) }()
			synctest.Wait()
			return func() {
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
			}
		}
		stopFirst, stopSecond := listen(0, "first"), listen(1, "second")
		hint(0)
		hint(1)
		hint(2)
		require.Equal(t, map[string]int{"first": 1, "second": 1}, got)

		stopAgain := listen(1, "again") // a new incarnation, before the old one has ended
		stopSecond()
		hint(1)
		require.Equal(t, map[string]int{"first": 1, "second": 1, "again": 1}, got)
		stopAgain()
		hint(1)
		require.Equal(t, 1, got["again"])
		stopFirst()
	})
}

func TestRefusedSubscriptionIsReportedOnce(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	h := NewHints(func(context.Context, func(int)) error { return refused })
	require.ErrorIs(t, h.Of(0)(t.Context(), func() {}), refused)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, h.Of(1)(ctx, func() {}), context.Canceled)
}

func TestEachPartHasName(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"beat", "beat-1", "beat-15"}, []string{NameOf(0), NameOf(1), NameOf(15)})
}
