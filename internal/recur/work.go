package recur

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// ErrTooMuch is wrapped by errors about a rule whose instants need more steps to
// compute than are allowed. A step is a day, a period or an instant that is checked, so
// the bound does not depend on the machine.
var ErrTooMuch = errors.New("takes too many steps")

const (
	// MaxSearch bounds the steps from one instant of a rule to the next.
	MaxSearch = 20_000
	// planSteps bounds one decision about an entry.
	planSteps = 500_000
	// listSteps bounds one list of instants.
	listSteps = 5_000_000
	// askEvery is the number of steps between two checks of the context.
	askEvery = 1024
)

// work counts the steps of a rule. After the first error the rule returns no more
// instants.
type work struct {
	ctx   context.Context // of the call that the entry was read for
	left  int             // remaining steps of the operation
	reach int             // remaining steps of the search for one instant
	ticks int
	err   error
}

func newWork() *work { return &work{left: math.MaxInt} }

// begin starts an operation with a number of steps.
func (w *work) begin(steps int) { w.left, w.err = steps, nil }

// search starts the search for one instant.
func (w *work) search() { w.reach = MaxSearch }

// step reports whether another step is allowed.
func (w *work) step() bool {
	if w.err != nil {
		return false
	}
	w.left--
	w.reach--
	switch {
	case w.reach < 0:
		w.err = fmt.Errorf("%w: no instant found in %d", ErrTooMuch, MaxSearch)
	case w.left < 0:
		w.err = fmt.Errorf("%w: the instants asked for", ErrTooMuch)
	}
	if w.ticks++; w.ticks%askEvery == 0 && w.ctx != nil && w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
	}
	return w.err == nil
}
