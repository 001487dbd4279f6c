package actors_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/actors"
	"github.com/wakebell/wakebell/actors/internal/actortest"
	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// topicName is the topic of a scenario that names none.
const topicName = "t"

// world is the state of a scenario: one Redis and the nodes that use it.
type world struct {
	t      *testing.T
	redis  *miniredis.Miniredis
	store  *timers.Timers
	start  time.Time
	topics []string

	mu         sync.Mutex // guards the fields below, which handlers and wires share
	nodes      []*node
	events     []string
	scripts    map[string][]script
	deliveries map[string]int
	down       bool
	sent       map[string]int // exchanges since they were last printed, by poller
}

// node is a runtime with its own wires to Redis.
type node struct {
	name    string
	system  *actor.ActorSystem
	runtime *actors.Runtime
	wires   []*wire
	stopped bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	rdb, m := redistest.Embedded(t)
	store, err := timers.New(rdb, wakebelltype.Keys{})
	require.NoError(t, err)
	return &world{
		t: t, redis: m, store: store, start: time.Now(), topics: []string{topicName},
		scripts: map[string][]script{}, deliveries: map[string]int{}, sent: map[string]int{},
	}
}

// run runs one command, and waits until all goroutines wait for the clock.
func (w *world) run(line string) {
	w.t.Helper()
	words := strings.Fields(line)
	command, ok := w.commands()[words[0]]
	require.True(w.t, ok, "unknown command: %s", line)
	command(words[1:])
	synctest.Wait()
}

func (w *world) commands() map[string]func(words []string) {
	return map[string]func([]string){
		"node":      w.node,      // node NAME [key=value…], see settings
		"handle":    w.handle,    // handle ID SCRIPT [| SCRIPT…], one for each delivery, the last for all further ones
		"schedule":  w.schedule,  // schedule ID DELAY [keep] [on=TOPIC]
		"cancel":    w.cancel,    // cancel ID
		"advance":   w.advance,   // advance DURATION
		"timers":    w.timers,    // prints the timers and dead letters in Redis
		"counters":  w.counters,  // counters NODE
		"peeks":     w.peeks,     // peeks NODE: prints the number of answered peeks
		"exchanges": w.exchanges, // prints the number of exchanges since the last time
		"fault":     w.fault,     // fault NODE KIND [DURATION] [on=TOPIC]: sets the fault of its next exchange, see fault
		"redis":     w.server,    // redis down | up, for all nodes
		"crash":     w.crash,     // crash NODE: makes its pollers panic
		"drain":     w.drain,     // drain NODE TIMEOUT, and stop it
		"pause":     w.pause,     // pause NODE on | off: its topics
		"remove":    w.remove,    // remove NODE TOPIC: removes a topic from a running node
		"peer":      w.peer,      // peer schedule ID DELAY | claim ID LEASE | commit ID, as Python does
	}
}

// lineOfPanic matches the line in the reason of a panic, which no scenario is about.
var lineOfPanic = regexp.MustCompile(`\.go:\d+`)

// note records an event.
func (w *world) note(format string, args ...any) { w.begin()(format, args...) }

// begin reserves the place of an event before the events that it causes. The
// returned function sets the event's text.
func (w *world) begin() (end func(format string, args ...any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Instants in Redis are floats, off by up to a µs.
	at := time.Since(w.start).Truncate(100 * time.Microsecond)
	place := len(w.events)
	w.events = append(w.events, "")
	return func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events[place] = fmt.Sprintf("+%-9v %s", at, lineOfPanic.ReplaceAllString(fmt.Sprintf(format, args...), ".go"))
	}
}

// happened returns the events since the last call. Events of one instant between
// two exchanges have no order of their own, so they are sorted by their text.
// Decisions of the poller come before the exchanges that it sent after them.
func (w *world) happened() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	for i, event := range events {
		if to := placeOf(events[:i], event); to < i {
			copy(events[to+1:i+1], events[to:i])
			events[to] = event
		}
	}
	for from := 0; from < len(events); {
		to := from + 1
		for to < len(events) && together(events[from], events[to]) {
			to++
		}
		slices.SortStableFunc(events[from:to], func(a, b string) int { return strings.Compare(subject(a), subject(b)) })
		from = to
	}
	return events
}

// placeOf returns the place of an event that was recorded after the events of
// before: a decision belongs before the exchanges of the same instant.
func placeOf(before []string, event string) int {
	place := len(before)
	if !decided(event) {
		return place
	}
	for j := len(before) - 1; j >= 0 && at(before[j]) == at(event) && subject(before[j]) != subject(event); j-- {
		if strings.Contains(before[j], "exchange") {
			place = j
		}
	}
	return place
}

func at(event string) string { return strings.Fields(event)[0] }

