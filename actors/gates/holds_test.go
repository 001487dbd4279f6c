package gates

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/gate"
)

// holdStore remembers what is stored.
type holdStore struct {
	mu    sync.Mutex
	err   error
	calls []map[string]gate.Holds
}

func (s *holdStore) AddHolds(_ context.Context, held map[string]gate.Holds) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, held)
	return s.err
}

func (s *holdStore) stored() []map[string]gate.Holds {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

func TestDurationsOfTurnsAreStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, failures := &holdStore{}, 0
		var io sync.WaitGroup
		h := &holds{store: store, io: &io, failed: func(error) { failures++ }}
		for _, d := range []time.Duration{0, 10 * time.Millisecond, time.Second, 2 * time.Second, 48 * time.Hour} {
			h.add("deploy", d)
		}
		<-time.After(holdsEvery - time.Millisecond)
		synctest.Wait()
		require.Empty(t, store.stored())
		<-time.After(2 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []map[string]gate.Holds{{"deploy": {2, 0, 1, 1, 0, 0, 0, 1}}}, store.stored())

		for i := range maxHolds + 5 {
			h.add(fmt.Sprint(i), 0)
		}
		store.err = errors.New("memory is full")
		h.flush(true)
		io.Wait()
		require.Len(t, store.stored()[1], maxHolds)
		require.Equal(t, 1, failures)
		h.add("late", 0)
		h.flush(true)
		io.Wait()
		require.Len(t, store.stored(), 2, "nothing is stored after the last")
		(*holds)(nil).add("deploy", 0)
		(&holds{}).add("deploy", 0)
	})
}
