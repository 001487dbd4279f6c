package shards

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/internal/storetest"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// node does what a node does for a topic, step by step.
type node struct {
	site    *site
	number  int
	alive   bool
	store   *Store
	sources []*modelSource // those that it polls
	ended   []*modelSource // those that it polled before, whose leases it still has
}

// modelSource is the poller of a physical topic.
type modelSource struct {
	src         *timers.TimerSource
	whole       exchange.Flow // limits of the topic
	part        sharding.Part // of them, by the layout that the node knows
	flow        exchange.Flow // what the part has of them
	withheld    bool          // its part is nothing: it must not claim
	paused      bool
	incarnation string
	sequence    uint64
	held        time.Time // until when flow control lets nothing be claimed
}

// start starts a node, as a process that begins.
func (w *world) start(n *node) {
	n.alive, n.store, n.sources, n.ended = true, w.store(n.site.rdb), nil, nil
	w.follow(n)
}

// crash ends the process of a node. Its leases stay until they expire.
func (w *world) crash(n *node) {
	n.alive, n.sources, n.ended = false, nil, nil
	w.noteFlows()
}

// follow makes a node learn the layout and the settings of the topic, which begins with a
// sweep of the keys.
func (w *world) follow(n *node) {
	if err := n.store.Map().Renew(w.ctx); err != nil {
		w.fail("renew: %v", err)
	}
	if _, err := n.store.Settle(w.ctx, modelTopic); err != nil {
		w.fail("settle the layout: %v", err)
	}
	if _, err := n.store.DeliverAbandoned(w.ctx, modelTopic); err != nil {
		w.fail("deliver what was left behind: %v", err)
	}
	names, err := n.store.Polled(w.ctx, modelTopic)
	if err != nil {
		w.fail("polled: %v", err)
	}
	for _, name := range names {
		has := func(s *modelSource) bool { return s.src.Name() == name }
		if slices.ContainsFunc(n.sources, has) {
			continue
		}
		if i := slices.IndexFunc(n.ended, has); i >= 0 { // a failover has brought it back
			n.sources, n.ended = append(n.sources, n.ended[i]), slices.Delete(n.ended, i, i+1)
			continue
		}
		o := timers.SourceOptions{MaxClaims: mostClaims, SkipFailed: w.skips}
		n.sources = append(n.sources, &modelSource{src: n.store.timers.Source(name, o), incarnation: rand.Text()})
	}
	n.sources = slices.DeleteFunc(n.sources, func(s *modelSource) bool {
		gone := !slices.Contains(names, s.src.Name())
		if gone {
			n.ended = append(n.ended, s)
		}
		return gone
	})
	parts, err := n.store.Parts(w.ctx, modelTopic)
	if err != nil {
		w.fail("parts of the limits: %v", err)
	}
	for _, s := range n.sources {
		c, err := n.store.timers.Control(w.ctx, s.src.Name())
		if err != nil {
			w.fail("control: %v", err)
		}
		s.whole, s.part, s.paused = flowOf(c.Settings), parts[s.src.Name()], c.Paused
		s.flow, s.withheld = shareOf(s.whole, s.part)
		if err := s.src.SweepKeys(w.ctx, s.flow); err != nil {
			w.fail("sweep: %v", err)
		}
	}
	w.noteFlows()
}

// mostClaims is after how many claims without a verdict a timer is dead-lettered.
const mostClaims = 4

func flowOf(s wakebelltype.Settings) exchange.Flow {
	return exchange.Flow{
		RateLimit: s.RateLimit, RatePer: s.RatePer, RateBurst: s.RateBurst, MaxInFlight: s.MaxInFlight,
		PerKey: s.PerKey, KeyRateLimit: s.KeyRateLimit, KeyRatePer: s.KeyRatePer, KeyRateBurst: s.KeyRateBurst, FairKeys: s.FairKeys,
	}
}

