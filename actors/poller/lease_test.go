package poller

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeaseContext(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		c := &leaseContext{parent: t.Context()}
		if asked { // creates the inner context before the end
			require.NotNil(t, c.Done())
		}
		require.NoError(t, c.Err())
		require.NoError(t, context.Cause(c))
		require.NoError(t, c.endedBy())
		c.end(ErrCancelled)
		c.end(ErrLeaseLost)
		require.ErrorIs(t, c.Err(), context.Canceled)
		require.Equal(t, ErrCancelled, context.Cause(c), "the first cause counts")
		require.Equal(t, ErrCancelled, c.endedBy())
		<-c.Done()
	}
}

func TestLeaseContextIsLazy(t *testing.T) {
	t.Parallel()
	c := &leaseContext{parent: t.Context()}
	require.NoError(t, c.Err())
	c.end(context.Canceled)
	require.Nil(t, c.inner, "the inner context is created by Done and Value only")
	require.NoError(t, c.endedBy(), "the end of the handler itself is no cause")
}

func TestLeaseContextFollowsItsIncarnation(t *testing.T) {
	t.Parallel()
	type key struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	c := &leaseContext{parent: parent}
	require.Equal(t, "value", c.Value(key{}))
	cancel(ErrStopped)
	<-c.Done()
	require.ErrorIs(t, c.Err(), context.Canceled)
	require.Equal(t, ErrStopped, context.Cause(c))

	c = &leaseContext{parent: parent} // without an inner context
	require.ErrorIs(t, c.Err(), context.Canceled)
	require.Equal(t, ErrStopped, context.Cause(c))
}

func TestLeaseContextChildren(t *testing.T) {
	t.Parallel()
	c := &leaseContext{parent: t.Context()}
	child, cancel := context.WithTimeout(c, time.Hour)
	defer cancel()
	ended := make(chan error, 1)
	context.AfterFunc(c, func() { ended <- context.Cause(c) })
	c.end(ErrCancelled)
	<-child.Done()
	require.Equal(t, ErrCancelled, context.Cause(child))
	require.Equal(t, ErrCancelled, <-ended)
}

func TestLeaseContextRace(t *testing.T) {
	t.Parallel()
	causes := []error{ErrCancelled, ErrLeaseLost, ErrDraining}
	for range 100 {
		c := &leaseContext{parent: t.Context()}
		var all sync.WaitGroup
		for _, cause := range causes {
			all.Go(func() { c.end(cause) })
			all.Go(func() {
				<-c.Done()
				if err := context.Cause(c); !errors.Is(err, c.endedBy()) {
					t.Errorf("cause %v, ended by %v", err, c.endedBy())
				}
			})
		}
		all.Wait()
		require.Contains(t, causes, c.endedBy())
	}
}
