package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/embedded/durable"
	"github.com/wakebell/wakebell/internal/journal"
	"github.com/wakebell/wakebell/internal/partition"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// NodeVariable is the environment variable that makes a process of the test binary
// a node. Its value is a NodeConfig as JSON.
const NodeVariable = "WAKEBELL_FAULTS_NODE"

// settleLimit bounds the wait for the last timers of a round.
const settleLimit = 60 * time.Second

// NodeConfig configures a node.
type NodeConfig struct {
	Redis     string   // host:port
	Sentinels []string // host:port of each; empty: the node connects to Redis directly
	Master    string   // the name of the master in the Sentinels
	Cluster   []string // host:port of servers of a Cluster, in place of Redis
	Host      string   // the address from which it connects; empty: any

	Store    string // a directory in which the node stores everything, in place of Redis
	Socket   string // of the Store, for clients
	EverySec bool   // when the Store syncs its file; else after each write

	Client string // the name of a client that schedules, and handles nothing
	Seed   uint64 // of the client's choices

	// Reminders is the name of a node whose actor sets reminders until an instant, and
	// receives them; empty: another kind of process.
	Reminders string
	Until     time.Time

	Listen string // host:port of a serving node, which handles no timers itself
	Remote string // host:port of the serving node; a subscriber does not use Redis

	Topic         string
	Queue         bool           // Topic names a queue
	Joins         bool           // Topic has the timers of joins, whose parts are on Shards
	Shards        map[string]int // topics that are divided; they are handled beside Topic
	MaxConcurrent int
	LeaseTTL      time.Duration
	MaxPolling    time.Duration
	RetryFirst    time.Duration
	MaxAttempts   int
	DrainTimeout  time.Duration
	Limits        Limits
}

// Work is the body of a timer or message. It says what the handler does.
type Work struct {
	Key        string        `json:"key,omitempty"` // deduplication key of a message
	Generation int           `json:"g"`
	For        time.Duration `json:"for,omitempty"`
	Fails      int           `json:"fails,omitempty"`  // failures before it succeeds
	Panics     int           `json:"panics,omitempty"` // first attempts that panic
	Reject     bool          `json:"reject,omitempty"`
	Settle     bool          `json:"settle,omitempty"`   // by Timer.Settle, before it returns
	Stubborn   bool          `json:"stubborn,omitempty"` // ignores its context
}

// Event is the kind of a Line.
type Event string

// The events, in their order.
const (
	EventReady    Event = "ready"
	EventBegin    Event = "begin"
	EventSettling Event = "settling"
	EventSettled  Event = "settled"
	EventEnd      Event = "end"
	EventLate     Event = "late" // a subscriber dropped a lease that arrived after its end
	EventStall    Event = "stall"
	EventCall     Event = "call" // a client received the answer of a call
	EventEnded    Event = "ended"
)

// Line is a line of a node's output: a JSON object in one write, so that a kill
// does not lose what was printed before.
type Line struct {
	Event      Event     `json:"event"`
	At         time.Time `json:"at"`
	From       time.Time `json:"from,omitzero"`
	ID         string    `json:"id,omitempty"`      // of a timer, or the deduplication key of a message
	Message    string    `json:"message,omitempty"` // id of a message
	Generation int       `json:"generation,omitempty"`
	Attempt    int       `json:"attempt,omitempty"`
	Failures   int       `json:"failures,omitempty"`
	Activation time.Time `json:"activation,omitzero"`
	Delivered  time.Time `json:"delivered,omitzero"`
	End        End       `json:"end,omitempty"`
	Result     Result    `json:"result,omitempty"`
	Call       *Call     `json:"call,omitempty"`
	Error      string    `json:"error,omitempty"` // of the call

	Ends map[wakebelltype.End]int `json:"ends,omitempty"` // of the parts of a join

	Counters *wakebelltype.Counters `json:"counters,omitempty"` // of all topics of a node, at its end
}

// NodeMain is the main function of a node. It handles timers until SIGTERM. It
// exits at once when stdin is closed, which happens when the harness ends.
func NodeMain(config string, stdin io.Reader, stdout io.Writer) error {
	var cfg NodeConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return fmt.Errorf("decode the node's config: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(3)
	}()
	//nolint:forbidigo // the root context of a process
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n := &node{out: stdout}
	if cfg.Remote != "" {
		return cfg.subscribe(ctx, n)
	}
	if cfg.Client != "" {
		return cfg.schedule(ctx, n)
	}
	if cfg.Reminders != "" {
		return cfg.remind(ctx, n)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutStacks}))
	rdb, closeStore, err := cfg.connect(log)
	if err != nil {
		return err
	}
	defer closeStore()
	sys, err := cfg.System(rdb, n, log)
	if err != nil {
		return err
	}
	if cfg.Listen != "" {
		server, err := remote.Serve(sys, remote.Config{Address: cfg.Listen, HandlerOptions: asTopic(cfg.options()), QueueHandlerOptions: asQueue(cfg.options())})
		if err != nil {
			return err
		}
		defer server.Stop()
	}
	if err := sys.Start(ctx); err != nil {
		return err
	}
	n.report(Line{Event: EventReady})
	n.watchClock(ctx)
	var sum wakebelltype.Counters
	for _, counters := range sys.Counters() {
		sum.Empty += counters.Empty
		sum.Exchanges += counters.Exchanges
		sum.Delivered += counters.Delivered
	}
	err = sys.Stop()
	n.report(Line{Event: EventEnded, Counters: &sum})
	return err
}

