// Package together makes one call for all that come while another is on its way, as a group
// commit does: a call that is alone does not wait, and many at once cost few round trips.
package together

import (
	"context"
	"errors"
	"sync"
)

// errPanicked is the error of those whose call has panicked.
var errPanicked = errors.New("the call for all has panicked")

// Calls are the calls for each of some keys, one at a time for a key. The zero value is ready.
type Calls[K comparable, In, Out any] struct {
	mu    sync.Mutex
	lines map[K]*line[In, Out] // of keys with a call on its way
}

// line is what there is for a key.
type line[In, Out any] struct {
	now, next *call[In, Out] // next may be nil
}

// call is one call with the inputs of all that wait for it.
type call[In, Out any] struct {
	inputs []In
	ended  chan struct{}
	outs   []Out // after ended: one for each input, unless err is not nil
	err    error
}

// Do returns what run answers to an input. While a call for the key is on its way, the inputs
// that come wait for the next one, which the first of them makes, with its context, for all: so
// an error of run is that of all of them. Run answers in the order of the inputs.
func (c *Calls[K, In, Out]) Do(ctx context.Context, key K, input In, run func(context.Context, []In) ([]Out, error)) (out Out, err error) {
	c.mu.Lock()
	l := c.lines[key]
	if l != nil && l.next != nil {
		of, place := l.next, len(l.next.inputs)
		of.inputs = append(of.inputs, input)
		c.mu.Unlock()
		<-of.ended // the contexts of two calls end that
		return of.answer(place)
	}
	this := &call[In, Out]{inputs: []In{input}, ended: make(chan struct{}), err: errPanicked}
	if l == nil {
		l = &line[In, Out]{}
		if c.lines == nil {
			c.lines = map[K]*line[In, Out]{}
		}
		c.lines[key] = l
	} else {
		before := l.now
		l.next = this
		c.mu.Unlock()
		<-before.ended
		c.mu.Lock()
		l.next = nil
	}
	l.now = this
	c.mu.Unlock()
	defer c.end(key, l)
	this.outs, this.err = run(ctx, this.inputs)
	return this.answer(0)
}

// end lets those go on that wait for the call on its way, and the next call.
func (c *Calls[K, In, Out]) end(key K, l *line[In, Out]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.next == nil {
		delete(c.lines, key)
	}
	close(l.now.ended)
}

func (c *call[In, Out]) answer(place int) (out Out, err error) {
	if c.err != nil {
		return out, c.err
	}
	return c.outs[place], nil
}
