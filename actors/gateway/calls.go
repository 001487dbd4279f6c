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
	// MaxRunning bounds the requests that the gateway carries out at once, but for
	// the first of each principal. More gain nothing: they would wait for a
	// connection. Shares are bounded by room, here and below.
	MaxRunning = 64
	// MaxWaiting bounds the requests that wait for their turn.
	MaxWaiting = 2048
	// MaxWaitingBytes bounds what all requests hold in memory.
	MaxWaitingBytes = 128 << 20
)

// Call is a request from its arrival at the gateway to the end of its work,
// which may come after its answer.
type Call struct {
	request messages.Request
	Sender  *actor.PID // nil: nobody waits
	Size    int
	Of      principal.Party // its room is charged to it

	// ctx ends with the request's timeout, or with the gateway's incarnation;
	// then the call is answered, whatever its work does.
	Ctx         context.Context
	Cancel      context.CancelFunc
	stopTimeout func() bool // keeps the end of ctx from answering
	answered    atomic.Bool

	// keys are the timers that it is about. It waits for blockers earlier calls
	// about them; blocks are the later ones that wait for it.
	Keys     []string
	blockers int
	blocks   []*Call
}

// Calls are the requests that the gateway has taken. Calls about the same timer
// are carried out in the order in which they came, so that a cancel does not
// overtake the schedule before it; any others at once. Parties whose calls wait for
// a place take turns.
type Calls struct {
	Last  map[string]*Call            // the newest of those about a timer
	ready map[principal.Party][]*Call // wait for nothing but a place
	turns []principal.Party           // those in ready, the next first
	quota quota
}

// NewCalls has room for all.
func NewCalls() Calls {
	return Calls{Last: map[string]*Call{}, ready: map[principal.Party][]*Call{}, quota: newQuota()}
}

// Full reports why there is no room for one more call; empty: there is. The first
// of all always has room.
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
		if before == c { // named twice
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

// queue has a call wait for a place.
func (q *Calls) queue(c *Call) {
	if len(q.ready[c.Of]) == 0 {
		q.turns = append(q.turns, c.Of)
	}
	q.ready[c.Of] = append(q.ready[c.Of], c)
}

// Begin takes the next call to carry out; nil when there is none, or no place
// for it.
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

// End forgets a call that has begun, and lets those go on that waited for it.
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

// keysOf names the timers, recurring schedules or queues that a request is
// about. One that reads a whole topic is about none.
func keysOf(request messages.Request) []string {
	switch r := request.(type) {
	case *messages.ScheduleRequest:
		if r.GetId() == "" { // it gets a new one
			return nil
		}
		return key(r.GetTopic(), r.GetId())
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

// recurring is no topic: none begins with NUL.
const recurring = "\x00recurring"

func key(topic string, ids ...string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = topic + "\x00" + id
	}
	return keys
}
