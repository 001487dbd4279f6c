package timers

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
)

// brokenHook is a hook of a client that panics while it is on.
type brokenHook struct{ on atomic.Bool }

func (b *brokenHook) check() {
	if b.on.Load() {
		panic("hook")
	}
}

func (b *brokenHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (b *brokenHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { b.check(); return next(ctx, cmd) }
}

func (b *brokenHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error { b.check(); return next(ctx, all) }
}

// TestHookThatPanicsFailsItsCalls checks calls that are sent by goroutines of the store,
// where a panic would end the process: each returns the panic as its error, and the next
// call succeeds.
func TestHookThatPanicsFailsItsCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t, redistest.Shared(t))
	f.due(t, "a")
	hook := &brokenHook{}
	f.rdb.AddHook(hook)
	const callers = 20
	all := func(call func(i int) error) (errs []error) {
		errs = make([]error, callers)
		var calls sync.WaitGroup
		for i := range callers {
			calls.Go(func() {
				errs[i] = panicked(func() error { return call(i) })
			})
		}
		calls.Wait()
		return errs
	}
	for name, call := range map[string]func(i int) error{
		"schedule": func(i int) error {
			_, err := f.Schedule(context.Background(), f.topic, Entry{ID: fmt.Sprint(i), In: time.Hour})
			return err
		},
		"schedule many": func(i int) error {
			b, err := checkedBatch(f.topic, many(2000, fmt.Sprint("many ", i)))
			if err != nil {
				return err
			}
			_, err = f.Write(context.Background(), nil, b)
			return err
		},
		"peek": func(int) error { _, err := f.src.Peek(context.Background()); return err },
		"exchange": func(int) error {
			r := f.holder(SourceOptions{}).Request(0, time.Minute)
			_, err := f.src.Exchange(context.Background(), r)
			return err
		},
	} {
		hook.on.Store(true)
		for _, err := range all(call) {
			require.ErrorContains(t, err, "hook", name)
		}
		hook.on.Store(false)
		for _, err := range all(call) {
			require.NoError(t, err, name)
		}
	}
}

// panicked returns the error of a call, which may panic in the goroutine of its caller.
func panicked(call func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	return call()
}
