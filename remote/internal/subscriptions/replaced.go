package subscriptions

import (
	"iter"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

// Two processes can subscribe under one name: the earlier one was replaced, or is cut off, or
// both were given the name by mistake. Its handlers may run, so the later one must not have its
// leases to release. They stay with the earlier one, which may settle and extend them, or expire.

// instanceOf returns what subscribes: a process by what it calls itself, or else a session or an
// actor.
func instanceOf(m *messages.SubscribeRequest, sender *actor.PID) string {
	if named := m.GetInstance(); named != "" {
		return "instance " + named
	}
	return "process " + sender.String()
}

// replace leaves the leases that were sent for a subscription with the instance that has them,
// before another instance takes the subscription over.
func (h *hub) replace(s *subscriber) {
	former := &subscriber{
		key: s.key, instance: s.instance, generation: s.generation, to: s.to, last: s.last, clock: s.clock, party: s.party, mine: s.mine,
		memory: h.guard.Leases.Holder(s.party),
	}
	for _, l := range h.held {
		if l.of == s && l.sent {
			h.move(l, former)
		}
	}
	if former.used > 0 {
		h.departed[former] = struct{}{}
	}
}

// resume gives a subscription the leases of its instance from before another one replaced it.
func (h *hub) resume(s *subscriber) {
	for former := range h.departed {
		if former.key != s.key || former.instance != s.instance {
			continue
		}
		for _, l := range h.held {
			if l.of == former {
				h.move(l, s)
			}
		}
		h.forget(former)
	}
}

// former returns what is left of the subscription of a process that another one has replaced, or nil.
func (h *hub) former(key subscriberKey, process *actor.PID) *subscriber {
	for s := range h.departed {
		if s.key == key && same(s.to, process) {
			return s
		}
	}
	return nil
}

// move gives a lease that was sent to another subscriber.
func (h *hub) move(l *held, to *subscriber) {
	h.use(to, 1)
	h.use(l.of, -1)
	to.memory.Force(l.size)
	l.of.memory.Give(l.size)
	l.of = to
}

// endReplaced ends what is left of a subscription that was replaced.
func (h *hub) endReplaced(former *subscriber, running ...uint64) {
	former.to = nil
	h.release(former, running)
}

// all returns all subscribers, also those that have ended or were replaced while leases are left.
func (h *hub) all() iter.Seq[*subscriber] {
	return func(yield func(*subscriber) bool) {
		for _, s := range h.subscribers {
			if !yield(s) {
				return
			}
		}
		for s := range h.departed {
			if !yield(s) {
				return
			}
		}
	}
}
