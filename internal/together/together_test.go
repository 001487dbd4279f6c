package together_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wakebell/wakebell/internal/together"
)

// calls records the arguments of calls, and returns an error for each.
type calls struct{ all [][]int }

func (c *calls) call(args []int) []error {
	c.all = append(c.all, args)
	errs := make([]error, len(args))
	for i, arg := range args {
		errs[i] = fmt.Errorf("verdict of %d", arg)
	}
	return errs
}

func TestAllFunctionsShareOneCall(t *testing.T) {
	t.Parallel()
	var c calls
	errs := together.Run(3, func(i int, next func(int) error) error {
		return fmt.Errorf("%d: %w", i, next(i*10))
	}, c.call)
	require.Len(t, c.all, 1)
	require.Equal(t, []int{0, 10, 20}, c.all[0])
	for i, err := range errs {
		require.EqualError(t, err, fmt.Sprintf("%d: verdict of %d", i, i*10))
	}
	require.Empty(t, together.Run(0, nil, c.call))
}

func TestAFunctionMayLeaveTheCallOutOrRepeatIt(t *testing.T) {
	t.Parallel()
	var c calls
	refused := errors.New("refused")
	errs := together.Run(3, func(i int, next func(int) error) error {
		switch i {
		case 0:
			return refused
		case 1:
			require.EqualError(t, next(1), "verdict of 1")
			return next(100)
		default:
			return next(2)
		}
	}, c.call)
	require.Equal(t, refused, errs[0])
	require.EqualError(t, errs[1], "verdict of 100")
	require.EqualError(t, errs[2], "verdict of 2")
	require.Len(t, c.all, 2)
	require.Equal(t, []int{1, 2}, c.all[0])
	require.Equal(t, []int{100}, c.all[1])
}

func TestFunctionsThatWaitForEachOtherDoNotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c calls
		one := make(chan struct{}, 1) // a mutex would not let virtual time pass
		began := time.Now()
		together.Run(5, func(i int, next func(int) error) error {
			one <- struct{}{}
			defer func() { <-one }()
			return next(i)
		}, c.call)
		require.Len(t, c.all, 5)
		require.Equal(t, 4*together.GatherTime, time.Since(began), "the last one waits for nothing")
	})
}

func TestAPanicOfTheCallReachesEveryFunction(t *testing.T) {
	t.Parallel()
	var recovered sync.Map
	panics := func([]int) []error { panic("broken") }
	errs := together.Run(2, func(i int, next func(int) error) (err error) {
		defer func() {
			recovered.Store(i, recover())
			err = errors.New("recovered")
		}()
		return next(i)
	}, panics)
	for i := range 2 {
		value, _ := recovered.Load(i)
		require.Equal(t, "broken", value)
		require.EqualError(t, errs[i], "recovered")
	}

	defer func() {
		crash, ok := recover().(*together.Panic)
		require.True(t, ok)
		require.Equal(t, "broken", crash.Value)
		require.Contains(t, string(crash.Stack), "TestAPanicOfTheCallReachesEveryFunction", "the stack is that of the call")
	}()
	together.Run(2, func(i int, next func(int) error) error { return next(i) }, panics)
}

func TestAPanicOfAFunctionIsItsOwnError(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		var c calls
		errs := together.Run(3, func(i int, next func(int) error) error {
			if i == 0 && !after {
				panic("broken")
			}
			if err := next(i); i > 0 {
				return err
			}
			panic("broken")
		}, c.call)
		var crash *together.Panic
		require.ErrorAs(t, errs[0], &crash)
		require.Equal(t, "broken", crash.Value)
		require.EqualError(t, crash, "panic: broken")
		require.Contains(t, string(crash.Stack), "TestAPanicOfAFunctionIsItsOwnError")
		require.EqualError(t, errs[1], "verdict of 1")
		require.EqualError(t, errs[2], "verdict of 2")
	}
}

func TestGoroutinesThatEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan bool, 3)
	go func() { // of the call: it ends the functions, and the caller
		defer func() { ended <- true }()
		together.Run(2, func(i int, next func(int) error) error {
			defer func() { ended <- true }()
			return next(i)
		}, func([]int) []error { runtime.Goexit(); return nil })
	}()
	for range 3 {
		<-ended
	}
	errs := together.Run(1, func(int, func(int) error) error { runtime.Goexit(); return nil }, nil)
	require.EqualError(t, errs[0], "panic: handler ended its goroutine")
}

func TestANextAfterTheEnd(t *testing.T) {
	t.Parallel()
	var c calls
	late := make(chan func(int) error, 1)
	together.Run(1, func(_ int, next func(int) error) error {
		late <- next
		return nil
	}, c.call)
	require.ErrorIs(t, (<-late)(1), together.ErrEnded)
	require.Empty(t, c.all)
}

// TestEveryNextHasItsOwnError mixes functions that call next 0 – 3 times.
func TestEveryNextHasItsOwnError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 20).Draw(t, "times")
		var c calls
		errs := together.Run(len(times), func(i int, next func(int) error) error {
			for n := range times[i] {
				arg := i*10 + n
				if err := next(arg); err.Error() != fmt.Sprintf("verdict of %d", arg) {
					return err
				}
			}
			return nil
		}, c.call)
		seen := map[int]int{}
		for _, args := range c.all {
			for _, arg := range args {
				seen[arg]++
			}
		}
		for i, n := range times {
			if errs[i] != nil {
				t.Fatalf("function %d received another's error: %v", i, errs[i])
			}
			for k := range n {
				if seen[i*10+k] != 1 {
					t.Fatalf("argument %d was passed %d times", i*10+k, seen[i*10+k])
				}
			}
		}
	})
}

// BenchmarkRun is the cost of middleware around a batch of 100 timers.
func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		together.Run(100, func(i int, next func(int) error) error { return next(i) }, func(args []int) []error { return make([]error, len(args)) })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/timer")
}
