package poller

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/clockwatch"
	"github.com/wakebell/wakebell/actors/counters"
	"github.com/wakebell/wakebell/actors/deadhook"
	"github.com/wakebell/wakebell/actors/eventfeed"
	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/records"
	"github.com/wakebell/wakebell/internal/backoff"
	"github.com/wakebell/wakebell/internal/loglimit"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Topic configures one poller.
type Topic struct {
	Source Source
	Handle Handle

	// Logical is the topic of which the source is one of several shards: handlers,
	// events and logs show it. Empty: the source is the whole topic.
	Logical string

	// HandleBatch is called instead of Handle if Batch.Size is above 0.
	HandleBatch HandleBatch
	Batch       Batch
	Target      *Target // for Delivery.Forward; nil: leases cannot be forwarded

	// ReadOverride reads the cluster-wide override of the topic's settings; nil:
	// there is none. It is called at the start, after hints, and every
	// OverrideInterval.
	ReadOverride func(context.Context) (ClusterOverride, error)
	// OverrideInterval is about the interval without hints; 0: 5 min, and 1 min while
	// limits by key are in force.
	OverrideInterval time.Duration

	// Settings can be changed while the topic runs. All but MaxLeaseAge and Flow must
	// be above zero.
	Settings // in force until they are changed
	Paused   bool

	DiscardRejects bool // rejected timers are removed instead of dead-lettered

	// RetryOnLeaseExpiry lets the lease of a failed timer expire instead of
	// settling it with a backoff.
	RetryOnLeaseExpiry bool

	// FinalErrors settles failures with exchange.Fail: they are not retried. Only
	// the source of a queue supports that.
	FinalErrors bool
	// FinalCrashes does the same for panics, where leases do not expire.
	FinalCrashes bool

	// Window is for how long after an exchange with timers the next one waits, so
	// that timers share it; see window.go. 0: it does not wait.
	Window time.Duration

	History  wakebelltype.HistoryPolicy // which attempts are recorded
	NoCounts bool                       // nothing is counted in the source
	// RecordStore stores both; nil: that of the runtime.
	RecordStore records.Store

	// Announcer divides the topic among the nodes that compete for it; nil: it is not
	// divided. Node is the name of this one.
	Announcer Announcer
	Node      string
	// Reporter stores the state of this node for operators, see report.go; nil: nothing is
	// stored.
	Reporter Reporter

	Breaker *wakebelltype.Breaker // pauses the topic on this node while handlers fail; nil: none

	Adaptive *wakebelltype.Adaptive // lowers MaxConcurrent as the handler's latency requires; nil: fixed

	// Group shares its bound of concurrency with the topic by Weight; nil: none. Then
	// ShardGroup does with the shards of the topic, while Settings.Shards is above 1.
	// GroupName is how operators know Group.
	Group      *guard.Group
	GroupName  string
	Weight     int
	ShardGroup *guard.Group

	NoPeek     bool // switches the peeks off, see Peeker
	NoPrefetch bool // switches the prefetch off, see prefetch.go
}

// Settings are what of a topic can be changed while it runs. All but
// MaxLeaseAge and Flow must be above zero.
type Settings struct {
	MaxConcurrent int           // handlers running at once
	LeaseTTL      time.Duration // extended at a third of it while a handler runs
	MaxLeaseAge   time.Duration // ends a handler that runs longer; 0: off

	// The idle backoff: from PollingInterval, doubled per empty poll, up to
	// MaxPollingInterval.
	PollingInterval, MaxPollingInterval time.Duration

	// Retry configures how failures of a handler are retried.
	Retry Retry

	// Flow bounds what all nodes claim together; the zero value does not.
	Flow exchange.Flow

	// Shards is the number of sources that share the settings; an override does not
	// change it. 0: 1.
	Shards int
	// Part is the part of the limits over all nodes that the source has.
	Part sharding.Part
}

// Public returns the settings as users set them.
func (s Settings) Public() wakebelltype.Settings {
	return wakebelltype.Settings{
		MaxConcurrent: s.MaxConcurrent, LeaseTTL: s.LeaseTTL, MaxLeaseAge: s.MaxLeaseAge,
		PollingInterval: s.PollingInterval, MaxPollingInterval: s.MaxPollingInterval,
		RetryInitial: s.Retry.Initial, RetryLimit: s.Retry.Max, MaxAttempts: s.Retry.MaxFailures,
		RateLimit: s.Flow.RateLimit, RatePer: s.Flow.RatePer, RateBurst: s.Flow.RateBurst, MaxInFlight: s.Flow.MaxInFlight, PerKey: s.Flow.PerKey,
		KeyRateLimit: s.Flow.KeyRateLimit, KeyRatePer: s.Flow.KeyRatePer, KeyRateBurst: s.Flow.KeyRateBurst,
	}
}

