package durable

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/wakebell/wakebell/internal/journal"
)

// output sends the replies of a connection when what was executed before them is
// stored. Writing to it never waits.
type output struct {
	log  *journal.Log
	conn net.Conn
	gone atomic.Bool // nothing can be sent any more

	mu        sync.Mutex
	ready     *sync.Cond
	executing bool
	reply     []byte // of the command that is executed
	waiting   []part
	finished  bool // what does not wait is sent, and then no more
}

// part is a part of the output that waits for a record.
type part struct {
	bytes []byte
	seq   uint64
}

func newOutput(log *journal.Log, conn net.Conn) *output {
	o := &output{log: log, conn: conn}
	o.ready = sync.NewCond(&o.mu)
	return o
}

// Write takes a part of a reply, or a message of a subscription.
func (o *output) Write(b []byte) (int, error) {
	seq, whole := o.log.Seq()
	if !whole {
		seq = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.executing {
		o.reply = append(o.reply, b...)
		return len(b), nil
	}
	o.add(append([]byte(nil), b...), seq)
	return len(b), nil
}

func (o *output) add(b []byte, seq uint64) {
	if len(b) == 0 || o.finished {
		return
	}
	o.waiting = append(o.waiting, part{bytes: b, seq: seq})
	o.ready.Signal()
}

// begin collects a reply until end.
func (o *output) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.executing = true
}

// replace replaces the reply.
func (o *output) replace(reply string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reply = append(o.reply[:0], reply...)
}

// end sends the reply when the record seq is stored.
func (o *output) end(seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.executing = false
	o.add(o.reply, seq)
	o.reply = nil
}

// finish ends the output after what can be sent.
func (o *output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	o.ready.Signal()
}

// close ends the output.
func (o *output) close() {
	o.gone.Store(true)
	o.finish()
	o.log.Wake()
}

// send sends the parts in order.
func (o *output) send() {
	var bytes []byte
	for {
		o.mu.Lock()
		for len(o.waiting) == 0 && !o.finished {
			o.ready.Wait()
		}
		parts := o.waiting
		o.waiting = nil
		o.mu.Unlock()
		if len(parts) == 0 {
			return
		}
		for len(parts) > 0 {
			if !o.log.Wait(parts[0].seq, o.gone.Load) {
				o.close()
				_ = o.conn.Close() // the client must not take the reply for lost in another way
				return
			}
			bytes = bytes[:0]
			seq := parts[0].seq
			for len(parts) > 0 && parts[0].seq <= seq {
				bytes = append(bytes, parts[0].bytes...)
				parts = parts[1:]
			}
			if _, err := o.conn.Write(bytes); err != nil {
				o.close()
				return
			}
		}
	}
}
