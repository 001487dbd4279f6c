package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/faultproxy"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	servingNodes      = 2
	remoteSubscribers = 4
	remoteClients     = 4
	remoteStrikes     = 15

	// overlapLimit is how long handlers of one timer may overlap: twice the longest
	// stall of a process that is not reported.
	overlapLimit = 2 * stallAt
)

// remotes is the state of a round. The first of its nodes are the subscribers, the
// others are the serving nodes.
type remotes struct {
	*world
	addresses   []string // of the serving nodes
	subscribers []*peer
	clients     []*peer
	kills       []servingKill
}

// peer is a subscriber or a client, with its link to its serving node.
type peer struct {
	name string
	link *faultproxy.Proxy
	node int // index in addresses
	// keyed means that its calls have idempotency keys, so that no fault excuses
	// that one ran twice.
	keyed bool
}

type servingKill struct {
	at      time.Time
	clients []string // of the killed node
}

// remoteAccess kills subscribers and serving nodes, and cuts or silences the links
// between them, while clients schedule over such links. Only the serving nodes have
// access to Redis.
func remoteAccess(w *world) {
	w.redis()
	w.deliveries.MaxOverlap = overlapLimit
	r := &remotes{world: w}
	r.populate()
	l := w.usual()
	l.clients = remoteClients
	l.timers = r.client
	l.work = func(rng *rand.Rand) Work {
		work := usualWork(rng)
		work.Settle = false     // a subscriber's verdict has no answer
		if rng.IntN(300) == 0 { // long enough to be extended when the link falls silent
			work.For = between(rng, 3*time.Second, 7*time.Second)
		}
		return work
	}
	end := w.begin(l)
	for i := range remoteStrikes {
		w.pause(between(w.rng, 100*time.Millisecond, 500*time.Millisecond))
		w.tried()
		switch i % 5 {
		case 0, 2:
			r.killSubscriber()
		case 1:
			r.killServing()
		case 3:
			r.cut()
		default:
			r.silence()
		}
	}
	end()
	w.settled(settleLimit)
	w.found = r.answers()
}

// populate starts the nodes and their subscribers.
func (r *remotes) populate() {
	r.Helper()
	var serving []*Node
	for range servingNodes {
		cfg := r.config()
		cfg.Listen = redistest.Address(r)
		r.addresses = append(r.addresses, cfg.Listen)
		serving = append(serving, r.fleet.Start(cfg))
	}
	for _, node := range serving {
		node.Ready()
	}
	for i := range remoteSubscribers {
		p := r.peer(r.fleet.Next(), i)
		cfg := r.config()
		cfg.Redis, cfg.Remote, cfg.MaxConcurrent = "", p.link.Addr, 20
		r.subscribers = append(r.subscribers, p)
		r.start(1, cfg)
	}
	r.nodes = append(r.nodes, serving...)
}

func (r *remotes) peer(name string, i int) *peer {
	r.Helper()
	node := i % servingNodes
	return &peer{name: name, node: node, link: faultproxy.StartRaw(r.T, r.addresses[node])}
}

// client returns a client that waits while its node is away. Half of the clients use
// idempotency keys.
func (r *remotes) client(name string) wakebell.TimerClient {
	r.Helper()
	p := r.peer(name, len(r.clients))
	p.keyed = len(r.clients)/servingNodes%2 == 1
	r.clients = append(r.clients, p)
	c, err := remote.Dial(r.Context(), p.link.Addr, nil, remote.DialConfig{DeadLink: time.Minute})
	require.NoError(r, err)
	r.Cleanup(c.Close)
	return &remoteClient{Client: c, t: r.T, keyed: p.keyed}
}

// answerLimit bounds the wait for an answer. It is far longer than nodes and links are
// away, also on a busy machine.
const answerLimit = 2 * time.Minute

// remoteClient uses one idempotency key for all attempts at a batch, if keyed, and
// fails the round if a call gets no answer.
type remoteClient struct {
	*remote.Client
	t       testing.TB
	keyed   bool
	batches int
}

func (c *remoteClient) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebelltype.Scheduled, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if c.keyed {
		ctx = remote.WithKey(ctx, fmt.Sprintf("%p/%d", c, c.batches))
	}
	done, err := c.Client.Schedule(ctx, drafts...)
	if err == nil {
		c.batches++
	}
	if ctx.Err() != nil {
		c.t.Errorf("a call got no answer within %v: %v", answerLimit, err)
	}
	return done, err
}

func (r *remotes) killSubscriber() {
	r.Helper()
	i := r.rng.IntN(remoteSubscribers)
	r.nodes[i].Kill()
	r.subscribers[i].name = r.fleet.Next()
	r.replace(i)
}

// killServing kills a serving node and starts another one.
func (r *remotes) killServing() {
	r.Helper()
	node := r.rng.IntN(servingNodes)
	i := remoteSubscribers + node
	r.nodes[i].Ready()
	kill := servingKill{at: time.Now()}
	r.nodes[i].Kill()
	for _, p := range r.subscribers {
		if p.node == node {
			r.deliveries.RecordFault(Fault{Kind: ServingKill, Target: p.name, From: kill.at, To: time.Now()})
		}
	}
	for _, p := range r.clients {
		if p.node == node {
			r.disturb(p, kill.at)
			kill.clients = append(kill.clients, p.name)
		}
	}
	r.kills = append(r.kills, kill)
	r.replace(i)
}

// cut closes the link of a subscriber or a client, sometimes for longer than a
// lease.
func (r *remotes) cut() {
	r.Helper()
	peers := append(slices.Clone(r.subscribers), r.clients...)
	p := peers[r.rng.IntN(len(peers))]
	from := time.Now()
	p.link.Cut()
	r.pause(between(r.rng, 100*time.Millisecond, r.deliveries.TTL*5/4))
	p.link.Mend()
	r.disturb(p, from)
}

// silence makes the link of a subscriber silent for longer than a lease: it is neither
// closed nor answered.
func (r *remotes) silence() {
	r.Helper()
	p := r.subscribers[r.rng.IntN(remoteSubscribers)]
	from := time.Now()
	p.link.Silence()
	r.pause(between(r.rng, r.deliveries.TTL*3/2, r.deliveries.TTL*4))
	p.link.Speak()
	r.disturb(p, from)
}

// disturb records that calls and leases of a peer may have lost messages in transit.
func (r *remotes) disturb(p *peer, from time.Time) {
	if !p.keyed {
		r.deliveries.RecordFault(Fault{Kind: LinkCut, Target: p.name, From: from, To: time.Now()})
	}
}

// answers returns how long clients had to wait for an answer after their node was
// killed.
func (r *remotes) answers() *Judgement {
	r.Helper()
	j := &Judgement{RecoveryBy: map[Cause][]time.Duration{}}
	for _, k := range r.kills {
		for _, name := range k.clients {
			if d, ok := r.deliveries.NextAnswer(name, k.at); ok {
				j.RecoveryBy[CauseCallUnanswered] = append(j.RecoveryBy[CauseCallUnanswered], d)
			}
		}
	}
	return j
}
