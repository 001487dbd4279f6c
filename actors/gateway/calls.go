package gateway

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/messages"
)

const (
	// MaxRunning bounds the requests that run at once, except the first of each
	// principal. More gain nothing: they would wait for a connection. quota bounds
	// the share of one principal.
	MaxRunning = 64
	// MaxWaiting bounds the queued requests.
	MaxWaiting = 2048
	// MaxWaitingBytes bounds what all requests hold in memory.
	MaxWaitingBytes = 128 << 20
)

// Call is a request from its arrival at the gateway to the end of its work, which
// may be after its answer.
type Call struct {
	request messages.Request
	Sender  *actor.PID // nil: no answer is expected
	Size    int
	Of      principal.Party // charged for its quota

	// Ctx ends with the request's timeout, or with the gateway's incarnation.
	// Then the call is answered, even if its work continues.
	Ctx         context.Context
	Cancel      context.CancelFunc
	stopTimeout func() bool // stops the answer at the end of Ctx
	answered    atomic.Bool

	// Keys are the timers that it is about. It waits for blockers earlier calls
	// about them; blocks are the later calls that wait for it.
	Keys     []string
	blockers int
	blocks   []*Call
}

// Calls are the accepted requests of an actor. Calls about the same timer run in
// the order of their arrival, so that a cancel does not overtake the schedule
// before it; others run concurrently. Principals with ready calls take turns.
type Calls struct {
	Last  map[string]*Call            // the latest call about each timer
	ready map[principal.Party][]*Call // wait only for a free worker
	turns []principal.Party           // those in ready, the next first
	quota quota
}

// NewCalls returns an empty Calls.
func NewCalls() Calls {
	return Calls{Last: map[string]*Call{}, ready: map[principal.Party][]*Call{}, quota: newQuota()}
}

// Full reports why one more call is refused; empty: it is not. The first call is
// always accepted.
func (q *Calls) Full(of principal.Party, size int) string {
	if q.idle() {
		return ""
	}
	return q.quota.exceeded(of, size)
}

func (q *Calls) idle() bool { return q.Waiting()+q.Running() == 0 }

// Waiting is how many calls have not begun.
func (q *Calls) Waiting() int { return q.quota.total.waiting }

// Running is how many calls have begun and not ended.
func (q *Calls) Running() int { return q.quota.total.running }

// Add queues a call behind those about the same keys.
func (q *Calls) Add(c *Call) {
	q.quota.add(c.Of, usage{waiting: 1, bytes: c.Size})
	for _, key := range c.Keys {
		before := q.Last[key]
		if before == c { // the key is repeated
			continue
		}
		if before != nil {
			before.blocks = append(before.blocks, c)
			c.blockers++
		}
		q.Last[key] = c
	}
	if c.blockers == 0 {
		q.queue(c)
	}
}

// queue adds a call that waits only for a free worker.
func (q *Calls) queue(c *Call) {
	if len(q.ready[c.Of]) == 0 {
		q.turns = append(q.turns, c.Of)
	}
	q.ready[c.Of] = append(q.ready[c.Of], c)
}

// Begin takes the next call to carry out; nil: none is ready, or none may run.
func (q *Calls) Begin() *Call {
	next := slices.IndexFunc(q.turns, q.quota.mayRun)
	if next < 0 {
		return nil
	}
	of := q.turns[next]
	q.turns = slices.Delete(q.turns, next, next+1)
	c := q.ready[of][0]
	q.ready[of][0] = nil
	if q.ready[of] = q.ready[of][1:]; len(q.ready[of]) > 0 {
		q.turns = append(q.turns, of)
	} else {
		delete(q.ready, of)
	}
	q.quota.add(of, usage{waiting: -1, running: 1})
	return c
}

// End removes a running call, and readies the calls that waited for it.
func (q *Calls) End(c *Call) {
	q.quota.add(c.Of, usage{running: -1, bytes: -c.Size})
	for _, key := range c.Keys {
		if q.Last[key] == c {
			delete(q.Last, key)
		}
	}
	for _, later := range c.blocks {
		if later.blockers--; later.blockers == 0 {
			q.queue(later)
		}
	}
}

// keysOf returns the keys of the timers, recurring schedules or queues that a
// request is about. A request that reads a whole topic has none.
func keysOf(request messages.Request) []string {
	switch r := request.(type) {
	case *messages.ScheduleRequest:
		var keys []string
		if r.GetId() != "" { // else it gets a new one
			keys = key(r.GetTopic(), r.GetId())
		}
		return append(append(keys, partKeys(r.GetAfter())...), partKeys(r.GetPartOf())...)
	case *messages.ScheduleBatchRequest:
		var keys []string
		for _, s := range r.GetTimers() {
			keys = append(keys, keysOf(s)...)
		}
		return keys
	case *messages.CancelRequest:
		return key(r.GetTopic(), r.GetIds()...)
	case *messages.GetTimerRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.RescheduleRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.RunNowRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.GetJoinRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.ListPartsRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.AddPartsRequest:
		return append(key(r.GetTopic(), r.GetId()), partKeys(r.GetParts())...)
	case *messages.CloseJoinRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.CancelJoinRequest:
		return key(r.GetTopic(), r.GetId())
	case *messages.PublishRequest:
		return key("\x00queue", r.GetName())
	case *messages.PutRecurringRequest:
		var keys []string
		for _, s := range r.GetSchedules() {
			keys = append(keys, key(recurring, s.GetName())...)
		}
		return keys
	case *messages.DeleteRecurringRequest:
		return key(recurring, r.GetName())
	case *messages.EnableRecurringRequest:
		return key(recurring, r.GetName())
	case *messages.RunRecurringRequest:
		return key(recurring, r.GetName())
	case *messages.GetRecurringRequest:
		return key(recurring, r.GetName())
	default:
		return nil
	}
}

func partKeys(parts []*messages.TimerPart) (keys []string) {
	for _, p := range parts {
		keys = append(keys, key(p.GetTopic(), p.GetId())...)
	}
	return keys
}

// recurring replaces the topic in a key: no topic begins with NUL.
const recurring = "\x00recurring"

func key(topic string, ids ...string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = topic + "\x00" + id
	}
	return keys
}
