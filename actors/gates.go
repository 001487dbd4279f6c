package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/gates"
)

// gatesName is the name of a runtime's gates actor, under the supervisor.
const gatesName = "gates"

// whereGates asks the supervisor for its gates actor, which it has spawned by
// the time that it answers.
type gatesPID struct{}

// Gates is the way to the runtime's gates actor; nil: it has none. To be called
// by one goroutine, once the runtime is started.
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

// closeGates ends all turns and waits of the gates, and gives back what is held,
// as far as that is possible in time, for before Stop.
func (rt *Runtime) closeGates() {
	if rt.gates != nil {
		rt.gates.ReleaseAll()
	}
}

// endGates follows when their actor has stopped; it waits for calls of the store
// for a limited time.
func (rt *Runtime) endGates(limit time.Duration) {
	if rt.gates != nil {
		rt.gates.AfterStop(limit)
	}
}
