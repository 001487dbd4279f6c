package fleet

import (
	"time"
)

// outage is how long a fault lasts: up to two leases, and not longer than there are faults.
func (f *fleet) outage(o Op) time.Duration {
	d := 2 * leaseTTL * time.Duration(1+o.C) / 100
	return max(min(d, time.Until(f.calm)), 0)
}

// ends waits until a fault is over.
func (f *fleet) ends(o Op) { <-time.After(f.outage(o)) }

// cutLink breaks the connections between a client and a node, and refuses new ones for a while.
func (f *fleet) cutLink(o Op) {
	c, n := f.clients[o.A%len(f.clients)], f.nodes[o.B%len(f.nodes)]
	defer f.fault("the link between %s and %s is cut", c.name(), n.name())()
	defer f.net.separate(c.host, n.host)()
	if o.C%3 > 0 {
		f.ends(o)
	}
}

// silenceLink lets nothing through between a client and a node, in one direction or both.
func (f *fleet) silenceLink(o Op) {
	c, n := f.clients[o.A%len(f.clients)], f.nodes[o.B%len(f.nodes)]
	there, back := f.net.path(c.host, n.host), f.net.path(n.host, c.host)
	way := []string{"both ways", "to the node", "to the client"}[(o.A+o.B)%3]
	defer f.fault("the link between %s and %s is silent %s", c.name(), n.name(), way)()
	if way != "to the client" {
		there.silence(true)
		defer there.silence(false)
	}
	if way != "to the node" {
		back.silence(true)
		defer back.silence(false)
	}
	f.ends(o)
}

// delayLink makes what a node sends to a client late, and now and then the other way round.
func (f *fleet) delayLink(o Op) {
	c, n := f.clients[o.A%len(f.clients)], f.nodes[o.B%len(f.nodes)]
	p := f.net.path(n.host, c.host)
	if o.A%3 == 0 {
		p = f.net.path(c.host, n.host)
	}
	defer f.fault("the link between %s and %s is slow", c.name(), n.name())()
	p.slow(time.Duration(1+o.A) * leaseTTL / 100)
	defer p.slow(0)
	f.ends(o)
}

// restartNode ends a node and starts it again.
func (f *fleet) restartNode(o Op, end func(*node)) {
	n := f.nodes[o.A%len(f.nodes)]
	defer f.fault("%s restarts: %s", n.name(), o.kind.name)()
	end(n)
	f.ends(o)
	f.check(n.start(), "start a node")
}

// restartClient ends a client and connects it again, perhaps to another node.
func (f *fleet) restartClient(o Op, end func(*client)) {
	c := f.clients[o.A%len(f.clients)]
	defer f.fault("%s restarts: %s", c.name(), o.kind.name)()
	end(c)
	f.ends(o)
	c.start(f.nodes[o.B%len(f.nodes)])
}

func (f *fleet) redisAway(o Op) {
	defer f.fault("Redis is away")()
	f.store.goAway()
	defer f.store.comeBack()
	f.ends(o)
}

func (f *fleet) redisLoses(o Op) {
	defer f.fault("Redis loses requests and replies")()
	f.store.lose(0.05 + float64(o.A)/500)
	defer f.store.lose(0)
	f.ends(o)
}

// cutOffNode cuts a node off from Redis.
func (f *fleet) cutOffNode(o Op) {
	n := f.nodes[o.A%len(f.nodes)]
	defer f.fault("%s is cut off from Redis", n.name())()
	defer f.net.separate(n.host, f.store.at.Addr())()
	f.ends(o)
}

func (f *fleet) flushScripts(Op) {
	defer f.fault("scripts are flushed")()
	f.check(f.direct.ScriptFlush(f.ctx).Err(), "flush scripts")
}
