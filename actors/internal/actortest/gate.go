package actortest

import (
	"context"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
)

// OpenGate is a store whose gates grant every request at once.
type OpenGate struct {
	mu        sync.Mutex
	last      gate.Ticket
	Processes map[string]bool
}

// Part knows one part.
func (s *OpenGate) Part(string) int { return 0 }

// Exchange grants every ticket at once.
func (s *OpenGate) Exchange(_ context.Context, r *gate.Request) (*gate.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Processes[r.Process] = true
	reply := &gate.Reply{Now: time.Now(), Remaining: r.Lease}
	for _, op := range r.Ops {
		done := gate.Done{Had: op.Kind == gate.Give}
		if !done.Had {
			s.last++
			done.Ticket, reply.Held = s.last, s.last
		}
		reply.Done = append(reply.Done, done)
	}
	return reply, nil
}

// Heartbeat extends everything.
func (s *OpenGate) Heartbeat(_ context.Context, b *gate.Heartbeat) (*gate.HeartbeatReply, error) {
	return &gate.HeartbeatReply{Now: time.Now(), Lost: make([]bool, len(b.Turns))}, nil
}

// Places knows no places.
func (s *OpenGate) Places(_ context.Context, tickets []gate.Held) ([]gate.Place, error) {
	return make([]gate.Place, len(tickets)), nil
}

// Listen delivers no signals until ctx ends.
func (s *OpenGate) Listen(ctx context.Context, _ string, _ func(), _ func(gate.Signal)) error {
	<-ctx.Done()
	return ctx.Err()
}