// shareOf returns what a physical topic has of the limits of a topic, and whether it must not
// claim timers, as the poller computes it.
func shareOf(flow exchange.Flow, part sharding.Part) (of exchange.Flow, withheld bool) {
	if part == (sharding.Part{}) {
		return flow, false
	}
	inFlight := part.Share(flow.MaxInFlight)
	if part.Role == sharding.Resting {
		return flow, inFlight < 0 || flow.RateLimit > 0
	}
	if slower := part.Slower(); flow.RateLimit > 0 {
		flow.RateBurst = max(cmp.Or(flow.RateBurst, flow.RateLimit)/slower, 1)
		flow.RatePer *= time.Duration(slower)
	}
	if inFlight < 0 {
		return flow, true
	}
	flow.MaxInFlight = inFlight
	return flow, false
}

// source returns the poller of a physical topic; nil: the node has none.
func (n *node) source(name string) *modelSource {
	for _, s := range slices.Concat(n.sources, n.ended) {
		if s.src.Name() == name {
			return s
		}
	}
	return nil
}

// flows are the limits that nodes of a site use now.
func (s *site) flows() (all []exchange.Flow) {
	for _, n := range s.nodes {
		for _, src := range n.sources {
			if !slices.Contains(all, src.whole) {
				all = append(all, src.whole)
			}
		}
	}
	return all
}

