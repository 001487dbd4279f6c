package together_test

import (
	"context"
	"errors"
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

func TestPanicDoesNotHoldOthersUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls together.Calls[string, int, int]
		got := make(chan any, 2)
		panics := func(context.Context, []int) ([]int, error) {
			<-time.After(time.Second)
			panic("no")
		}
		for n := range 3 {
			go func() {
				defer func() { got <- recover() }()
				_, err := calls.Do(t.Context(), "k", n, panics)
				if err != nil {
					panic(err)
				}
			}()
		}
		for range 3 {
			require.NotNil(t, <-got)
		}
	})
}
