package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gates"
)

// gatesName is the name of a runtime's gates actor, under the supervisor.
const gatesName = "gates"

// gatesPID requests the PID of the gates actor, which the supervisor has spawned
// by the time it answers.
type gatesPID struct{}

// Gates gives access to the runtime's gates actor; nil: it has none. To be called
// by one goroutine, after Start.
func (rt *Runtime) Gates() (*gates.Gates, error) {
	if rt.gates == nil || rt.gates.PID() != nil {
		return rt.gates, nil
	}
	answer, err := rt.system.Root.RequestFuture(rt.pid, gatesPID{}, supervisorTimeout).Result()
	if err != nil {
		return nil, fmt.Errorf("ask the supervisor %q for its gates: %w", rt.name, err)
	}
	pid, ok := answer.(*actor.PID)
	if !ok {
		return nil, fmt.Errorf("ask the supervisor %q for its gates: unexpected answer %T", rt.name, answer)
	}
	rt.gates.Attach(pid)
	return rt.gates, nil
}

// closeGates ends all turns and waits at gates, and releases what is held, as far
// as that is possible in time. It comes before Stop.
func (rt *Runtime) closeGates() {
	if rt.gates != nil {
		rt.gates.ReleaseAll()
	}
}

// endGates follows when the actor has stopped; it waits for calls of the store
// for a limited time.
func (rt *Runtime) endGates(limit time.Duration) {
	if rt.gates != nil {
		rt.gates.AfterStop(limit)
	}
}