// limits describes all that nodes of a site know of limits: those of the topic, and the
// parts of its physical topics.
func (s *site) limits() (all []string) {
	for _, n := range s.nodes {
		var known []string
		for _, src := range n.sources {
			p := src.part
			p.Busy = 0 // read anew each time
			known = append(known, fmt.Sprint(src.src.Name(), p, src.whole))
		}
		if text := strings.Join(known, ", "); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// noteFlows begins a new period if the limits have changed that nodes use: a limit holds for
// the time in which it is that of all nodes.
func (w *world) noteFlows() {
	for _, s := range w.sites {
		if s == nil {
			continue
		}
		if now := s.limits(); !slices.Equal(now, s.known) {
			s.known = now
			w.period++
		}
	}
}

// run sends an exchange.
func (w *world) run(s *modelSource, want int, ttl time.Duration, settle ...exchange.Settlement) *exchange.Reply {
	s.sequence++
	return w.send(s, &exchange.Request{Incarnation: s.incarnation, Sequence: s.sequence, Want: want, LeaseTTL: ttl, Flow: s.flow, Settle: settle})
}

func (w *world) send(s *modelSource, r *exchange.Request) *exchange.Reply {
	reply, err := s.src.Exchange(w.ctx, r)
	if err != nil {
		w.fail("exchange on %s: %v", s.src.Name(), err)
	}
	s.held = time.Now().Add(reply.Held)
	return reply
}

// claim makes a node claim timers of a physical topic, and returns for how many it did
// something, see claimed.
func (w *world) claim(n *node, s *modelSource, want int, ttl time.Duration, settle ...*run) int {
	if s.paused || s.withheld {
		want = 0
	}
	if want == 0 && len(settle) == 0 {
		return 0
	}
	var verdicts []exchange.Settlement
	for _, r := range settle {
		verdicts = append(verdicts, storetest.Verdict(exchange.Ack, r.lease))
	}
	reply := w.run(s, want, ttl, verdicts...)
	w.settled(n.site, reply, settle, exchange.Ack, 0)
	return w.claimed(n, s, reply, ttl)
}

// claimed notes what a claim has given, and returns for how many timers a node did something,
// or is to ask again at once.
func (w *world) claimed(n *node, s *modelSource, reply *exchange.Reply, ttl time.Duration) int {
	if s.flow.KeyRateLimit > 0 && s.flow.PerKey == 0 { // only those that wait for a token hold a key then
		for _, r := range n.site.runs {
			r.counts = r.counts && r.place != s.src.Name()
		}
	}
	for _, d := range reply.DeadLettered {
		w.note("  %s is dead: %s", d.ID, d.Reason)
		n.site.remove(d.ID)
		n.site.dead[d.ID] = true
	}
	for _, l := range reply.Leases {
		w.leased(n, s, l, ttl)
	}
	if len(reply.Leases) > 0 || reply.Held > 0 {
		w.note("  %s got %q, held for %v", s.src.Name(), storetest.IDs(reply.Leases), reply.Held)
	}
	again := 0
	if reply.Next >= 0 && reply.Next <= grain && reply.Held == 0 {
		again = 1
		w.pass(grain) // others of a key are due a microsecond later
	}
	return len(reply.Leases) + len(reply.DeadLettered) + again
}

// leased notes a lease, and checks that its timer was to be run.
func (w *world) leased(n *node, s *modelSource, l exchange.Lease, ttl time.Duration) {
	at, now := n.site, time.Now()
	t := at.timers[l.ID]
	switch {
	case t == nil:
		w.fail("%s is delivered, and there is no such timer", l.ID)
	case string(l.Payload) != t.payload:
		w.fail("%s is delivered with %q, and its payload is %q", l.ID, l.Payload, t.payload)
	case t.due.After(now.Add(grain)):
		w.fail("%s is delivered %v early", l.ID, t.due.Sub(now))
	case at.running(l.ID) != nil:
		w.fail("%s is delivered while it runs", l.ID)
	}
	t.delivered, t.failed = true, false
	counts := s.src.ByKey() && (s.flow.PerKey > 0 || s.flow.KeyRateLimit == 0)
	at.runs = append(at.runs, &run{
		id: l.ID, key: t.key, place: s.src.Name(), from: now, until: now.Add(ttl), period: w.period, flow: s.flow, counts: counts,
		version: t.payload, node: n, lease: l,
	})
	w.checkLimits(at, s)
}

// settle ends leases of a node with a verdict.
func (w *world) settle(runs []*run, verdict exchange.Verdict, delay time.Duration) {
	if len(runs) == 0 {
		return
	}
	n := runs[0].node
	byPlace := map[string][]*run{}
	for _, r := range runs {
		byPlace[r.place] = append(byPlace[r.place], r)
	}
	for _, s := range slices.Concat(n.sources, n.ended) {
		list := byPlace[s.src.Name()]
		if len(list) == 0 {
			continue
		}
		var verdicts []exchange.Settlement
		for _, r := range list {
			v := storetest.Verdict(verdict, r.lease)
			v.Delay = delay
			verdicts = append(verdicts, v)
		}
		w.settled(n.site, w.run(s, 0, time.Minute, verdicts...), list, verdict, delay)
	}
}

// settled notes what became of leases.
func (w *world) settled(at *site, reply *exchange.Reply, runs []*run, verdict exchange.Verdict, delay time.Duration) {
	refused := map[int]exchange.RefusalReason{}
	for _, f := range reply.Refused {
		refused[f.Index] = f.Reason
	}
	for i, r := range runs {
		why, no := refused[i]
		if no && r.live() {
			w.fail("%s of %s is refused, %s, and the lease is valid", names[verdict], r.id, why)
		}
		t := at.timers[r.id]
		if r.ended = true; no {
			continue
		}
		if t == nil || t.payload != r.version {
			w.fail("%s of %s is accepted, and the timer was replaced or is gone", names[verdict], r.id)
		}
		switch verdict {
		case exchange.Ack:
			at.remove(r.id)
		case exchange.DeadLetter:
			at.remove(r.id)
			at.dead[r.id] = true
		case exchange.Nack:
			t.failed, t.due = true, time.Now().Add(delay)
			t.keeps = !r.node.source(r.place).src.ByKey()
		case exchange.Release:
			r.released, t.delivered = true, r.lease.Claims > 1
		}
	}
}

var names = map[exchange.Verdict]string{exchange.Ack: "ack", exchange.Nack: "nack", exchange.DeadLetter: "reject", exchange.Release: "release"}

// leases are the leases that a node has not given up, which may have expired.
func (n *node) leases() (all []*run) {
	for _, r := range n.site.runs {
		if r.node == n && !r.ended && n.alive && n.source(r.place) != nil {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b *run) int { return cmp.Compare(a.id, b.id) })
	return all
}
