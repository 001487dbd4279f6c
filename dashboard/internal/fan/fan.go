// Package fan makes calls side by side, a few at a time.
package fan

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wakebell/wakebell/internal/usercode"
)

// width bounds the calls at a time.
const width = 8

// Out calls fn for 0 to n-1, until ctx ends, and returns for how many. The error is that of a
// call that panicked; the others go on.
func Out(ctx context.Context, n int, fn func(i int)) (called int, err error) {
	var next, done atomic.Int64
	var failed atomic.Pointer[error]
	var wait sync.WaitGroup
	for range min(width, n) {
		wait.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := usercode.Called("reading for the dashboard", func() error { fn(i); return nil }); err != nil {
					failed.Store(&err)
				}
				done.Add(1)
			}
		})
	}
	wait.Wait()
	if p := failed.Load(); p != nil {
		err = *p
	}
	return int(done.Load()), err
}
