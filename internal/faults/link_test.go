package faults

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/internal/faultproxy"
)

// trouble draws what becomes of a command, and notes it in the ledger.
type trouble struct {
	w    *world
	who  string
	rate float64 // of the commands that are struck
	kind func(*rand.Rand) (faultproxy.Fate, FaultKind, time.Duration)

	mu  sync.Mutex
	rng *rand.Rand
}

func (tr *trouble) rule(command []string) faultproxy.Fate {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.rng.Float64() >= tr.rate {
		return faultproxy.Fate{}
	}
	fate, kind, after := tr.kind(tr.rng)
	tr.w.struck(tr.who, kind, after, command)
	return fate
}

// struck notes a fault of one command, which is a trial.
func (w *world) struck(who string, kind FaultKind, lasts time.Duration, command []string) {
	now := time.Now()
	w.ledger.Struck(Fault{Kind: kind, Who: who, From: now, To: now.Add(lasts), Words: idsOf(command)})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trials++
}

// idsOf are the timers that a command names.
func idsOf(command []string) []string {
	ids := []string{}
	for _, word := range command {
		if strings.HasPrefix(word, "client-") {
			ids = append(ids, word)
		}
	}
	return slices.Clip(ids)
}

// lossy gives each node and client a proxy of its own that strikes a share of
// all commands, whatever they are.
func (w *world) lossy(nodes int, cfg NodeConfig, rate float64, kind func(*rand.Rand) (faultproxy.Fate, FaultKind, time.Duration)) load {
	w.Helper()
	strike := func(who string) *faultproxy.Proxy {
		p := faultproxy.Start(w.T, w.server.Addr)
		tr := &trouble{w: w, who: who, rate: rate, kind: kind, rng: rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64()))}
		p.SetRule(tr.rule)
		return p
	}
	for range nodes {
		cfg.Redis = strike(w.fleet.Next()).Addr
		w.nodes = append(w.nodes, w.fleet.Start(cfg))
	}
	l := w.usual()
	l.connect = func(name string) redis.UniversalClient {
		return w.server.Client(w.T, func(o *redis.Options) { o.Addr = strike(name).Addr })
	}
	return l
}

// loss loses requests and replies alike.
func loss(rng *rand.Rand) (faultproxy.Fate, FaultKind, time.Duration) {
	if rng.IntN(2) == 0 {
		return faultproxy.Drop(), LostRequest, 0
	}
	return faultproxy.Lose(), LostReply, 0
}

// late sends a request once more, after later ones.
func late(rng *rand.Rand) (faultproxy.Fate, FaultKind, time.Duration) {
	d := between(rng, time.Millisecond, 300*time.Millisecond)
	return faultproxy.Again(d), Duplicate, d
}

// rough delays replies, and resets a connection now and then.
func rough(rng *rand.Rand) (faultproxy.Fate, FaultKind, time.Duration) {
	if rng.IntN(20) == 0 {
		return faultproxy.Reset(), LostReply, 0
	}
	d := between(rng, time.Millisecond, 30*time.Millisecond)
	return faultproxy.Delay(d), Slow, d
}

// network runs the usual load over links that strike a share of all commands.
func network(rate float64, lasts time.Duration, kind func(*rand.Rand) (faultproxy.Fate, FaultKind, time.Duration)) func(*world) {
	return func(w *world) {
		w.redis()
		end := w.begin(w.lossy(3, w.config(), rate, kind))
		w.pause(lasts)
		end()
		w.settled(settleLimit)
	}
}

// streams runs handlers for about a heartbeat on nodes with two streams, over
// links that are slow, so that settlements and extensions cross.
func streams(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent = 120
	l := w.lossy(2, cfg, 0.5, rough)
	l.work = func(rng *rand.Rand) Work {
		return Work{For: between(rng, w.ledger.TTL/3-20*time.Millisecond, w.ledger.TTL/3+60*time.Millisecond)}
	}
	end := w.begin(l)
	w.pause(6 * time.Second)
	end()
	w.settled(settleLimit)
}
