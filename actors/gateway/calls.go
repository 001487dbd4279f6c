package gateway

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/messages"
)

const (
	// MaxRunning bounds the requests that run at once. More gain nothing: they
	// would wait for a connection.
	MaxRunning = 64
	// MaxWaiting bounds the queued requests. quota bounds the share of one
	// principal.
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
// before it; others run concurrently.
type Calls struct {
	Last    map[string]*Call // the latest call about each timer
	ready   []*Call          // wait only for a free worker
	Waiting int              // those in ready, and those that wait for others
	running int              // at most MaxRunning
	quota   quota
}

// NewCalls returns an empty Calls.
func NewCalls() Calls { return Calls{Last: map[string]*Call{}, quota: newQuota()} }

// Full reports why one more call is refused; empty: it is not. The first call is
// always accepted.
func (q *Calls) Full(of principal.Party, size int) string {
	if q.idle() {
		return ""
	}
	return q.quota.exceeded(of, size)
}

func (q *Calls) idle() bool { return q.Waiting+q.running == 0 }

// Add queues a call behind those about the same keys.
func (q *Calls) Add(c *Call) {
	q.Waiting++
	q.quota.add(c.Of, 1, c.Size)
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
		q.ready = append(q.ready, c)
	}
}

// Begin takes the next call to carry out; nil: none is ready, or MaxRunning are
// running.
func (q *Calls) Begin() *Call {
	if len(q.ready) == 0 || q.running == MaxRunning {
		return nil
	}
	c := q.ready[0]
	q.ready[0] = nil
	if q.ready = q.ready[1:]; len(q.ready) == 0 {
		q.ready = nil
	}
	q.Waiting--
	q.quota.add(c.Of, -1, 0)
	q.running++
	return c
}

// End removes a running call, and readies the calls that waited for it.
func (q *Calls) End(c *Call) {
	q.running--
	q.quota.add(c.Of, 0, -c.Size)
	for _, key := range c.Keys {
		if q.Last[key] == c {
			delete(q.Last, key)
		}
	}
	for _, later := range c.blocks {
		if later.blockers--; later.blockers == 0 {
			q.ready = append(q.ready, later)
		}
	}
}

// keysOf returns the keys of the timers, recurring schedules or queues that a
// request is about. A request that reads a whole topic has none.
func keysOf(request messages.Request) []string {
	switch r := request.(type) {
	case *messages.Schedule:
		if r.GetId() == "" { // it gets a new id
			return nil
		}
		return key(r.GetTopic(), r.GetId())
	case *messages.ScheduleBatch:
		var keys []string
		for _, s := range r.GetTimers() {
			keys = append(keys, keysOf(s)...)
		}
		return keys
	case *messages.Cancel:
		return key(r.GetTopic(), r.GetIds()...)
	case *messages.Get:
		return key(r.GetTopic(), r.GetId())
	case *messages.Reschedule:
		return key(r.GetTopic(), r.GetId())
	case *messages.RunNow:
		return key(r.GetTopic(), r.GetId())
	case *messages.Publish:
		return key("\x00queue", r.GetName())
	case *messages.PutRecurring:
		var keys []string
		for _, s := range r.GetSchedules() {
			keys = append(keys, key(recurring, s.GetName())...)
		}
		return keys
	case *messages.DeleteRecurring:
		return key(recurring, r.GetName())
	case *messages.EnableRecurring:
		return key(recurring, r.GetName())
	case *messages.RunRecurring:
		return key(recurring, r.GetName())
	case *messages.GetRecurring:
		return key(recurring, r.GetName())
	default:
		return nil
	}
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
