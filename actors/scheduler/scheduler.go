// Package scheduler holds the actor that fires recurring schedules, one turn of
// its engine at a time.
package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/messages/exchange"
)

// Schedule is what the beat fires recurring schedules of. One is made for each
// life of its actor, and used by one goroutine at a time.
type Schedule interface {
	// Turn does what is due and says for how long there will be nothing. After
	// an error it is called again.
	Turn(ctx context.Context) (wait time.Duration, err error)
	// Hint has the next turn look for what has changed.
	Hint()
}

// Config makes a runtime fire recurring schedules.
type Config struct {
	// Schedule makes one that knows nothing yet.
	Schedule func() Schedule
	// Listen calls deliver whenever the schedule was changed, until ctx ends or
	// listening is refused; nil: changes are found by looking.
	Listen func(ctx context.Context, deliver func()) error
}

const (
	// Name is the name of the actor below the supervisor.
	Name = "beat"

	// firstBeatRetry and maxBeatRetry bound the backoff after a turn that failed;
	// while Redis is unavailable MaxProbe is the upper bound.
	firstRetry = 100 * time.Millisecond
	maxRetry   = 5 * time.Second
)

// scheduler is the actor that fires recurring schedules. Its Receive never blocks: a
// turn runs in a goroutine, one at a time.
type scheduler struct {
	config      Config
	env         *host.Env
	log         *slog.Logger
	incarnation uint64 // tells its messages from those of earlier incarnations

	self   *actor.PID
	root   *actor.RootContext
	ctx    context.Context // of this incarnation
	cancel context.CancelFunc

	schedule Schedule
	stepping bool // a turn is under way
	hinted   bool // the schedule was changed since it began
	timer    *time.Timer
	failures int // turns that failed, in a row
}

type (
	stepDue         struct{ incarnation uint64 } // the time of a turn has come
	scheduleChanged struct{ incarnation uint64 } // the schedule was changed
	stepDone        struct {
		incarnation uint64
		wait        time.Duration
		err         error
	}
)

// Props makes the actor.
func Props(env *host.Env, config Config) *actor.Props {
	return env.Props(func(incarnation uint64) actor.Actor {
		return &scheduler{config: config, env: env, log: env.Logger.With("actor", Name), incarnation: incarnation}
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
	//nolint:forbidigo // an incarnation's life is its own: it ends when its actor does
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.schedule = b.config.Schedule()
	b.listen()
	b.step()
}

// stop ends the turn that is under way, which has fired what it has fired: a
// fire is one step.
func (b *scheduler) stop() {
	if b.cancel != nil {
		b.cancel()
	}
	if b.timer != nil {
		b.timer.Stop()
	}
}

// listen passes on that the schedule was changed.
func (b *scheduler) listen() {
	if b.config.Listen == nil {
		return
	}
	ctx, root, self, hint, log, listen := b.ctx, b.root, b.self, scheduleChanged{b.incarnation}, b.log, b.config.Listen
	deliver := func() {
		if ctx.Err() == nil { // else nobody is there to read it
			root.Send(self, hint)
		}
	}
	b.env.IO.Go(func() {
		for ctx.Err() == nil {
			_, err := host.Recovered("listening for changed schedules", func() (struct{}, error) { return struct{}{}, listen(ctx, deliver) })
			if ctx.Err() != nil || errors.Is(err, context.Canceled) {
				return
			}
			log.Warn("no hints: changed schedules are found by looking", "err", err, "again_in", host.ResubscribeDelay)
			select {
			case <-ctx.Done():
			case <-time.After(host.ResubscribeDelay):
			}
		}
	})
}

// turn begins a turn, unless one is under way.
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
		wait, err := host.Recovered("a turn of the beat", func() (time.Duration, error) { return schedule.Turn(ctx) })
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
		b.log.Info("recurring schedules are fired again")
		b.failures = 0
		fallthrough
	case b.hinted:
		wait = 0
	}
	root, self, next := b.root, b.self, stepDue{b.incarnation}
	b.timer = time.AfterFunc(wait, func() { root.Send(self, next) })
}

// failed says when to try again, and logs the first failure of several. What the
// schedule knows may be wrong by now unless the server was not there: it begins
// anew.
func (b *scheduler) failed(err error) time.Duration {
	if b.failures == 0 {
		b.log.Error("recurring schedules are not fired; tried again", "err", err)
	}
	limit := host.MaxProbeDelay
	if !errors.Is(err, exchange.ErrUnavailable) {
		b.schedule, limit = b.config.Schedule(), maxRetry
	}
	delay := host.Jitter(host.ExponentialDelay(firstRetry, b.failures, limit), 0.2, b.env.Random())
	b.failures++
	return delay
}
