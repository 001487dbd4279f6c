package gateway

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/principal"
	"github.com/wakebell/wakebell/messages"
)

const (
	// MaxRunning bounds the requests that the gateway carries out at once.
	// More gain nothing: they would wait for a connection.
	MaxRunning = 64
	// MaxWaiting bounds the requests that wait for their turn. Shares are bounded by
	// room.
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
	Ctx      context.Context
	Cancel   context.CancelFunc
	silence  func() bool // keeps the end of ctx from answering
	answered atomic.Bool

	// keys are the timers that it is about. It waits for blockers earlier calls
	// about them; blocks are the later ones that wait for it.
	Keys     []string
	blockers int
	blocks   []*Call
}

// Calls are the requests that the gateway has taken. Calls about the same timer
// are carried out in the order in which they came, so that a cancel does not
// overtake the schedule before it; any others at once.
type Calls struct {
	Last    map[string]*Call // the newest of those about a timer
	ready   []*Call          // wait for nothing but a free place
	Waiting int              // those in ready, and those that wait for others
	running int              // at most MaxRunning
	room    room
}

// NewCalls has room for all.
func NewCalls() Calls { return Calls{Last: map[string]*Call{}, room: newRoom()} }

// Full reports why there is no room for one more call; empty: there is. The first
// of all always has room.
func (q *Calls) Full(of principal.Party, size int) string {
	if q.idle() {
		return ""
	}
	return q.room.full(of, size)
}

func (q *Calls) idle() bool { return q.Waiting+q.running == 0 }

// Add queues a call behind those about the same keys.
func (q *Calls) Add(c *Call) {
	q.Waiting++
	q.room.add(c.Of, 1, c.Size)
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
		q.ready = append(q.ready, c)
	}
}

// Begin takes the next call to carry out; nil when there is none, or no place
// for it.
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
	q.room.add(c.Of, -1, 0)
	q.running++
	return c
}

// End forgets a call that has begun, and lets those go on that waited for it.
func (q *Calls) End(c *Call) {
	q.running--
	q.room.add(c.Of, 0, -c.Size)
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

// timersOf is how many timers a request is about.
func timersOf(request messages.Request) int {
	switch r := request.(type) {
	case *messages.ScheduleBatchRequest:
		return len(r.GetTimers())
	case *messages.CancelRequest:
		return len(r.GetIds())
	case *messages.PutRecurringRequest:
		return len(r.GetSchedules())
	case *messages.PublishRequest:
		return len(r.GetMessages())
	default:
		return 1
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
