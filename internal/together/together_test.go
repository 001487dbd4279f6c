package together_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/together"
)

// doubled answers each input with its double, after a second, and notes the inputs.
func doubled(all *[][]int) func(context.Context, []int) ([]int, error) {
	return func(_ context.Context, in []int) (outs []int, err error) {
		*all = append(*all, in)
		<-time.After(time.Second)
		for _, n := range in {
			outs = append(outs, 2*n)
		}
		return outs, nil
	}
}

func TestInputsThatComeMeanwhileShareCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		var all [][]int
		ask := func(n int) {
			go func() {
				out, err := calls.Do(t.Context(), "k", n, doubled(&all))
				assert.NoError(t, err)
				assert.Equal(t, 2*n, out)
			}()
			synctest.Wait()
		}
		ask(1)
		ask(2)
		ask(3)
		<-time.After(1500 * time.Millisecond) // the call of the last two is on its way
		ask(4)
		ask(5)
		<-time.After(time.Minute)
		ask(6)
		<-time.After(time.Minute)
		require.Equal(t, [][]int{{1}, {2, 3}, {4, 5}, {6}}, all)
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		began := time.Now()
		var one, other [][]int
		go func() { _, _ = calls.Do(t.Context(), "a", 1, doubled(&one)) }()
		_, err := calls.Do(t.Context(), "b", 2, doubled(&other))
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
	})
}

func TestErrorIsThatOfAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		broken := errors.New("broken")
		fails := func(context.Context, []int) ([]int, error) {
			<-time.After(time.Second)
			return nil, broken
		}
		got := make(chan error, 3)
		for n := range 3 {
			go func() {
				_, err := calls.Do(t.Context(), "k", n, fails)
				got <- err
			}()
		}
		for range 3 {
			require.ErrorIs(t, <-got, broken)
		}
		var all [][]int
		_, err := calls.Do(t.Context(), "k", 1, doubled(&all))
		require.NoError(t, err, "the next call is made")
	})
}

// A caller that gives up fails alone. What all have left ends.
func TestCallersGiveUpAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		ended := 0
		slow := func(ctx context.Context, in []int) ([]int, error) {
			select {
			case <-ctx.Done():
				ended++
				return nil, fmt.Errorf("%w: no answer", ctx.Err())
			case <-time.After(time.Minute):
				return make([]int, len(in)), nil
			}
		}
		ask := func(patience time.Duration) chan error {
			got := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, err := calls.Do(ctx, "k", 1, slow)
				got <- err
			}()
			synctest.Wait()
			return got
		}
		first, second, third := ask(time.Hour), ask(time.Second), ask(time.Hour)
		require.ErrorIs(t, <-second, context.DeadlineExceeded)
		require.NoError(t, <-first)
		require.NoError(t, <-third)
		require.Zero(t, ended)
		alone := ask(time.Second)
		err := <-alone
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "no answer", "the last one knows why")
		synctest.Wait()
		require.Equal(t, 1, ended)
		require.NoError(t, <-ask(time.Hour), "the next call is made")
	})
}

// A call has the last of its callers' deadlines, and none if one of them has none.
func TestCallHasLastDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		var left []time.Duration // until the deadlines of the calls; 0: none
		began := time.Now()
		run := func(ctx context.Context, in []int) ([]int, error) {
			until := time.Duration(0)
			if end, bounded := ctx.Deadline(); bounded {
				until = end.Sub(began)
			}
			left = append(left, until)
			<-time.After(time.Second)
			return in, nil
		}
		ask := func(patience time.Duration) {
			ctx := t.Context()
			if patience > 0 {
				bounded, cancel := context.WithTimeout(ctx, patience)
				t.Cleanup(cancel)
				ctx = bounded
			}
			go func() { _, _ = calls.Do(ctx, "k", 1, run) }()
			synctest.Wait()
		}
		ask(time.Hour) // on its way while the next two come
		ask(time.Minute)
		ask(2 * time.Hour)
		<-time.After(1500 * time.Millisecond) // the call of both is on its way
		ask(time.Minute)
		ask(0)
		<-time.After(time.Minute)
		require.Equal(t, []time.Duration{time.Hour, 2 * time.Hour, 0}, left)
	})
}

func TestPanicDoesNotHoldOthersUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		got := make(chan error, 3)
		panics := func(context.Context, []int) ([]int, error) {
			<-time.After(time.Second)
			panic("no")
		}
		for n := range 3 {
			go func() {
				_, err := calls.Do(t.Context(), "k", n, panics)
				got <- err
			}()
		}
		for range 3 {
			require.ErrorContains(t, <-got, "panicked: no")
		}
	})
}