// Shared is what all incarnations of a poller share.
type Shared struct {
	Topic
	Logger *slog.Logger
	// State is the settings in force; it outlives a poller's crash.
	State      atomic.Pointer[State]
	Counters   counters.Topic
	breakerNow atomic.Pointer[breakerStatus] // as last changed; nil: closed
	breaker    *guard.Breaker                // outlives a poller's crash; only the poller uses it; nil: none
	limiter    *guard.Limiter                // outlives a poller's crash; only the poller uses it; nil: none
	share      *guard.Member                 // of Group or ShardGroup; only the poller uses it; nil: none
	clockWatch *clockwatch.Watch             // shared by the topics of a shard
	Feed       eventfeed.Feed                // collects events for watchers
	Records    *records.Topic                // records attempts and counts; nil: nothing
	deadHook   *deadhook.Hook                // called for each dead letter
	logLimit   *loglimit.Limiter
	random     func() float64
	io         *sync.WaitGroup // the goroutines that call the source
	dispatcher *host.Dispatcher
	props      []actor.PropsOption // for tests
}

// State is what is in force; it outlives a poller's crash.
type State struct {
	Settings Settings
	Paused   bool
}

// NewShared returns the state of a topic that outlives the incarnations of its
// poller.
func NewShared(t Topic, env *host.Env, dead *deadhook.Hook, watch *clockwatch.Watch, watchable bool) *Shared {
	c := &Shared{
		Topic: t, Logger: t.logger(env.Logger), random: env.Random, dispatcher: env.Dispatcher, props: env.Options, io: env.IO,
		deadHook: dead, logLimit: env.LogLimit, clockWatch: watch,
	}
	c.Feed.Topic = t.Source.Name()
	if t.Breaker != nil {
		c.breaker = guard.New(*t.Breaker, time.Now())
	}
	if t.Adaptive != nil {
		c.limiter = guard.NewLimiter(*t.Adaptive, time.Now())
	}
	if watchable {
		c.Feed.KeepEarly()
	}
	c.State.Store(&State{Settings: t.Settings, Paused: t.Paused})
	return c
}

// Describe returns what the topic knows of the state of its node.
func (c *Shared) Describe() wakebelltype.NodeState {
	state, counts := c.State.Load(), c.Counters.Snapshot()
	n := wakebelltype.NodeState{
		Role: counts.Role, Paused: state.Paused, Running: int(counts.Held), Concurrency: int(counts.Concurrency),
		Prefetch: !c.NoPrefetch, Restarts: counts.Restarts, Options: state.Settings.Public(),
	}
	if c.Group != nil {
		n.Group, n.Weight = c.GroupName, c.Weight
	}
	if c.breaker != nil {
		n.Breaker = guard.Closed.String()
	}
	if b := c.breakerNow.Load(); b != nil {
		n.Breaker, n.BreakerSince, n.BreakerUntil, n.BreakerReason = b.state.String(), b.since, b.until, b.reason
	}
	return n
}

// Name returns the topic that handlers, events and logs show.
func (t *Topic) Name() string { return cmp.Or(t.Logical, t.Source.Name()) }

func (t *Topic) logger(log *slog.Logger) *slog.Logger {
	log = log.With("topic", t.Name())
	if t.Logical != "" {
		log = log.With("shard", t.Source.Name())
	}
	return log
}

// ofPart returns the settings of a source that has a part of the limits over all nodes, and
// whether it must not claim timers. MaxConcurrent is shared by Topic.Group.
func (s Settings) ofPart(part sharding.Part) (of Settings, withheld bool) {
	if part == (sharding.Part{}) {
		return s, false
	}
	inFlight := part.Share(s.Flow.MaxInFlight)
	if part.Role == sharding.Resting {
		return s, inFlight < 0 || s.Flow.RateLimit > 0
	}
	if slower := part.Slower(); s.Flow.RateLimit > 0 {
		s.Flow.RateBurst = max(cmp.Or(s.Flow.RateBurst, s.Flow.RateLimit)/slower, 1)
		s.Flow.RatePer *= time.Duration(slower)
	}
	if inFlight < 0 {
		return s, true
	}
	s.Flow.MaxInFlight = inFlight
	return s, false
}

// Change changes the settings in force; only the supervisor calls it.
func (c *Shared) Change(do func(*State)) {
	state := *c.State.Load()
	do(&state)
	c.State.Store(&state)
}

// Retry says how failures of a handler are retried.
type Retry struct {
	// Initial is the delay after the first failure; it doubles with each further
	// failure, up to Max. Each delay has a jitter of ±20 %, so that timers that
	// failed together are not retried together.
	Initial, Max time.Duration

	// MaxFailures is the failure after which a timer is dead-lettered; at least
	// 1.
	MaxFailures int
}

// delay is the delay before the retry that follows the given number of earlier
// failures. random is in [0, 1).
func (r Retry) delay(failures int, random float64) time.Duration {
	return backoff.Jitter(backoff.Exponential(r.Initial, failures, r.Max), 0.2, random)
}
