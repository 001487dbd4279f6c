package poller

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/wakebell/wakebell/actors/guard"
	"github.com/wakebell/wakebell/actors/internal/host"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/internal/loglimit"
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
	Target      *Target // for Delivery.Forward; nil: leases cannot be forwarded

	// ReadOverride reads the cluster-wide override of the topic's settings; nil:
	// there is none. It is called at the start, after hints, when an answer of the source
	// has another mark than the override, and every Policy.OverrideInterval.
	ReadOverride func(context.Context) (ClusterOverride, error)

	leasing.Policy
	// Settings can be changed while the topic runs. All but MaxLeaseAge and Flow must
	// be above zero. Topics may share them: what they point to is never changed.
	*Settings // in force until they are changed
	Paused    bool

	History  wakebelltype.HistoryPolicy // which attempts are recorded
	NoCounts bool                       // nothing is counted in the source
	// RecordStore stores both; nil: that of the runtime.
	RecordStore observe.RecordStore

	// Announcer divides the topic among the nodes that compete for it; nil: it is not
	// divided. Node is the name of this one.
	Announcer Announcer
	Node      string
	// Reporter stores the state of this node for operators, see leasing/reports.go; nil: nothing is
	// stored.
	Reporter Reporter

	Breaker *wakebelltype.Breaker // pauses the topic on this node while handlers fail; nil: none

	Adaptive *wakebelltype.Adaptive // lowers MaxConcurrent as the handler's latency requires; nil: fixed

	GroupName string // how operators know Policy.Group

	Attachment any // what Delivery.Attachment returns
}

// AutomaticWindow is the Policy.Window that follows the load.
const AutomaticWindow = leasing.AutomaticWindow

// What a topic is configured with and does not know itself is the core's.
type (
	// Settings can be changed while the topic runs.
	Settings = leasing.Settings
	// Retry says how failures of a handler are retried.
	Retry = leasing.Retry
	// Batch configures the calls of Topic.HandleBatch.
	Batch = leasing.Batch
	// ClusterOverride is what an operator has set for a topic on all nodes.
	ClusterOverride = leasing.Override
)

// What others wait for as long as the core does.
const (
	MaxPrefetchWait = leasing.MaxPrefetchWait
	DrainGrace      = leasing.DrainGrace
	DrainFlush      = leasing.DrainFlush
)

// Shared is what all incarnations of a poller share.
type Shared struct {
	Topic
	Logger *slog.Logger
	// State is the settings in force; it outlives a poller's crash.
	State      atomic.Pointer[State]
	Counters   observe.Counters
	breakerNow atomic.Pointer[breakerStatus] // as last changed; nil: closed
	guards     leasing.Guards                // outlive a poller's crash; only the poller uses them
	clockWatch *observe.ClockWatch           // shared by the topics of a shard
	Feed       observe.Feed                  // collects events for watchers
	Records    *observe.TopicRecords         // records attempts and counts; nil: nothing
	deadHook   *observe.DeadHook             // called for each dead letter
	logLimit   *loglimit.Limiter
	random     func() float64
	io         *sync.WaitGroup // the goroutines that call the source
	calls      *host.Calls
	dispatcher *host.Dispatcher
	props      []actor.PropsOption // for tests
}

// State is what is in force; it outlives a poller's crash.
type State struct {
	Settings *Settings // of all topics that have the same
	Paused   bool
}

// NewShared returns the state of a topic that outlives the incarnations of its
// poller.
func NewShared(t Topic, env *host.Env, dead *observe.DeadHook, watch *observe.ClockWatch, watchable bool) *Shared {
	c := &Shared{
		Topic: t, Logger: t.logger(env.Logger), random: env.Random, dispatcher: env.Dispatcher, props: env.Options, io: env.IO, calls: env.Calls,
		deadHook: dead, logLimit: env.LogLimit, clockWatch: watch,
	}
	c.Feed.Topic = t.Source.Name()
	if t.Breaker != nil {
		c.guards.Breaker = guard.New(*t.Breaker, time.Now())
	}
	if t.Adaptive != nil {
		c.guards.Limiter = guard.NewLimiter(*t.Adaptive, time.Now())
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
		Prefetch: !c.NoPrefetch, ExpireAfter: c.ExpireAfter, Restarts: counts.Restarts, Options: state.Settings.Public(),
	}
	if runs := c.Counters.LongRuns.Load(); runs != nil {
		n.Longest = *runs
	}
	if c.Group != nil {
		n.Group, n.Weight = c.GroupName, c.Weight
	}
	if c.guards.Breaker != nil {
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

// Change changes the state; only the supervisor calls it. do replaces the settings, and does not
// change them.
func (c *Shared) Change(do func(*State)) {
	state := *c.State.Load()
	do(&state)
	c.State.Store(&state)
}
