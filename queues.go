package wakebell

import (
	"context"
	"strings"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/gates"
	queuestore "github.com/wakebell/wakebell/redisops/queue"
)

// hints subscribes to the notifications of the System's topics and queues.
type hints struct{ s *System }

// Listen implements actors.Hints.
func (l hints) Listen(ctx context.Context, sources []string, deliver func(exchange.Hint)) error {
	var topics []string
	var queues []*queuestore.Queue
	for _, name := range sources {
		if q := l.s.queueNamed(name); q != nil {
			queues = append(queues, q)
		} else {
			topics = append(topics, name)
		}
	}
	return queuestore.Listen(ctx, l.s.store, topics, queues, deliver)
}

// queueNamed returns the queue of that full name that the System handles, or nil.
func (s *System) queueNamed(full string) *queuestore.Queue {
	q, _ := s.queues.Load(full)
	queue, _ := q.(*queuestore.Queue)
	return queue
}

// handles registers the queue of a handler, before its poller starts.
func (s *System) handles(h Handler) error {
	if h.set.queue == nil {
		return nil
	}
	name := h.set.queue.name
	name.Name = s.cfg.Prefix + name.Name
	q, err := queuestore.New(s.store, name)
	if err != nil {
		return err
	}
	s.queues.Store(q.Name(), q)
	return nil
}

// Reserves reports whether the keys of a queue of this name, given without the
// System's prefix, would lie among the keys of topics, recurring schedules or
// gates. A client with the permission to use any queue could then change those.
func (s *System) Reserves(queue string) bool {
	full := s.cfg.Prefix + queue
	if s.cfg.Keys.HashTag {
		full = "{" + full // keys of queues begin so
	}
	for _, base := range append(s.store.Keys().Bases(), s.client.store.Audit.Key()) {
		if full == base || strings.HasPrefix(full, strings.TrimSuffix(base, ":")+":") {
			return true
		}
	}
	gates, _ := gates.NewKeyspace(s.cfg.Gates.Keys) // checked when the System was made
	for _, base := range gates.Bases() {
		if full == base || strings.HasPrefix(full, base+":") {
			return true
		}
	}
	return false
}
