package poller

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/feed"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/internal/loglimit"
)

// Topic configures one poller.
type Topic struct {
	Source Source
	Handle Handle
	Target *Target // where Delivery.Forward sends; nil: nowhere

	// Order reads what operators ordered of the topic; nil: nobody can. It is
	// read at the start, after hints, and now and then.
	ReadOverride func(context.Context) (ClusterOverride, error)
	// OrderEvery is how often it is read that no hint spoke of; 0: 5 min.
	OverrideInterval time.Duration

	Settings // in force until they are tuned
	Paused   bool

	DiscardRejects bool // rejected timers are removed instead of buried

	// RetryOnLeaseExpiry leaves what failed to its lease instead of settling
	// it with a backoff.
	RetryOnLeaseExpiry bool

	// FinalErrors settles what failed with exchange.Fail: it is not tried again.
	// Only the source of a queue knows that.
	FinalErrors bool
	// FinalCrashes does so with what panicked too, where no lease brings it back.
	FinalCrashes bool
}

// Settings are what of a topic can be changed while it runs. All but
// MaxLeaseAge must be above zero.
type Settings struct {
	MaxConcurrent int           // handlers running at once
	LeaseTTL      time.Duration // extended at a third of it while a handler runs
	MaxLeaseAge   time.Duration // ends a handler that runs longer; 0: off

	// The idle ramp: from PollingInterval, doubled per look in vain, up to
	// MaxPollingInterval.
	PollingInterval, MaxPollingInterval time.Duration

	Retry Retry
}

// Shared is what all incarnations of a poller share.
type Shared struct {
	Topic
	Logger     *slog.Logger
	State      atomic.Pointer[State]
	Counters   counters
	clockWatch *ClockWatch     // shared by the topics of a shard
	Feed       feed.Feed       // of events
	deadHook   *DeadLetterHook // told of what dies
	logLimit   *loglimit.Limiter
	random     func() float64
	io         *sync.WaitGroup     // the goroutines that speak to the source
	props      []actor.PropsOption // for tests
}

// State is what is in force; it outlives a poller's crash.
type State struct {
	Settings Settings
	Paused   bool
}

// NewShared has the state of a topic that outlives the incarnations of its poller.
func NewShared(t Topic, env *host.Env, dead *DeadLetterHook, watch *ClockWatch, watchable bool) *Shared {
	c := &Shared{
		Topic: t, Logger: env.Logger.With("topic", t.Source.Name()), random: env.Random, props: env.Options, io: env.IO,
		deadHook: dead, logLimit: env.LogLimit, clockWatch: watch,
	}
	c.Feed.Topic = t.Source.Name()
	if watchable {
		c.Feed.KeepEarly()
	}
	c.State.Store(&State{Settings: t.Settings, Paused: t.Paused})
	return c
}

// Change changes what is in force; the supervisor alone does.
func (c *Shared) Change(do func(*State)) {
	state := *c.State.Load()
	do(&state)
	c.State.Store(&state)
}

// Retry says how failures of a handler are retried.
type Retry struct {
	// Initial is the delay after the first failure; it doubles with each
	// further one, up to Max. Each is spread by ±20 %, so that timers that
	// failed together do not come back together.
	Initial, Max time.Duration

	// MaxFailures is the failure that makes a dead letter; at least 1.
	MaxFailures int
}

// delay is how long to wait after the failure that follows failures earlier
// ones. random is in [0, 1).
func (r Retry) delay(failures int, random float64) time.Duration {
	return host.Jitter(host.ExponentialDelay(r.Initial, failures, r.Max), 0.2, random)
}
