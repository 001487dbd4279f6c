package actors

import (
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/internal/rarely"
)

// Env is what the actors of a runtime share.
type Env struct {
	Logger *slog.Logger
	// Random yields numbers in [0, 1) for jitter.
	Random func() float64
	// IO counts the goroutines that call the source, so that Stop can wait for them.
	IO *sync.WaitGroup
	// Lines limits the log lines about timers, which peers can cause.
	Lines *rarely.Limiter
	// Options are added to the props of every actor; tests use them.
	Options []actor.PropsOption
}

// Props returns the props of an actor whose crashes are logged with their stack.
// produce gets the number of the incarnation, counted from 1: messages that an
// actor sends to itself carry it, because they outlive a restart.
func (e *Env) Props(produce func(incarnation uint64) actor.Actor) *actor.Props {
	incarnation := uint64(0)
	options := append([]actor.PropsOption{actor.WithReceiverMiddleware(logCrashes(e.Logger))}, e.Options...)
	return actor.PropsFromProducer(func() actor.Actor {
		incarnation++
		return produce(incarnation)
	}, options...)
}
