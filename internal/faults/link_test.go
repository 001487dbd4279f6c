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

// commandFaults injects random faults into commands, and records them in the
// delivery log.
type commandFaults struct {
	w    *world
	name string  // of the node or client
	rate float64 // share of the commands that are hit
	kind kinds

	mu  sync.Mutex
	rng *rand.Rand
}

func (f *commandFaults) rule(command []string) faultproxy.Fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.Float64() >= f.rate {
		return faultproxy.Fate{}
	}
	kind, lasts := f.kind(f.rng)
	return f.w.inject(f.name, kind, lasts, command)
}

// inject injects a fault into one command, which counts as a trial, and records it.
func (w *world) inject(target string, kind FaultKind, lasts time.Duration, command []string) faultproxy.Fate {
	w.tried()
	fault := Fault{Kind: kind, Target: target, From: time.Now(), Words: idsOf(command)}
	fault.To = fault.From.Add(lasts)
	if kind == Duplicate {
		w.pending.Add(1)
		return faultproxy.Again(lasts, func() {
			fault.To = time.Now()
			w.deliveries.RecordFault(fault)
			w.pending.Add(-1)
		})
	}
	w.deliveries.RecordFault(fault)
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

// keyed matches the deduplication keys of messages within Redis keys and bodies.
var keyed = regexp.MustCompile(`client-\d+/\d+`)

// idsOf returns the timer ids and message keys in a command.
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

// link returns the address of a new proxy that injects faults into a share of all
// commands of a node or client.
func (w *world) link(name string, rate float64, kind kinds) string {
	w.Helper()
	p := faultproxy.Start(w.T, w.server.Addr)
	f := &commandFaults{w: w, name: name, rate: rate, kind: kind, rng: rand.New(rand.NewPCG(w.rng.Uint64(), w.rng.Uint64()))}
	p.SetRule(f.rule)
	return p.Addr
}

// lossy starts nodes behind proxies that inject faults into a share of all commands.
// The clients of the returned load have such proxies too.
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

// kinds chooses a fault of a command and its duration.
type kinds func(*rand.Rand) (FaultKind, time.Duration)

// loss drops requests and replies.
func loss(rng *rand.Rand) (FaultKind, time.Duration) {
	if rng.IntN(2) == 0 {
		return LostRequest, 0
	}
	return LostReply, 0
}

// late sends a request again, after later ones.
func late(rng *rand.Rand) (FaultKind, time.Duration) {
	return Duplicate, between(rng, time.Millisecond, 300*time.Millisecond)
}

// rough delays replies, and sometimes resets a connection.
func rough(rng *rand.Rand) (FaultKind, time.Duration) {
	if rng.IntN(20) == 0 {
		return Reset, 0
	}
	return Slow, between(rng, time.Millisecond, 30*time.Millisecond)
}

// network runs the usual load over links with faults in a share of all commands.
func network(rate float64, lasts time.Duration, kind kinds) func(*world) {
	return func(w *world) {
		w.redis()
		end := w.begin(w.lossy(3, w.config(), rate, kind))
		w.pause(lasts)
		end()
		w.settled(settleLimit)
	}
}

// streams runs handlers that take about as long as a heartbeat interval on nodes with
// two streams and slow links, so that settlements and extensions cross.
func streams(w *world) {
	w.redis()
	cfg := w.config()
	cfg.MaxConcurrent = 120
	l := w.lossy(2, cfg, 0.5, rough)
	// The load comes in bursts: only a backlog opens the second stream.
	l.clients, l.batch, l.pause, l.ahead = 2, 100, 200*time.Millisecond, 0
	l.work = func(rng *rand.Rand) Work {
		return Work{For: between(rng, w.deliveries.TTL/3-20*time.Millisecond, w.deliveries.TTL/3+60*time.Millisecond)}
	}
	end := w.begin(l)
	w.pause(6 * time.Second)
	end()
	w.settled(settleLimit)
}
