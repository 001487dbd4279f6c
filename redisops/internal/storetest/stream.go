package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/messages/exchange"
)

// Stream sends the exchanges of one poller to its source, and counts their sequence.
type Stream struct {
	Incarnation string
	Sequence    uint64

	source source
}

type source interface {
	Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error)
}

// NewStream returns a stream of a new incarnation.
func NewStream(s source) *Stream {
	return &Stream{Incarnation: fmt.Sprintf("%x", rand.Uint64()), source: s}
}

// Request returns the next request, which claims up to want leases.
func (s *Stream) Request(want int, ttl time.Duration) *exchange.Request {
	s.Sequence++
	return &exchange.Request{Incarnation: s.Incarnation, Sequence: s.Sequence, Want: want, LeaseTTL: ttl}
}

// Run sends a request, which must succeed.
func (s *Stream) Run(t testing.TB, r *exchange.Request) *exchange.Reply {
	t.Helper()
	reply, err := s.source.Exchange(context.WithoutCancel(t.Context()), r)
	require.NoError(t, err)
	return reply
}

// Claim claims up to want leases for a minute.
func (s *Stream) Claim(t testing.TB, want int) *exchange.Reply {
	t.Helper()
	return s.Run(t, s.Request(want, time.Minute))
}

// Settle sends settlements and claims nothing.
func (s *Stream) Settle(t testing.TB, list ...exchange.Settlement) *exchange.Reply {
	t.Helper()
	r := s.Request(0, time.Minute)
	r.Settle = list
	return s.Run(t, r)
}

// Extend extends leases by ttl and claims nothing.
func (s *Stream) Extend(t testing.TB, ttl time.Duration, leases ...exchange.Lease) *exchange.Reply {
	t.Helper()
	r := s.Request(0, ttl)
	for _, l := range leases {
		r.Extend = append(r.Extend, Held(l))
	}
	return s.Run(t, r)
}
