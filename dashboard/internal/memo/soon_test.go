package memo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/dashboard/internal/memo"
)

func TestSoonReturnsValueBeforeWhileNewOneIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, n, took := memo.New[int](t.Context(), time.Second, time.Hour), 0, 10*time.Second
		read := func(context.Context) (int, error) {
			n++
			<-time.After(took)
			return n, nil
		}
		soon := func() (int, error) { return c.Soon(t.Context(), 100*time.Millisecond, "k", read) }
		_, err := soon()
		require.ErrorIs(t, err, context.DeadlineExceeded, "there is none")
		<-time.After(took)
		first, err := soon()
		require.NoError(t, err)
		require.Equal(t, 1, first)
		<-time.After(51 * took)
		ctx, age := memo.Track(t.Context())
		first, err = c.Soon(ctx, 100*time.Millisecond, "k", read)
		require.NoError(t, err)
		require.Equal(t, 1, first)
		require.Less(t, age.At(time.Now()), time.Now().Add(-51*took), "the page says how old it is")
		<-time.After(took)
		second, err := soon()
		require.NoError(t, err)
		require.Equal(t, 2, second)
		c.Forget()
		_, err = soon()
		require.ErrorIs(t, err, context.DeadlineExceeded, "after a change, no old value is shown")
		<-time.After(took)
	})
}

func TestHaveReturnsLastValueWithoutReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, n := memo.New[int](t.Context(), time.Second, time.Hour), 0
		_, ok := c.Have(t.Context(), "k")
		require.False(t, ok)
		read := func(context.Context) (int, error) {
			<-time.After(time.Second)
			if n++; n == 2 {
				return 0, errors.New("refused")
			}
			return n, nil
		}
		first, err := c.Get(t.Context(), "k", read)
		require.NoError(t, err)
		for range 2 { // while the next one is read, and after it has failed
			<-time.After(time.Hour)
			_, _ = c.Soon(t.Context(), time.Millisecond, "k", read)
			have, ok := c.Have(t.Context(), "k")
			require.True(t, ok)
			require.Equal(t, first, have)
		}
		<-time.After(time.Second)
	})
}

func TestReadEndsWithLifeOfCache(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(t.Context())
	c := memo.New[int](life, time.Second, time.Hour)
	reading := make(chan struct{})
	time.AfterFunc(0, func() { <-reading; end() })
	_, err := c.Get(t.Context(), "k", func(ctx context.Context) (int, error) {
		close(reading)
		<-ctx.Done()
		return 0, ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
}
