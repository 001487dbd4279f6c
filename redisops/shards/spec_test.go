package shards

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/internal/spec"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

var (
	specSeed = flag.Uint64("spec.seed", 1, "the seed of the first history of the specification")
	specRuns = flag.Int("spec.runs", 60, "how many histories of the specification run against the scripts")
)

// tick is a tick of the specification. It is long beside what a change of the layout waits.
const tick = 1000 * time.Second

// refinement is a history of the specification and what it does to Redis.
type refinement struct {
	t       *testing.T
	random  *rand.Rand
	world   spec.World
	state   spec.State
	server  *redis.Client
	stores  [2]*Store // of the clients
	history []string

	began   time.Time
	sources map[string]*specSource  // by node and physical topic
	sent    [2][]specRequest        // exchanges whose answers a node has not received
	late    []specRequest           // the exchange that the network delivers once more
	leases  map[int8]exchange.Lease // by the tokens of the specification
	placeOf map[string]string       // physical topics, by the ids and tokens of leases
}

// specSource is a stream of a node.
type specSource struct {
	src         *timers.TimerSource
	incarnation string
	sequence    uint64
}

// specRequest is an exchange that was sent.
type specRequest struct {
	to      *specSource
	request *exchange.Request
}

// specWorlds have no limit of leases: which of several timers that are due at the same tick gets
// the last place is not specified.
var specWorlds = []spec.World{
	{IDs: 3, Calls: 4, TTL: 1},
	{IDs: 3, Calls: 4, TTL: 1, PerKey: 1},
	{IDs: 3, Calls: 4, TTL: 2, PerKey: 2},
	{IDs: 3, Calls: 4, TTL: 1, Change: true},
	{IDs: 3, Calls: 4, TTL: 2, PerKey: 1, Change: true},
}

func newRefinement(t *testing.T, server *redistest.Server, seed uint64) *refinement {
	t.Helper()
	r := &refinement{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), //nolint:gosec // a history is to be repeated
		server: bubbleClient(t, server, 0), sources: map[string]*specSource{},
		leases: map[int8]exchange.Lease{}, began: time.Now(), placeOf: map[string]string{},
	}
	r.world = specWorlds[r.random.IntN(len(specWorlds))]
	r.world.Ticks, r.world.Losses, r.world.Repeats, r.world.Crashes = 12, 3, 3, 3
	r.history = []string{fmt.Sprintf("seed %d: %+v", seed, r.world)}
	require.NoError(t, r.server.FlushDB(t.Context()).Err())
	for i := range r.stores {
		of, err := timers.New(r.server, wakebelltype.Keys{})
		require.NoError(t, err)
		of.NoCoalescing, of.NoPayloadsApart, of.NoCounts = true, true, true
		r.stores[i] = New(of)
	}
	return r
}

// step draws a step that the specification allows, and does it in both.
func (r *refinement) step() {
	steps := r.world.Steps(&r.state)
	if len(steps) == 0 {
		return
	}
	// No two scripts run at the same instant, which tokens and places in orders are made of.
	<-time.After(time.Millisecond)
	r.do(steps[r.random.IntN(len(steps))])
	r.compare()
}

// do carries out a step. What moves, and when, is decided by Redis; follow takes it over.
func (r *refinement) do(s spec.Step) {
	r.history = append(r.history, s.String())
	before := r.state
	switch s.Act {
	case spec.Take:
		l, _, err := r.stores[0].layouts.Stored(r.t.Context(), modelTopic)
		r.must(err)
		_, err = r.stores[0].toShards(modelTopic, l).take(r.t.Context(), modelTopic)
		r.must(err)
	case spec.Arrive:
		r.arrive()
	case spec.MakeCall:
		r.call(s)
	case spec.LateCall:
		r.apply(s)
		r.send(before.LateCall)
	default:
		r.apply(s)
		r.react(s, before)
	}
	r.follow()
}

// react does in Redis what the specification has done.
func (r *refinement) react(s spec.Step, before spec.State) {
	switch s.Act {
	case spec.Tick:
		<-time.After(tick)
	case spec.Poll:
		r.poll(s, before)
	case spec.Crash:
		r.sent[s.Who] = nil
		for name := range r.sources {
			if strings.HasPrefix(name, strconv.Itoa(int(s.Who))) {
				delete(r.sources, name)
			}
		}
	case spec.Advance:
		r.advance()
	case spec.LatePoll:
		for _, late := range r.late {
			_, err := late.to.src.Exchange(r.t.Context(), late.request)
			if !errors.Is(err, exchange.ErrStale) {
				r.must(err)
			}
		}
	}
}

