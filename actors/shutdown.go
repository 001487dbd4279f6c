package actors

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/wakebell/wakebell/messages"
)

// The steps of a shutdown that come after, or beside, the handlers' timeout.
const (
	// gatewayGrace is how long the gateway may take to finish what it has. The
	// handlers' timeout runs meanwhile.
	gatewayGrace = time.Second
	// drainGrace is how long handlers may take to return once their contexts
	// have ended with ErrDraining.
	drainGrace = time.Second
	// drainFlush is how long the last settlements may take after that, and how
	// long an answer is waited for that may hold leases.
	drainFlush = 2 * time.Second
	// hookGrace is how long the hook of dead letters has after a drain for what
	// died in it, and again once its context has ended.
	hookGrace = 500 * time.Millisecond
	// closeLimit is how long turns at gates may take to be given back.
	closeLimit = time.Second
	// stopIO is how long calls of the source may take to return.
	stopIO = time.Second

	// StopGrace is how much longer than its timeout a Shutdown takes at most,
	// whatever the source, the handlers and the hook do.
	StopGrace = gatewayGrace + drainGrace + drainFlush + 2*hookGrace + closeLimit + stopIO

	// stopActors is how long Stop waits for the actors, which do not block.
	stopActors = 10 * time.Second
)

// Shutdown drains the runtime with a timeout for the handlers that run, closes
// its gates and stops it. It takes at most StopGrace longer than the timeout. A
// runtime that holds no leases and has nothing to settle does not use the
// timeout, even if the source does not answer.
func (rt *Runtime) Shutdown(timeout time.Duration) (*messages.Drained, error) {
	deadline := time.Now().Add(timeout + StopGrace)
	drained, err := rt.Drain(timeout)
	rt.closeGates()
	return drained, errors.Join(err, rt.stopWithin(time.Until(deadline)))
}

// Stop stops the actors, leaves first. Contexts of handlers that still run
// end with ErrStopped; their timers come back when their leases end. When it
// returns nothing of ours speaks to the source any more, unless a call hangs,
// which is logged.
func (rt *Runtime) Stop() error { return rt.stopWithin(stopActors) }

// stopWithin is Stop that waits for the actors for a limited time.
func (rt *Runtime) stopWithin(limit time.Duration) error {
	defer extensionOf(rt.system).remove(rt)
	stopped := make(chan error, 1)
	go func() { stopped <- rt.system.Root.StopFuture(rt.pid).Wait() }() // which ends after 10 s
	var err error
	select {
	case err = <-stopped:
	case <-time.After(limit):
		err = errors.New("the actors do not stop")
	}
	if err != nil {
		rt.endGates(0)
		return fmt.Errorf("stop %q: %w", rt.name, err)
	}
	rt.tail.stop()
	rt.dead.end(time.Now(), ErrStopped)
	until := time.Now().Add(stopIO)
	if !waitFor(rt.env.IO, stopIO) {
		rt.env.Logger.Warn("stopped while a call of the source hangs", "waited", stopIO)
	}
	rt.endGates(time.Until(until))
	return nil
}

// waitFor reports whether all of a group have returned in time.
func waitFor(group *sync.WaitGroup, limit time.Duration) bool {
	idle := make(chan struct{})
	go func() { group.Wait(); close(idle) }()
	select {
	case <-idle:
		return true
	case <-time.After(limit):
		return false
	}
}
