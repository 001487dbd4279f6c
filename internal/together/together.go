// Package together lets functions that each wrap a call of their own share one call,
// such as middleware around a handler that takes many timers at once.
package together

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// GatherTime is for how long a call waits for the functions that have not asked for it,
// from the first that has. A function that waits for another one of the same call, for
// instance with a semaphore, gets a later call.
const GatherTime = 50 * time.Millisecond

// ErrEnded is the error of a next that is called after its function has returned.
var ErrEnded = errors.New("the call that this function wraps has ended")

// Panic is the value with which Run panics, if the call did, and the error of a function
// that did.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// exited is the Value for a goroutine that was ended by runtime.Goexit.
type exited struct{}

func (exited) String() string { return "handler ended its goroutine" }

// Run calls each with every index below n, in a goroutine of its own, and returns their
// errors. Once they have called next with an argument, or returned, it runs call in the
// goroutine of the caller with the arguments of those that have; each next returns its
// error. What comes later, because a function calls next again or its argument was not
// there within GatherTime, is part of another call. The arguments of a call are in the
// order of the indexes.
//
// If call panics, each next of it panics with the same value, and Run panics with a *Panic
// after all functions have returned. If call ends its goroutine, so do the functions. If a
// function panics by itself, its error is a *Panic; the others do not notice.
func Run[T any](n int, each func(i int, next func(T) error) error, call func([]T) []error) []error {
	r := &run[T]{left: n, round: newRound[T](), wake: make(chan struct{}, 1)}
	errs := make([]error, n)
	for i := range n {
		go r.wrap(&member{index: i}, &errs[i], func(next func(T) error) error { return each(i, next) })
	}
	for done := n == 0; !done; {
		<-r.wake
		var round *round[T]
		if round, done = r.take(); round != nil {
			round.run(call)
		}
	}
	if r.crash != nil {
		panic(r.crash)
	}
	return errs
}

// run is the state of a Run; mu guards all of it.
type run[T any] struct {
	mu    sync.Mutex
	left  int       // functions that have not returned
	round *round[T] // that gathers arguments
	crash *Panic    // the first of a call
	wake  chan struct{}
}

// member is the state of one function.
type member struct {
	index    int
	returned bool   // guarded by the mu of its run
	passed   *Panic // of the call, which its next has passed on
}

// round is one call.
type round[T any] struct {
	asked []*request[T]
	due   bool // it waits no longer
	done  chan struct{}
	crash *Panic
}

// request is a next that waits for its call.
type request[T any] struct {
	index int
	arg   T
	err   error
}

func newRound[T any]() *round[T] { return &round[T]{done: make(chan struct{})} }

// wrap runs a function in its goroutine, and stores its error.
func (r *run[T]) wrap(m *member, err *error, do func(next func(T) error) error) {
	returned := false
	defer func() {
		if !returned {
			if value := recover(); m.passed == nil {
				*err = crashOf(value)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		m.returned = true
		r.left--
		if !returned && r.crash == nil {
			r.crash = m.passed
		}
		r.look()
	}()
	*err = do(func(arg T) error { return r.next(m, arg) })
	returned = true
}

func crashOf(value any) *Panic {
	if value == nil {
		value = exited{}
	}
	return &Panic{value, debug.Stack()}
}

// next adds an argument to the round, and waits for its call.
func (r *run[T]) next(m *member, arg T) error {
	r.mu.Lock()
	if m.returned {
		r.mu.Unlock()
		return ErrEnded
	}
	round, own := r.round, &request[T]{index: m.index, arg: arg}
	if round.asked = append(round.asked, own); len(round.asked) == 1 && r.left > 1 {
		timer := time.AfterFunc(GatherTime, func() { r.hurry(round) })
		defer timer.Stop()
	}
	r.look()
	r.mu.Unlock()
	<-round.done
	if round.crash == nil {
		return own.err
	}
	m.passed = round.crash
	if _, ended := round.crash.Value.(exited); ended {
		runtime.Goexit()
	}
	panic(round.crash.Value)
}

// hurry ends the wait of a round.
func (r *run[T]) hurry(of *round[T]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of.due = true
	r.look()
}

// complete reports whether the round has its arguments. mu is held.
func (r *run[T]) complete() bool {
	n := len(r.round.asked)
	return n > 0 && (n >= r.left || r.round.due)
}

// look wakes Run if there is something to do. mu is held.
func (r *run[T]) look() {
	if r.left > 0 && !r.complete() {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default: // it will look
	}
}

// take takes the round if it is complete; done says that all functions have returned.
func (r *run[T]) take() (taken *round[T], done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.complete() {
		taken, r.round = r.round, newRound[T]()
	}
	return taken, r.left == 0
}

// run makes the call of a round.
func (o *round[T]) run(call func([]T) []error) {
	returned := false
	defer func() {
		if !returned {
			o.crash = crashOf(recover())
		}
		close(o.done)
	}()
	slices.SortStableFunc(o.asked, func(a, b *request[T]) int { return a.index - b.index })
	args := make([]T, len(o.asked))
	for i, own := range o.asked {
		args[i] = own.arg
	}
	for i, err := range call(args) {
		o.asked[i].err = err
	}
	returned = true
}