func (r *refinement) apply(s spec.Step) {
	after, err := r.world.Apply(r.state, s)
	require.NoError(r.t, err, "%s", r.text())
	r.state = after
}

func (r *refinement) text() string { return strings.Join(r.history, "\n") }

func (r *refinement) must(err error) {
	r.t.Helper()
	require.NoError(r.t, err, "%s", r.text())
}

func (r *refinement) key() string {
	if r.world.PerKey > 0 {
		return "k"
	}
	return ""
}

func specID(id int8) string { return "id" + strconv.Itoa(int(id)) }

// advance brings the layout to the stage of the specification.
func (r *refinement) advance() {
	ctx, store := r.t.Context(), r.stores[0]
	<-time.After(2 * settleAfter)
	for range 10 {
		l, err := store.advance(ctx, modelTopic, 2)
		r.must(err)
		if r.state.Stage == spec.Divided {
			l, err = store.Settle(ctx, modelTopic)
			r.must(err)
		}
		<-time.After(2 * settleAfter)
		if stageOf(l) == r.state.Stage {
			return
		}
	}
	require.Fail(r.t, "the layout does not get to its stage", "%s", r.text())
}

func stageOf(l sharding.Layout) spec.Stage {
	switch {
	case l.To > 0:
		return spec.Announced
	case l.Moving:
		return spec.Moving
	case l.Count() > 1:
		return spec.Divided
	default:
		return spec.Plain
	}
}

// arrive stores what is in the outbox.
func (r *refinement) arrive() {
	ctx, store := r.t.Context(), r.stores[0]
	l, _, err := store.layouts.Stored(ctx, modelTopic)
	r.must(err)
	batches, err := store.outbox(ctx, modelTopic)
	r.must(err)
	for token, text := range batches {
		r.must(store.deliver(ctx, modelTopic, l, modelTopic, token, text))
	}
}

// follow takes over which timers Redis has moved.
func (r *refinement) follow() {
	if r.state.Stage != spec.Moving {
		return
	}
	ctx := r.t.Context()
	moving, there := map[string]bool{}, map[string]bool{}
	batches, err := r.stores[0].outbox(ctx, modelTopic)
	r.must(err)
	for _, text := range batches {
		b, err := readBatch(text)
		r.must(err)
		for _, item := range b.items {
			moving[item[0]] = b.hasTimers()
		}
	}
	for _, name := range namesOf(spec.New) {
		ids, err := r.server.ZRange(ctx, r.stores[0].timers.Keys().Of(name).Timeline, 0, -1).Result()
		r.must(err)
		for _, id := range ids {
			there[id] = true
		}
	}
	for id := range r.world.IDs {
		if old := r.state.Places[spec.Old][id]; old.Version > 0 && (moving[specID(id)] || there[specID(id)]) {
			r.apply(spec.Step{Act: spec.Take, ID: id})
		}
		if out := r.state.Places[spec.Outbox][id]; out.Version > 0 && !moving[specID(id)] {
			r.apply(spec.Step{Act: spec.Arrive, ID: id})
		}
	}
}

// compare compares the content of the topic with that of the specification.
func (r *refinement) compare() {
	for id := range r.world.IDs {
		if r.state.Places[spec.Outbox][id].Version > 0 {
			continue
		}
		want := r.state.Places[spec.Old][id]
		if want.Version == 0 {
			want = r.state.Places[spec.New][id]
		}
		found, err := r.stores[1].Get(r.t.Context(), modelTopic, specID(id))
		if want.Version == 0 {
			require.ErrorIs(r.t, err, wakebelltype.ErrNotFound, "%s\n%s", r.text(), specID(id))
			continue
		}
		r.must(err)
		due := spec.Instant(found.Due.Sub(r.began) / tick)
		if r.world.PerKey > 0 && due <= r.state.Now && want.Due <= r.state.Now {
			due = want.Due // one that has waited for its key is due from then on
		}
		got := spec.Timer{
			Version: want.Version, Instant: spec.Instant(found.Activation.Sub(r.began) / tick), Order: want.Order, Due: due, Token: want.Token, Holds: want.Holds,
			Claims: int8(found.Claims), Failures: int8(found.Failures),
		}
		require.Equal(r.t, strconv.Itoa(int(want.Version)), string(found.Payload), "%s\n%s", r.text(), specID(id))
		require.Equal(r.t, want.Token > 0 && want.Due > r.state.Now, found.Running, "%s\n%s runs", r.text(), specID(id))
		require.Equal(r.t, want, got, "%s\n%s", r.text(), specID(id))
	}
}
