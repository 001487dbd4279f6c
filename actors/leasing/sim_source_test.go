package leasing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
)

// simSource is the source of a simulation. It keeps the contract of package exchange: it
// fences settlements and extensions by their tokens, and repeats the reply to a repeated
// sequence number.
type simSource struct {
	timers  map[string]*simTimer
	replies map[string]simReply // by incarnation and stream
	tokens  int
	acked   map[string]bool
	dead    map[string]bool
}

// simTimer is a timer in a simSource. While it is leased, it is due when the lease expires.
type simTimer struct {
	id         string
	activation time.Time
	due        time.Time
	token      exchange.Token // empty: it is not leased
	claims     int
	failures   int
}

type simReply struct {
	sequence uint64
	reply    *exchange.Reply
	expires  time.Time // of the leases in it
}

func newSimSource() *simSource {
	return &simSource{timers: map[string]*simTimer{}, replies: map[string]simReply{}, acked: map[string]bool{}, dead: map[string]bool{}}
}

func (s *simSource) schedule(id string, at time.Time) {
	s.timers[id] = &simTimer{id: id, activation: at, due: at}
}

// exchange runs a request at an instant.
func (s *simSource) exchange(now time.Time, r *exchange.Request) (*exchange.Reply, error) {
	stream := fmt.Sprint(r.Incarnation, "/", r.Stream)
	switch last := s.replies[stream]; {
	case r.Sequence == last.sequence:
		again := *last.reply
		again.Now, again.Remaining = now, last.expires.Sub(now)
		again.Next = s.next(now)
		again.Leases = slices.Clone(again.Leases)
		return &again, nil
	case r.Sequence < last.sequence:
		return nil, exchange.ErrStale
	}
	reply := &exchange.Reply{Now: now, Remaining: r.LeaseTTL}
	for i, each := range r.Settle {
		s.settle(now, i, each, reply)
	}
	expires := now.Add(r.LeaseTTL)
	s.tokens++
	reply.Extended = exchange.Token(strconv.Itoa(s.tokens))
	for i, held := range r.Extend {
		if t := s.timers[held.ID]; t == nil || t.token != held.Token {
			reply.Refused = append(reply.Refused, exchange.Refusal{Index: len(r.Settle) + i, Reason: exchange.Lost})
		} else {
			t.due, t.token = expires, reply.Extended
		}
	}
	for _, t := range s.dueBy(now, now.Add(r.Ahead), r.Want) {
		s.tokens++
		t.due, t.token, t.claims = expires, exchange.Token(strconv.Itoa(s.tokens)), t.claims+1
		reply.Leases = append(reply.Leases, exchange.Lease{ID: t.id, Token: t.token, Activation: t.activation, Claims: t.claims, Failures: t.failures})
	}
	reply.Next = s.next(now)
	stored := *reply
	stored.Leases = slices.Clone(reply.Leases)
	s.replies[stream] = simReply{r.Sequence, &stored, expires}
	return reply, nil
}

func (s *simSource) settle(now time.Time, i int, v exchange.Settlement, reply *exchange.Reply) {
	t := s.timers[v.ID]
	if t == nil || t.token != v.Token {
		reply.Refused = append(reply.Refused, exchange.Refusal{Index: i, Reason: exchange.Lost})
		return
	}
	t.token = ""
	switch v.Verdict {
	case exchange.Ack:
		delete(s.timers, v.ID)
		s.acked[v.ID] = true
	case exchange.Nack:
		t.due, t.failures = now.Add(v.Delay), t.failures+1
	case exchange.Release:
		t.due, t.claims = now, t.claims-1
	case exchange.DeadLetter, exchange.Fail:
		delete(s.timers, v.ID)
		s.dead[v.ID] = true
		reply.DeadLettered = append(reply.DeadLettered, exchange.DeadLettered{Index: i, ID: v.ID, At: now, Claims: t.claims})
	}
}

// dueBy returns the first timers that are due, or that become due by ahead for the first time.
func (s *simSource) dueBy(now, ahead time.Time, most int) []*simTimer {
	var due []*simTimer
	for _, t := range s.timers {
		if !t.due.After(now) || t.claims == 0 && !t.due.After(ahead) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *simTimer) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) })
	return due[:min(len(due), most)]
}

// next is the time until the next timer is due, as in exchange.Reply.
func (s *simSource) next(now time.Time) time.Duration {
	var first time.Time
	for _, t := range s.timers {
		first = earlier(first, t.due)
	}
	if first.IsZero() {
		return -1
	}
	return max(first.Sub(now), 0)
}