// decided reports whether an event is a decision of the poller to end a handler's
// context, rather than the effect of an answer.
func decided(event string) bool {
	return strings.HasSuffix(event, poller.ErrLeaseTooOld.Error()) || strings.HasSuffix(event, poller.ErrDraining.Error())
}

func together(a, b string) bool {
	return at(a) == at(b) &&
		!strings.Contains(a, "exchange") && !strings.Contains(b, "exchange")
}

// subject returns the id of an event, after the node's name if the event has one.
func subject(event string) string {
	words := strings.Fields(event)
	return strings.Join(words[1:min(len(words), 2+strings.Count(words[1], ":"))], " ")
}

// settings returns the key=value words of a node, over defaults that make a
// scenario easy to follow.
func settings(words []string) map[string]string {
	set := map[string]string{
		"topics": "1", "concurrent": "5", "lease": "10s", "age": "0s",
		"poll": "1s", "max_poll": "5s", "retry": "1s", "max_retry": "1h", "failures": "25",
		"hints": "on", "rejects": "keep", "claims": "0", "on_dead": "", "peek": "on", "window": "0s",
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		set[key] = value
	}
	return set
}

func (w *world) node(words []string) {
	set := settings(words[1:])
	n := &node{name: words[0], system: actor.NewActorSystem(actor.WithLoggerFactory(
		func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))}
	if many := w.number(set["topics"]); many > 1 {
		w.topics = nil
		for i := range many {
			w.topics = append(w.topics, "t"+strconv.Itoa(i+1))
		}
	}
	cfg := actors.Config{
		Name:   "wakebell",
		Logger: slog.New(slog.DiscardHandler),
		Random: func() float64 { return 0.5 }, // no jitter
	}
	if set["hints"] == "on" {
		cfg.Hints = w.store
	}
	if set["on_dead"] != "" {
		cfg.OnDead = w.onDead(n, w.duration(set["on_dead"]))
	}
	for _, topic := range w.topics {
		source := &wire{TimerSource: w.store.Source(topic, timers.SourceOptions{MaxClaims: w.number(set["claims"])}), world: w, node: n}
		n.wires = append(n.wires, source)
		cfg.Topics = append(cfg.Topics, poller.Topic{
			Source: source,
			Handle: func(ctx context.Context, d *poller.Delivery) poller.Outcome { return w.deliver(ctx, n, d) },
			Settings: &poller.Settings{
				MaxConcurrent: w.number(set["concurrent"]),
				LeaseTTL:      w.duration(set["lease"]), MaxLeaseAge: w.duration(set["age"]),
				PollingInterval: w.duration(set["poll"]), MaxPollingInterval: w.duration(set["max_poll"]),
				Retry: poller.Retry{
					Initial: w.duration(set["retry"]), Max: w.duration(set["max_retry"]),
					MaxFailures: w.number(set["failures"]),
				},
			},
			Policy: leasing.Policy{
				DiscardRejects: set["rejects"] == "discard",
				NoPeek:         set["peek"] == "off",
				Window:         w.duration(set["window"]),
			},
		})
	}
	w.mu.Lock()
	w.nodes = append(w.nodes, n)
	w.mu.Unlock()
	var err error
	n.runtime, err = actors.Start(n.system, cfg.WithProps(actor.WithContextDecorator(actortest.CrashOnDemand)))
	require.NoError(w.t, err)
}

// onDead returns a hook that takes the given time, unless its context ends first.
func (w *world) onDead(n *node, takes time.Duration) func(context.Context, observe.DeadTimer) {
	return func(ctx context.Context, d observe.DeadTimer) {
		w.note("%s%s hook called: %q, %q, claims %d, failures %d",
			w.of(n), d.ID, d.Reason, d.Payload, d.Claims, d.Failures)
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			w.note("%s%s context of the hook ends: %v", w.of(n), d.ID, context.Cause(ctx))
		}
	}
}

// of returns the prefix of a node's events: its name, if there are several nodes.
func (w *world) of(n *node) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.nodes) > 1 {
		return n.name + ": "
	}
	return ""
}

func (w *world) find(name string) *node {
	w.t.Helper()
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	require.Fail(w.t, "no node "+name)
	return nil
}

func (w *world) duration(s string) time.Duration {
	w.t.Helper()
	d, err := time.ParseDuration(s)
	require.NoError(w.t, err)
	return d
}

func (w *world) number(s string) int {
	w.t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(w.t, err)
	return n
}

// end stops all nodes and gives handlers and late messages the time to end: the
// virtual clock stops with the test.
func (w *world) end() {
	for _, n := range w.nodes {
		if !n.stopped {
			require.NoError(w.t, n.runtime.Stop())
		}
	}
	<-time.After(time.Hour)
}
