package faults

import (
	"math/rand/v2"
	"regexp"
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
	kind kinds

	mu  sync.Mutex
	rng *rand.Rand
}

func (tr *trouble) rule(command []string) faultproxy.Fate {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.rng.Float64() >= tr.rate {
		return faultproxy.Fate{}
	}
	kind, lasts := tr.kind(tr.rng)
	return tr.w.strike(tr.who, kind, lasts, command)
}

// strike makes a fault of one command, which is a trial, and notes it.
func (w *world) strike(who string, kind FaultKind, lasts time.Duration, command []string) faultproxy.Fate {
	w.mu.Lock()
	w.trials++
	w.mu.Unlock()
	fault := Fault{Kind: kind, Who: who, From: time.Now(), Words: idsOf(command)}
	fault.To = fault.From.Add(lasts)
	if kind == Duplicate {
		w.pending.Add(1)
		return faultproxy.Again(lasts, func() {
			fault.To = time.Now()
			w.ledger.Struck(fault)
			w.pending.Add(-1)
		})
	}
	w.ledger.Struck(fault)
	switch kind {
	case LostRequest:
		return faultproxy.Drop()
	case LostReply:
		return faultproxy.Lose()
	case Reset:
		return faultproxy.Reset()
	default:
		return faultproxy.Delay(lasts)
	}
}

// keyed finds the keys of messages, which travel within keys and bodies.
var keyed = regexp.MustCompile(`client-\d+/\d+`)

// idsOf are the timers that a command names, or the keys of messages.
func idsOf(command []string) []string {
	ids := []string{}
	for _, word := range command {
		if strings.HasPrefix(word, "client-") {
			ids = append(ids, word)
			continue
		}
		ids = append(ids, keyed.FindAllString(word, -1)...)
	}
	return slices.Clip(ids)
}

// link is the address of a proxy for who that strikes a share of all commands.
func (w *world) link(who string, rate float64, kind kinds) string {
	w.Helper()
	p := faultproxy.Start(w.T, w.server.Addr)
	tr := &trouble{w: w, who: who, rate: rate, kind: kind, rng: rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64()))}
	p.SetRule(tr.rule)
	return p.Addr
}

// lossy gives each node and client a proxy of its own that strikes a share of
// all commands, whatever they are.
func (w *world) lossy(nodes int, cfg NodeConfig, rate float64, kind kinds) load {
	w.Helper()
	for range nodes {
		cfg.Redis = w.link(w.fleet.Next(), rate, kind)
		w.nodes = append(w.nodes, w.fleet.Start(cfg))
	}
	l := w.usual()
	l.connect = func(name string) redis.UniversalClient {
		return w.server.Client(w.T, patient, func(o *redis.Options) { o.Addr = w.link(name, rate, kind) })
	}
	return l
}

// kinds draws a fault of a command and how long it lasts.
type kinds func(*rand.Rand) (FaultKind, time.Duration)

// loss loses requests and replies alike.
func loss(rng *rand.Rand) (FaultKind, time.Duration) {
	if rng.IntN(2) == 0 {
		return LostRequest, 0
	}
	return LostReply, 0
}

// late sends a request once more, after later ones.
func late(rng *rand.Rand) (FaultKind, time.Duration) {
	return Duplicate, between(rng, time.Millisecond, 300*time.Millisecond)
}

// rough delays replies, and resets a connection now and then.
func rough(rng *rand.Rand) (FaultKind, time.Duration) {
	if rng.IntN(20) == 0 {
		return Reset, 0
	}
	return Slow, between(rng, time.Millisecond, 30*time.Millisecond)
}

// network runs the usual load over links that strike a share of all commands.
func network(rate float64, lasts time.Duration, kind kinds) func(*world) {
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
	// Bursts: only a backlog opens the second stream.
	l.clients, l.batch, l.pause, l.ahead = 2, 100, 200*time.Millisecond, 0
	l.work = func(rng *rand.Rand) Work {
		return Work{For: between(rng, w.ledger.TTL/3-20*time.Millisecond, w.ledger.TTL/3+60*time.Millisecond)}
	}
	end := w.begin(l)
	w.pause(6 * time.Second)
	end()
	w.settled(settleLimit)
}