// connect returns a client of the Store or of Redis.
func (c NodeConfig) connect(log *slog.Logger) (rdb redis.UniversalClient, end func(), err error) {
	if c.Store == "" {
		rdb = c.client()
		return rdb, func() { _ = rdb.Close() }, nil
	}
	o := durable.Options{Sync: journal.Always, Socket: c.Socket, Logger: log}
	if c.EverySec {
		o.Sync = journal.EverySec
	}
	store, err := durable.Open(c.Store, o)
	if err != nil {
		return nil, nil, err
	}
	rdb = store.Client()
	return rdb, func() { _ = errors.Join(rdb.Close(), store.Close()) }, nil
}

func (c NodeConfig) client() redis.UniversalClient {
	if len(c.Cluster) > 0 {
		// A silent master is not to be noticed by this timeout.
		options := &redis.ClusterOptions{Addrs: c.Cluster, ReadTimeout: 10 * time.Second}
		if c.Host != "" {
			options.ReadTimeout, options.DialTimeout, options.DialerRetries = connection.DefaultSilence, connection.DefaultSilence, 1
			options.Dialer = partition.Dialer(c.Host)
		}
		return redis.NewClusterClient(options)
	}
	if len(c.Sentinels) > 0 {
		options := &redis.FailoverOptions{MasterName: c.Master, SentinelAddrs: c.Sentinels}
		if c.Host != "" {
			options.Dialer = partition.Dialer(c.Host)
			options = connection.FailoverOptions(options)
		}
		return redis.NewFailoverClient(options)
	}
	options := &redis.Options{Addr: c.Redis}
	if c.Client != "" {
		patient(options)
	}
	return redis.NewClient(options)
}

// patient makes a client wait for a stalled Redis: a retry by go-redis would run a
// command twice without a record in the delivery log.
func patient(o *redis.Options) { o.ReadTimeout = settleLimit }

// quiet discards the log of components that fail on purpose.
var quiet = slog.New(slog.DiscardHandler)

// System returns the System of a node on rdb, which reports to w.
func (c NodeConfig) System(rdb redis.UniversalClient, w reporter, log *slog.Logger) (*wakebell.System, error) {
	quiet := slog.New(slog.DiscardHandler)
	actors := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	var handlers []wakebell.Handler
	if c.Listen == "" {
		handlers = c.handlers(worker{w})
	}
	conn, err := connection.New(rdb, connection.Config{Logger: log})
	if err != nil {
		return nil, err
	}
	return wakebell.New(actors, conn, wakebell.Config{
		Handlers:     handlers,
		DrainTimeout: c.DrainTimeout,
		WaitForRedis: settleLimit, // a failover may take long on a busy machine
	})
}

func (c NodeConfig) handlers(w worker) []wakebell.Handler {
	options := append(c.options(), wakebell.MaxConcurrent(c.MaxConcurrent))
	if c.Joins {
		return c.joining(w)
	}
	if c.Queue {
		return []wakebell.Handler{wakebell.HandleQueue(queue.New[Work](c.Topic), w.handle, asQueue(options)...)}
	}
	shards := map[string]int{c.Topic: 1}
	maps.Copy(shards, c.Shards)
	var handlers []wakebell.Handler
	for name, n := range shards {
		own := append(asTopic(options), c.Limits.options()...)
		if n > 1 {
			own = append(own, wakebell.Shards(n))
		}
		handlers = append(handlers, wakebell.Handle(wakebell.NewTopic[Work](name), w.handle, own...))
	}
	return handlers
}

func (c NodeConfig) options() []wakebell.TuningOption {
	return []wakebell.TuningOption{
		wakebell.LeaseTTL(c.LeaseTTL), wakebell.MaxPollingInterval(c.MaxPolling), wakebell.MaxAttempts(c.MaxAttempts),
		wakebell.RetryBackoff(c.RetryFirst, max(c.RetryFirst, time.Second)),
	}
}

func asTopic(tuning []wakebell.TuningOption) (options []wakebell.HandlerOption) {
	for _, option := range tuning {
		options = append(options, option)
	}
	return options
}

func asQueue(tuning []wakebell.TuningOption) (options []wakebell.QueueHandlerOption) {
	for _, option := range tuning {
		options = append(options, option)
	}
	return options
}

// withoutStacks removes the stacks of intended panics from the log.
func withoutStacks(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "stack" {
		return slog.Attr{}
	}
	return a
}

// reporter receives the lines of a node.
type reporter interface{ report(line Line) }

type node struct {
	mu  sync.Mutex
	out io.Writer
}

func (n *node) report(line Line) {
	line.At = time.Now()
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // a Line can always be encoded
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, _ = n.out.Write(append(text, '\n')) // it fails only after the end of the harness, which ends this process
}

const (
	clockTick = 20 * time.Millisecond
	// stallAt is the shortest gap that is reported: leases are at least a second,
	// and have two thirds of it left when they are extended.
	stallAt = 150 * time.Millisecond
)

// watchClock reports when this process was not scheduled for a while, until ctx
// ends.
func (n *node) watchClock(ctx context.Context) {
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C: // the time of the tick itself may be old
			now := time.Now()
			if now.Sub(last) > stallAt {
				n.report(Line{Event: EventStall, From: last})
			}
			last = now
		}
	}
}
