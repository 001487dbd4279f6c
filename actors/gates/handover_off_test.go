package gates

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/messages/gate"
)

// fifoStore is a store with one gate and one process.
type fifoStore struct {
	actortest.OpenGate
	mu     sync.Mutex
	queue  []gate.Ticket
	last   gate.Ticket
	passed int // turns that the process handed over without the store
}

func (s *fifoStore) Exchange(_ context.Context, r *gate.Request) (*gate.Reply, error) {
	<-time.After(time.Millisecond) // several handovers happen within one exchange
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := &gate.Reply{Now: time.Now(), Remaining: r.Lease, Since: 1}
	for _, op := range r.Ops {
		if op.Kind.Gives() {
			reply.Done = append(reply.Done, gate.Done{Had: s.queue[0] == op.Ticket})
			s.queue = slices.DeleteFunc(s.queue, func(t gate.Ticket) bool { return t == op.Ticket })
			if op.Kind == gate.GivePassed {
				s.passed++
			}
			continue
		}
		s.last++
		s.queue = append(s.queue, s.last)
		reply.Done = append(reply.Done, gate.Done{Ticket: s.last})
	}
	if len(s.queue) > 0 {
		reply.Held = s.queue[0]
	}
	return reply, nil
}

func TestTurnsAreGrantedWithAndWithoutHandOver(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]bool{"on": false, "off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actortest.InVirtualTime(t, func(t *testing.T) {
				store := &fifoStore{}
				g, err := Start(actortest.QuietSystem(), "gates", Config{
					Store: store, Terms: gate.Terms{Lease: time.Hour, Signal: time.Hour, Presence: time.Hour},
					Logger: actortest.DiscardLogger, Process: func() string { return "process" }, NoHandOver: off,
				})
				require.NoError(t, err)
				first, err := g.Acquire(t.Context(), "gate", false)
				require.NoError(t, err)
				fences := make(chan uint64, 5)
				for range cap(fences) {
					go func() {
						turn, err := g.Acquire(context.WithoutCancel(t.Context()), "gate", false)
						if err == nil {
							fences <- turn.Fence
							err = turn.Release(context.WithoutCancel(t.Context()))
						}
						if err != nil {
							t.Error(err)
						}
					}()
					synctest.Wait()
				}
				<-time.After(time.Second) // until all have tickets
				require.NoError(t, first.Release(t.Context()))
				for n := range cap(fences) {
					require.Equal(t, first.Fence+1+uint64(n), <-fences)
				}
				require.NoError(t, g.Close())
				require.Equal(t, off, store.passed == 0)
			})
		})
	}
}
