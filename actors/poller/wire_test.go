package poller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/messages/exchange"
)

// peekable answers exchanges and peeks with nothing.
type peekable struct{ Source }

func (peekable) Exchange(context.Context, *exchange.Request) (*exchange.Reply, error) {
	return &exchange.Reply{}, nil
}

func (peekable) Peek(context.Context) (exchange.PeekReply, error) { return exchange.PeekReply{}, nil }

func (peekable) Watch(context.Context, exchange.Answered) (stop func() (next time.Time)) { return nil }

// Topics that are watched, or only peek, keep no goroutine; others keep one from exchange to
// exchange.
func TestGoroutineOfWireEndsWithPeek(t *testing.T) {
	t.Parallel()
	answers := make(chan any, 1)
	w := &wire{source: peekable{}, requests: make(chan *leasing.Flight, 1), toPoller: func(message any) { answers <- message }}
	begun, ended := 0, make(chan struct{}, 4)
	send := func(peek bool) {
		w.send(t.Context(), &leasing.Flight{Peek: peek}, func(serve func()) {
			begun++
			go func() {
				serve()
				ended <- struct{}{}
			}()
		})
		<-answers
	}
	send(false)
	send(false)
	require.Equal(t, 1, begun)
	send(true)
	<-ended
	send(true)
	<-ended
	require.Equal(t, 2, begun)
	send(false)
	require.Equal(t, 3, begun)
	w.rest()
	<-ended
	w.rest() // there is none
	send(false)
	require.Equal(t, 4, begun)
	close(w.requests)
	<-ended
}
