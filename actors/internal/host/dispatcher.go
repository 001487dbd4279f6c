package host

import (
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Dispatcher runs the mailboxes of a runtime's actors on goroutines that it keeps.
// protoactor-go starts one for each burst of messages, and each grows its stack anew:
// with 1,000 topics of 20 timers a second that is a sixth of a node's CPU time.
type Dispatcher struct {
	mu     sync.Mutex
	idle   []chan func() // of the goroutines that wait; the last one is used first
	closed bool
}

const (
	// maxIdle bounds the goroutines that wait, and so their stacks.
	maxIdle = 64
	// throughput is after how many messages a mailbox lets other goroutines run.
	throughput = 300 // as protoactor-go's own dispatcher
)

// Schedule runs a mailbox until it is empty.
func (d *Dispatcher) Schedule(run func()) {
	d.mu.Lock()
	last := len(d.idle) - 1
	if last < 0 {
		d.mu.Unlock()
		go d.work(run)
		return
	}
	next := d.idle[last]
	d.idle = d.idle[:last]
	d.mu.Unlock()
	next <- run
}

// Throughput implements actor.Dispatcher.
func (d *Dispatcher) Throughput() int { return throughput }

// Close ends the goroutines that wait. Mailboxes still run, each on a goroutine of its own.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, next := range d.idle {
		close(next)
	}
	d.idle = nil
}

func (d *Dispatcher) work(run func()) {
	next := make(chan func(), 1)
	for ok := true; ok; run, ok = <-next {
		run()
		if !d.wait(next) {
			return
		}
	}
}

// wait reports whether the goroutine of next is to wait for another mailbox.
func (d *Dispatcher) wait(next chan func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.idle) == maxIdle {
		return false
	}
	d.idle = append(d.idle, next)
	return true
}

var _ actor.Dispatcher = (*Dispatcher)(nil)
