package actortest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// MemorySource is a source in memory, all of whose timers are due at once. It
// repeats the reply to a repeated sequence number, as a real source does.
type MemorySource struct {
	// Before and After may fail an exchange, before or after it is run.
	Before, After func() error
	Expires       bool // leases expire, and their timers are due again

	mu        sync.Mutex
	due       []string
	leased    map[string]exchange.Token
	ends      map[string]time.Time // of the leases
	tokens    int
	answers   map[string]answer // by incarnation and stream
	exchanges int
	MaxLeased int // leased at once
	Released  int
	names     map[string]bool // the incarnations seen
	control   string          // mark of the settings; empty: it has none
	settled   map[string]exchange.Verdict
}

type answer struct {
	sequence uint64
	reply    *exchange.Reply
}

// NewMemorySource returns a source with the ids 0 to timers-1.
func NewMemorySource(timers int) *MemorySource {
	s := &MemorySource{
		leased: map[string]exchange.Token{}, ends: map[string]time.Time{}, answers: map[string]answer{},
		names: map[string]bool{}, settled: map[string]exchange.Verdict{},
	}
	for n := range timers {
		s.due = append(s.due, strconv.Itoa(n))
	}
	return s
}

// Name implements poller.Source.
func (s *MemorySource) Name() string { return "shelf" }

// Shard implements poller.Source.
func (s *MemorySource) Shard() string { return "" }

// RemoveOrphans implements poller.Source.
func (s *MemorySource) RemoveOrphans(context.Context) (exchange.Swept, error) {
	return exchange.Swept{}, nil
}

// Exchange implements poller.Source.
func (s *MemorySource) Exchange(ctx context.Context, r *exchange.Request) (*exchange.Reply, error) {
	select {
	case <-time.After(rand.N(3 * time.Millisecond)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.Before != nil {
		if err := s.Before(); err != nil {
			return nil, err
		}
	}
	reply, err := s.run(r)
	if err == nil && s.After != nil {
		err = s.After()
	}
	return reply, err
}

func (s *MemorySource) run(r *exchange.Request) (*exchange.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges++
	s.names[r.Incarnation] = true
	stream := fmt.Sprint(r.Incarnation, r.Stream)
	if last := s.answers[stream]; last.sequence == r.Sequence {
		again := *last.reply
		again.Control = s.control
		return &again, nil
	} else if last.sequence > r.Sequence {
		return nil, exchange.ErrStale
	}
	reply := &exchange.Reply{Now: time.Now(), Remaining: r.LeaseTTL, Next: -1, Control: s.control}
	for i, v := range r.Settle {
		if s.leased[v.ID] != v.Token {
			reply.Refused = append(reply.Refused, exchange.Refusal{Index: i, Reason: exchange.Lost})
			continue
		}
		delete(s.leased, v.ID)
		if v.Verdict == exchange.Release {
			s.due = append(s.due, v.ID)
			s.Released++
			continue
		}
		s.settled[v.ID] = v.Verdict
		if v.Verdict == exchange.DeadLetter {
			reply.DeadLettered = append(reply.DeadLettered, exchange.DeadLettered{Index: i, Entry: "1-" + v.ID, At: reply.Now, ID: v.ID, Claims: 1})
		}
	}
	s.tokens++
	reply.Extended = exchange.Token(strconv.Itoa(s.tokens))
	for i, h := range r.Extend {
		if s.leased[h.ID] != h.Token {
			reply.Refused = append(reply.Refused, exchange.Refusal{Index: len(r.Settle) + i, Reason: exchange.Lost})
			continue
		}
		s.leased[h.ID], s.ends[h.ID] = reply.Extended, reply.Now.Add(r.LeaseTTL)
	}
	s.expire(reply.Now)
	n := min(r.Want, len(s.due))
	if r.Control != "" && r.Control != s.control {
		n = 0
	}
	for _, id := range s.due[:n] {
		s.leased[id], s.ends[id] = reply.Extended, reply.Now.Add(r.LeaseTTL)
		reply.Leases = append(reply.Leases, exchange.Lease{ID: id, Token: reply.Extended, Claims: 1})
	}
	s.due, s.MaxLeased = s.due[n:], max(s.MaxLeased, len(s.leased))
	if len(s.due) > 0 {
		reply.Next = 0
	}
	s.answers[stream] = answer{r.Sequence, reply}
	return reply, nil
}

// expire makes the timers of expired leases due again. An expired lease can still
// be settled until its timer is claimed again.
func (s *MemorySource) expire(now time.Time) {
	for id := range s.leased {
		if s.Expires && now.After(s.ends[id]) {
			s.due = append(s.due, id)
			s.ends[id] = now.Add(time.Hour) // it becomes due once
		}
	}
	s.due = slices.DeleteFunc(s.due, func(id string) bool { return s.settled[id] != 0 })
}

// SetControl changes the mark of the settings.
func (s *MemorySource) SetControl(mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control = mark
}

// Put makes more timers due.
func (s *MemorySource) Put(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = append(s.due, ids...)
}

// Count counts the timers that are due, leased and settled, and the exchanges.
func (s *MemorySource) Count() (due, leased, settled, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due), len(s.leased), len(s.settled), s.exchanges
}
