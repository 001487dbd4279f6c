package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// The steps of a shutdown after, or concurrent with, the handlers' timeout.
const (
	// gatewayGrace is how long the gateway may take to finish its requests. The
	// handlers' timeout runs meanwhile.
	gatewayGrace = time.Second
	// StopGrace is how much longer than its timeout a Shutdown takes at most,
	// even if the source, the handlers and the hook hang.
	StopGrace = gatewayGrace + poller.DrainGrace + poller.DrainFlush + 2*observe.DeadHookGrace + gates.CloseLimit + host.IOTimeout

	// stopActors is how long Stop waits for the actors, which do not block.
	stopActors = 10 * time.Second
)

// Shutdown drains the runtime with a timeout for running handlers, closes its
// gates and stops it. It takes at most StopGrace longer than the timeout. A
// runtime without leases and outstanding settlements does not use the timeout,
// even if the source does not answer.
func (rt *Runtime) Shutdown(timeout time.Duration) (*messages.Drained, error) {
	deadline := time.Now().Add(timeout + StopGrace)
	drained, err := rt.Drain(timeout)
	rt.closeGates()
	return drained, errors.Join(err, rt.stopWithin(time.Until(deadline)))
}

// Stop stops the actors, leaves first. Contexts of running handlers end with
// ErrStopped; their timers are due again when the leases expire. When it returns,
// no goroutine of the runtime calls the source any more, unless a call hangs,
// which is logged.
func (rt *Runtime) Stop() error { return rt.stopWithin(stopActors) }

// stopWithin is Stop that waits for the actors for a limited time.
func (rt *Runtime) stopWithin(limit time.Duration) error {
	defer extensionOf(rt.system).remove(rt)
	defer rt.env.Dispatcher.Close()
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
	rt.tail.Stop()
	rt.records.Stop()
	rt.deadHook.End(time.Now(), poller.ErrStopped)
	until := time.Now().Add(host.IOTimeout)
	if !host.WaitFor(rt.env.IO, host.IOTimeout) {
		rt.env.Logger.Warn("stopped while a call of the source hangs", "duration", host.IOTimeout)
	}
	rt.endGates(time.Until(until))
	return nil
}
