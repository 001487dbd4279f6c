package actortest

import "github.com/asynkron/protoactor-go/actor"

// CrashNow makes an actor with [CrashOnDemand] panic in its Receive.
type CrashNow struct{}

// CrashOnDemand is a context decorator that makes actors panic on [CrashNow].
func CrashOnDemand(next actor.ContextDecoratorFunc) actor.ContextDecoratorFunc {
	return func(c actor.Context) actor.Context { return crashing{next(c)} }
}

type crashing struct{ actor.Context }

func (c crashing) Message() any {
	message := c.Context.Message()
	if _, ok := message.(CrashNow); ok {
		panic("crashed on demand")
	}
	return message
}
