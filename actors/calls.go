package actors

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/messages"
)

const (
	// maxRunning bounds the requests that the gateway carries out at once.
	// More gain nothing: they would wait for a connection.
	maxRunning = 64
	// maxWaiting bounds those that wait for their turn, maxCallBytes what all
	// together hold in memory.
	maxWaiting   = 1024
	maxCallBytes = 64 << 20
)

// call is a request from its arrival at the gateway to the end of its work,
// which may come after its answer.
type call struct {
	request messages.Request
	sender  *actor.PID // nil: nobody waits
	size    int

	// ctx ends with the request's timeout, or with the gateway's incarnation;
	// then the call is answered, whatever its work does.
	ctx      context.Context
	cancel   context.CancelFunc
	silence  func() bool // keeps the end of ctx from answering
	answered atomic.Bool

	// keys are the timers that it is about. It waits for blockers earlier calls
	// about them; blocks are the later ones that wait for it.
	keys     []string
	blockers int
	blocks   []*call
}

// calls are the requests that the gateway has taken. Calls about the same timer
// are carried out in the order in which they came, so that a cancel does not
// overtake the schedule before it; any others at once.
type calls struct {
	last    map[string]*call // the newest of those about a timer
	ready   []*call          // wait for nothing but a free place
	waiting int              // those in ready, and those that wait for others
	running int              // at most maxRunning
	bytes   int              // of all of them
}

// full reports whether there is no room for one more of this size. The first
// always has room.
func (q *calls) full(size int) bool {
	return q.waiting >= maxWaiting || (q.waiting+q.running > 0 && q.bytes+size > maxCallBytes)
}

func (q *calls) idle() bool { return q.waiting+q.running == 0 }

func (q *calls) add(c *call) {
	q.waiting++
	q.bytes += c.size
	for _, key := range c.keys {
		before := q.last[key]
		if before == c { // named twice
			continue
		}
		if before != nil {
			before.blocks = append(before.blocks, c)
			c.blockers++
		}
		q.last[key] = c
	}
	if c.blockers == 0 {
		q.ready = append(q.ready, c)
	}
}

// begin takes the next call to carry out; nil when there is none, or no place
// for it.
func (q *calls) begin() *call {
	if len(q.ready) == 0 || q.running == maxRunning {
		return nil
	}
	c := q.ready[0]
	q.ready[0] = nil
	if q.ready = q.ready[1:]; len(q.ready) == 0 {
		q.ready = nil
	}
	q.waiting--
	q.running++
	return c
}

// end forgets a call that has begun, and lets those go on that waited for it.
func (q *calls) end(c *call) {
	q.running--
	q.bytes -= c.size
	for _, key := range c.keys {
		if q.last[key] == c {
			delete(q.last, key)
		}
	}
	for _, later := range c.blocks {
		if later.blockers--; later.blockers == 0 {
			q.ready = append(q.ready, later)
		}
	}
}

// timersOf is how many timers a request is about.
func timersOf(request messages.Request) int {
	switch r := request.(type) {
	case *messages.ScheduleBatch:
		return len(r.GetTimers())
	case *messages.Cancel:
		return len(r.GetIds())
	case *messages.PutRecurring:
		return len(r.GetSchedules())
	case *messages.Publish:
		return len(r.GetMessages())
	default:
		return 1
	}
}

// keysOf names the timers, recurring schedules or queues that a request is
// about. One that reads a whole topic is about none.
func keysOf(request messages.Request) []string {
	switch r := request.(type) {
	case *messages.Schedule:
		if r.GetId() == "" { // it gets a new one
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

// recurring is no topic: none begins with NUL.
const recurring = "\x00recurring"

func key(topic string, ids ...string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = topic + "\x00" + id
	}
	return keys
}
