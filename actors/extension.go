package actors

import (
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// extension holds the runtimes of an ActorSystem.
type extension struct {
	mu       sync.Mutex
	runtimes map[string]*Runtime
}

var (
	extensionID    = extensions.NextExtensionID()
	extensionGuard sync.Mutex
)

func (*extension) ExtensionID() extensions.ExtensionID { return extensionID }

// extensionOf returns the system's extension, registered at first use.
func extensionOf(system *actor.ActorSystem) *extension {
	extensionGuard.Lock()
	defer extensionGuard.Unlock()
	if e, ok := system.Extensions.Get(extensionID).(*extension); ok {
		return e
	}
	e := &extension{runtimes: map[string]*Runtime{}}
	system.Extensions.Register(e)
	return e
}

func (e *extension) add(rt *Runtime) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, taken := e.runtimes[rt.name]; taken {
		return fmt.Errorf("%w: %q", ErrNameTaken, rt.name)
	}
	e.runtimes[rt.name] = rt
	return nil
}

// Owner returns the Owner of the runtime of this name, while it runs.
func Owner(system *actor.ActorSystem, name string) (owner any, running bool) {
	e := extensionOf(system)
	e.mu.Lock()
	defer e.mu.Unlock()
	rt, running := e.runtimes[name]
	if !running {
		return nil, false
	}
	return rt.owner, true
}

// Owners returns the Owners of all running runtimes of an ActorSystem by their
// names.
func Owners(system *actor.ActorSystem) map[string]any {
	e := extensionOf(system)
	e.mu.Lock()
	defer e.mu.Unlock()
	owners := make(map[string]any, len(e.runtimes))
	for name, rt := range e.runtimes {
		owners[name] = rt.owner
	}
	return owners
}

func (e *extension) remove(rt *Runtime) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.runtimes, rt.name)
}

// DefaultName is the default name of a runtime.
const DefaultName = "wakebell"

// NoAddress is the address of an ActorSystem that does not listen.
const NoAddress = "nonhost"
