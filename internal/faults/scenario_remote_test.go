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
)

const (
	servingNodes      = 2
	remoteSubscribers = 4
	remoteClients     = 4
	remoteStrikes     = 15

	// besideLimit is how long handlers of one timer may run beside each other: the
	// gap in a process's run that is not reported, twice.
	besideLimit = 2 * stallAt
)

// remotes is what a round of the scenario has. The first of w.nodes are the
// subscribers, the others serve them.
type remotes struct {
	*world
	addresses   []string // of the serving nodes
	subscribers []*party
	clients     []*party
	kills       []servingKill
}

// party is a subscriber's process or a client, and its link to the node that
// serves it.
type party struct {
	name string
	link *faultproxy.Proxy
	node int // of addresses
	// keyed: its calls have idempotency keys. Nothing excuses them to have been
	// run twice.
	keyed bool
}

type servingKill struct {
	at      time.Time
	clients []string // that it served
}

// remotely kills subscribers and the nodes that serve them, and cuts or silences
// the links to them, while clients schedule over such links too. Only the serving nodes
// have Redis.
func remotely(w *world) {
	w.redis()
	w.ledger.Beside = besideLimit
	r := &remotes{world: w}
	r.populate()
	l := w.usual()
	l.clients = remoteClients
	l.timers = r.client
	l.work = func(rng *rand.Rand) Work {
		work := usualWork(rng)
		work.Settle = false     // a subscriber's verdict has no answer
		if rng.IntN(300) == 0 { // so that leases are extended when the link falls silent
			work.For = between(rng, 3*time.Second, 7*time.Second)
		}
		return work
	}
	end := w.begin(l)
	for i := range remoteStrikes {
		w.pause(between(w.rng, 100*time.Millisecond, 500*time.Millisecond))
		w.trials++
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
		p := r.party(r.fleet.Next(), i)
		cfg := r.config()
		cfg.Redis, cfg.Remote, cfg.MaxConcurrent = "", p.link.Addr, 20
		r.subscribers = append(r.subscribers, p)
		r.start(1, cfg)
	}
	r.nodes = append(r.nodes, serving...)
}

func (r *remotes) party(name string, i int) *party {
	r.Helper()
	node := i % servingNodes
	return &party{name: name, node: node, link: faultproxy.StartRaw(r.T, r.addresses[node])}
}

// client is one that waits for a node that is away. Every other has keys.
func (r *remotes) client(name string) wakebell.Timers {
	r.Helper()
	p := r.party(name, len(r.clients))
	p.keyed = len(r.clients)/servingNodes%2 == 1
	r.clients = append(r.clients, p)
	c, err := remote.Dial(r.Context(), p.link.Addr, remote.DialConfig{Config: remote.Config{Logger: quiet}, DeadLink: time.Minute})
	require.NoError(r, err)
	r.Cleanup(c.Close)
	return &remoteClient{Client: c, t: r.T, keyed: p.keyed}
}

// answerLimit is how long a call has for its answer, node and links being struck
// meanwhile: far more than they are away.
const answerLimit = 30 * time.Second

// remoteClient has one key for the tries of a batch, if any, and fails the round
// for a call that is never answered.
type remoteClient struct {
	*remote.Client
	t       testing.TB
	keyed   bool
	batches int
}

func (c *remoteClient) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebell.Scheduled, error) {
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
		c.t.Errorf("a call has had no answer for %v: %v", answerLimit, err)
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

// killServing kills a node that serves others, and starts one in its place.
func (r *remotes) killServing() {
	r.Helper()
	node := r.rng.IntN(servingNodes)
	i := remoteSubscribers + node
	r.nodes[i].Ready()
	kill := servingKill{at: time.Now()}
	r.nodes[i].Kill()
	for _, p := range r.subscribers {
		if p.node == node {
			r.ledger.Struck(Fault{Kind: Orphan, Who: p.name, From: kill.at, To: time.Now()})
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
	parties := append(slices.Clone(r.subscribers), r.clients...)
	p := parties[r.rng.IntN(len(parties))]
	from := time.Now()
	p.link.Cut()
	r.pause(between(r.rng, 100*time.Millisecond, r.ledger.TTL*5/4))
	p.link.Mend()
	r.disturb(p, from)
}

// silence has the link of a subscriber neither closed nor answered for longer
// than a lease.
func (r *remotes) silence() {
	r.Helper()
	p := r.subscribers[r.rng.IntN(remoteSubscribers)]
	from := time.Now()
	p.link.Silence()
	r.pause(between(r.rng, r.ledger.TTL*3/2, r.ledger.TTL*4))
	p.link.Speak()
	r.disturb(p, from)
}

// disturb notes that the calls and leases of who have lost what was on the way.
func (r *remotes) disturb(p *party, from time.Time) {
	if !p.keyed {
		r.ledger.Struck(Fault{Kind: Cut, Who: p.name, From: from, To: time.Now()})
	}
}

// answers finds out how long clients had to wait when their node was killed.
func (r *remotes) answers() *Judgement {
	r.Helper()
	j := &Judgement{RecoveryBy: map[Cause][]time.Duration{}}
	for _, k := range r.kills {
		for _, name := range k.clients {
			if d, ok := r.ledger.NextAnswer(name, k.at); ok {
				j.RecoveryBy[CauseUnanswered] = append(j.RecoveryBy[CauseUnanswered], d)
			}
		}
	}
	return j
}
