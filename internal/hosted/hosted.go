// Package hosted has the arguments of functions that are for packages of this module only:
// gate.Hosted, reminder.Hosted and wakebell.ToSink. They are exported, because the packages
// that call them are others, and users cannot call them, because they cannot name the types
// of their arguments.
package hosted

import (
	actorgates "github.com/wakebell/wakebell/actors/gates"
	"github.com/wakebell/wakebell/actors/poller"
)

// Gates is the System whose actor the gates use.
type Gates struct {
	Running func() *actorgates.Gates // the actor's handle; nil while it does not run
}

// Sink receives leases and their ends by function calls, which cost less than an actor.
type Sink struct{ poller.LeaseSink }
