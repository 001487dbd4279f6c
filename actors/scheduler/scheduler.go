// Package scheduler has the actor that fires recurring schedules. It owns the engine
// and its pace. It makes no compatibility promise.
package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Schedule is the engine that fires recurring schedules. One is created for each
// incarnation of the actor, and used by one goroutine at a time.
type Schedule interface {
	// Turn fires what is due and returns how long nothing will be due. After an
	// error it is called again.
	Turn(ctx context.Context) (wait time.Duration, err error)
	// Hint makes the next Turn look for changes.
	Hint()
}

// Config configures the scheduler.
type Config struct {
	// Schedule returns a new engine.
	Schedule func() Schedule
	// Listen calls deliver whenever a schedule was changed, until ctx ends or
	// listening is refused; nil: changes are found by polling.
	Listen func(ctx context.Context, deliver func()) error
}

// name is the name of the actor below the supervisor.
const name = "beat"

// NameOf returns the name of the actor of a part, from 0.
func NameOf(part int) string {
	if part == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(part)
}

const (
	// firstRetry and maxRetry bound the backoff after a failed step; while Redis
	// is unavailable MaxProbeDelay is the upper bound.
	firstRetry = 100 * time.Millisecond
	maxRetry   = 5 * time.Second
)

// scheduler is the actor that fires recurring schedules. Its Receive never
// blocks: a step runs in a goroutine, one at a time.
type scheduler struct {
	config      Config
	env         *host.Env
	log         *slog.Logger
	incarnation uint64 // messages of earlier incarnations are dropped

	self   *actor.PID
	root   *actor.RootContext
	ctx    context.Context // of this incarnation
	cancel context.CancelFunc

	schedule Schedule
	stepping bool // a step is running
	hinted   bool // a schedule was changed since the step began
	timer    *time.Timer
	failures int // consecutive failed steps
}

type (
	stepDue         struct{ incarnation uint64 } // a step is due
	scheduleChanged struct{ incarnation uint64 } // a schedule was changed
	stepDone        struct {
		incarnation uint64
		wait        time.Duration
		err         error
	}
)

// Props returns the props of the actor.
func Props(env *host.Env, config Config) *actor.Props {
	return env.Props(func(incarnation uint64) actor.Actor {
		return &scheduler{config: config, env: env, log: env.Logger.With("actor", name), incarnation: incarnation}
	})
}

func (b *scheduler) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		b.start(c)
	case *actor.Stopping, *actor.Restarting:
		b.stop()
	case stepDue:
		if m.incarnation == b.incarnation {
			b.step()
		}
	case scheduleChanged:
		if m.incarnation == b.incarnation {
			b.hinted = true
			b.step()
		}
	case stepDone:
		if m.incarnation == b.incarnation {
			b.stepDone(m)
		}
	}
}

func (b *scheduler) start(c actor.Context) {
	b.self, b.root = c.Self(), c.ActorSystem().Root
	//nolint:forbidigo // the context lasts as long as the incarnation, which
	// stop ends
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.schedule = b.config.Schedule()
	b.listen()
	b.step()
}

// stop ends the running step. What it has fired stays fired: firing is atomic.
func (b *scheduler) stop() {
	if b.cancel != nil {
		b.cancel()
	}
	if b.timer != nil {
		b.timer.Stop()
	}
}

// listen passes on that a schedule was changed.
func (b *scheduler) listen() {
	if b.config.Listen == nil {
		return
	}
	ctx, root, self, hint, log, listen := b.ctx, b.root, b.self, scheduleChanged{b.incarnation}, b.log, b.config.Listen
	deliver := func() {
		if ctx.Err() == nil { // otherwise no incarnation would read it
			root.Send(self, hint)
		}
	}
	b.env.IO.Go(func() {
		host.KeepSubscribed(ctx, "listening for changed schedules",
			func() error { return listen(ctx, deliver) },
			func(err error) {
				log.Warn("hints refused; changed schedules are found by polling", "err", err, "duration", host.ResubscribeDelay)
			})
	})
}

// step starts a step, unless one is running.
func (b *scheduler) step() {
	if b.stepping || b.ctx.Err() != nil {
		return
	}
	if b.timer != nil {
		b.timer.Stop()
	}
	b.stepping = true
	if b.hinted {
		b.hinted = false
		b.schedule.Hint()
	}
	ctx, root, self, incarnation, schedule := b.ctx, b.root, b.self, b.incarnation, b.schedule
	b.env.IO.Go(func() {
		wait, err := host.Recovered("a step of the scheduler", func() (time.Duration, error) { return schedule.Turn(ctx) })
		if ctx.Err() == nil {
			root.Send(self, stepDone{incarnation, wait, err})
		}
	})
}

func (b *scheduler) stepDone(m stepDone) {
	b.stepping = false
	wait := m.wait
	switch {
	case m.err != nil:
		wait = b.failed(m.err)
	case b.failures > 0:
		b.log.Info("recurring schedules fire again")
		b.failures = 0
		fallthrough
	case b.hinted:
		wait = 0
	}
	root, self, next := b.root, b.self, stepDue{b.incarnation}
	b.timer = time.AfterFunc(wait, func() { root.Send(self, next) })
}

// failed returns the delay until the next attempt, and logs the first failure of
// several. Unless the server was unavailable, the state of the engine may be
// wrong: it is replaced.
func (b *scheduler) failed(err error) time.Duration {
	if b.failures == 0 {
		b.log.Error("recurring schedules do not fire; retrying", "err", err)
	}
	limit := host.MaxProbeDelay
	if !errors.Is(err, exchange.ErrUnavailable) {
		b.schedule, limit = b.config.Schedule(), maxRetry
	}
	delay := backoff.Jitter(backoff.Exponential(firstRetry, b.failures, limit), 0.2, b.env.Random())
	b.failures++
	return delay
}
