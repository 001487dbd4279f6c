package reminder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/recurring"
	"github.com/wakebell/wakebell/reminder"
)

// otherRuntime is an actor runtime that is not protoactor: each actor is a goroutine that
// reads its mailbox, finds nothing of Wakebell in its context, and is asked by name. It is
// the shape of goakt's Ask and of ergo's Call, whose adapters docs/reminders.md has.
type otherRuntime struct {
	mu     sync.Mutex
	actors map[string]chan<- asked
}

// asked is a message in a mailbox, with the place for its answer.
type asked struct {
	message any
	answer  chan any // has room for one
}

// spawn starts an actor until the end of the test. behave returns its answer to a message.
func (r *otherRuntime) spawn(t testing.TB, name string, behave func(message any) any) {
	t.Helper()
	mailbox := make(chan asked, 10)
	r.mu.Lock()
	if r.actors == nil {
		r.actors = map[string]chan<- asked{}
	}
	r.actors[name] = mailbox
	r.mu.Unlock()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case m := <-mailbox:
				m.answer <- behave(m.message)
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
}

// ask sends a message to an actor and returns its answer.
func (r *otherRuntime) ask(ctx context.Context, name string, message any) (any, error) {
	r.mu.Lock()
	mailbox, ok := r.actors[name]
	r.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("no actor %s", name)
	}
	m := asked{message, make(chan any, 1)}
	for {
		select {
		case mailbox <- m:
			mailbox = nil // it is sent
		case answer := <-m.answer:
			return answer, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Request makes it a reminder.Cluster: this is the whole adapter.
func (r *otherRuntime) Request(ctx context.Context, _, identity string, message proto.Message) (any, error) {
	answer, err := r.ask(ctx, identity, message)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", reminder.ErrUnreachable, err)
	}
	return answer, nil
}

// An actor of a runtime other than protoactor sets its reminders itself. They are repeated
// until it acknowledges them, also by the next process, whose actors are spawned later.
func TestActorsOfAnotherRuntimeAreReminded(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	start := func(runtime *otherRuntime) *wakebell.System {
		sys, err := wakebell.New(nil, conntest.New(t, rdb, connection.Config{Logger: quiet}), wakebell.Config{
			Reminders: &reminder.Config{Node: "shop-1", Cluster: runtime, RetryInitial: time.Millisecond, RetryLimit: 10 * time.Millisecond, MaxAttempts: 1_000_000},
			Scheduler: &recurring.SchedulerConfig{}, DrainTimeout: patience,
		})
		require.NoError(t, err)
		require.NoError(t, sys.Start(t.Context()))
		t.Cleanup(func() { _ = sys.Stop() })
		return sys
	}
	cart := reminder.Identity("cart", "17")

	first := &otherRuntime{}
	a := start(first)
	tried, counted := make(chan string, 1000), make(chan uint64, 1000)
	first.spawn(t, "17", func(message any) any {
		switch m := message.(type) {
		case *wrapperspb.StringValue: // an order of the shop
			_, err := a.Reminders().Set(t.Context(), cart, "close", reminder.In(0), m)
			if err == nil {
				err = a.Reminders().SetEvery(t.Context(), cart, "count", recurring.Rule{Every: 100 * time.Millisecond}, m)
			}
			return err
		case *messages.Reminder:
			if m.GetName() == "count" {
				send(counted, m.GetRun())
				return m.Ack()
			}
			what, err := m.Read()
			send(tried, fmt.Sprintf("%v %v", what.(*wrapperspb.StringValue).GetValue(), err))
			return m.Nack(errors.New("not yet")) // it never closes the cart
		}
		return nil
	})
	answer, err := first.ask(t.Context(), "17", wrapperspb.String("basket"))
	require.NoError(t, err)
	require.Nil(t, answer)
	for range 2 {
		require.Equal(t, "basket <nil>", receive(t, tried))
		receive(t, counted)
	}
	require.NoError(t, a.Stop())

	second := &otherRuntime{}
	b := start(second)
	eventually(t, func() bool { // its actor is not there yet
		state, err := b.Reminders().Get(t.Context(), cart, "close")
		require.NoError(t, err)
		return strings.Contains(state.LastError, reminder.ErrUnreachable.Error())
	})
	closed := make(chan string, 1000)
	second.spawn(t, "17", func(message any) any {
		m := message.(*messages.Reminder)
		send(closed, m.GetName())
		return m.Ack()
	})
	seen := map[string]bool{}
	for !seen["close"] || !seen["count"] {
		seen[receive(t, closed)] = true
	}
	eventually(t, func() bool {
		_, err := b.Reminders().Get(t.Context(), cart, "close")
		return errors.Is(err, wakebell.ErrNotFound)
	})
	found, err := b.Reminders().Forget(t.Context(), cart, "count")
	require.NoError(t, err)
	require.True(t, found)
}

// send records a value while there is room for it.
func send[T any](to chan<- T, value T) {
	select {
	case to <- value:
	default:
	}
}
