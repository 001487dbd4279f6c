// Package together makes one call for all that come while another is on its way, as a group
// commit does: a call that is alone does not wait, and many at once cost few round trips.
package together

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Calls are the calls for each of some keys, one at a time for a key. The zero value is ready.
type Calls[K comparable, In, Out any] struct {
	mu    sync.Mutex
	lines map[K]*line[In, Out] // of keys with a call on its way
}

// line is what there is for a key.
type line[In, Out any] struct{ next *call[In, Out] } // that waits for the one on its way; nil: none

// call is one call with the inputs of all that wait for it.
type call[In, Out any] struct {
	ctx     context.Context //nolint:containedctx // of the call, which no caller owns
	end     context.CancelFunc
	run     func(context.Context, []In) ([]Out, error)
	inputs  []In
	waiting int       // callers that have not given up
	latest  time.Time // the last of their deadlines, as long as all have one
	forever bool      // one has none
	ended   chan struct{}
	outs    []Out // after ended: one for each input, unless err is not nil
	err     error
}

// Do returns what run answers to an input. While a call for the key is on its way, the inputs
// that come wait for the next one, which is made for all of them: so an error of run is that of
// all. It is the run of the first of them, and answers in the order of the inputs; its context
// has the values of that caller's, and the last of all deadlines. A caller whose context ends
// gives up alone; with the last one the context of run ends, and that caller has the error of
// run, which says what it waited for.
func (c *Calls[K, In, Out]) Do(ctx context.Context, key K, input In, run func(context.Context, []In) ([]Out, error)) (out Out, err error) {
	this, place := c.join(ctx, key, input, run)
	select {
	case <-this.ended:
	case <-ctx.Done():
		if !c.leave(this) {
			return out, ctx.Err()
		}
		if <-this.ended; this.err != nil && !errors.Is(this.err, ctx.Err()) {
			return out, fmt.Errorf("%w: %w", ctx.Err(), this.err)
		}
	}
	if this.err != nil {
		return out, this.err
	}
	return this.outs[place], nil
}

// join adds an input to the next call for a key, and begins it if none is on its way.
func (c *Calls[K, In, Out]) join(ctx context.Context, key K, input In, run func(context.Context, []In) ([]Out, error)) (*call[In, Out], int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[key]
	busy := l != nil
	if !busy {
		l = new(line[In, Out])
		if c.lines == nil {
			c.lines = map[K]*line[In, Out]{}
		}
		c.lines[key] = l
	}
	if l.next == nil {
		l.next = &call[In, Out]{run: run, ended: make(chan struct{})}
		l.next.ctx, l.next.end = context.WithCancel(context.WithoutCancel(ctx))
	}
	this := l.next
	this.inputs, this.waiting = append(this.inputs, input), this.waiting+1
	deadline, bounded := ctx.Deadline()
	if this.forever = this.forever || !bounded; deadline.After(this.latest) {
		this.latest = deadline
	}
	if !busy {
		l.next = nil
		go c.make(key, l, this)
	}
	return this, len(this.inputs) - 1
}

// leave has a caller give up, and ends the context of the call if it is the last one.
func (c *Calls[K, In, Out]) leave(this *call[In, Out]) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	this.waiting--
	if last = this.waiting == 0; last {
		this.end()
	}
	return last
}

// make makes calls for a key until none waits.
func (c *Calls[K, In, Out]) make(key K, l *line[In, Out], this *call[In, Out]) {
	for this != nil {
		this.carryOut()
		c.mu.Lock()
		if this, l.next = l.next, nil; this == nil {
			delete(c.lines, key)
		}
		c.mu.Unlock()
	}
}

func (c *call[In, Out]) carryOut() {
	defer c.end()
	defer close(c.ended)
	defer func() {
		if reason := recover(); reason != nil {
			c.err = fmt.Errorf("the call for all has panicked: %v", reason)
		}
	}()
	ctx := c.ctx
	if !c.forever {
		bounded, end := context.WithDeadline(ctx, c.latest)
		defer end()
		ctx = bounded
	}
	c.outs, c.err = c.run(ctx, c.inputs)
}
