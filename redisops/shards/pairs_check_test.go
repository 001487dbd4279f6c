package shards

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wakebell/wakebell/internal/sharding"
	"github.com/wakebell/wakebell/messages/exchange"
)

// grain is the resolution of the instants that Redis stores.
const grain = 2 * time.Microsecond

// parkedAt is the score of a timer that waits for its key, as in lua/keys.lua.
const parkedAt = 253402300800

// check compares what is stored with what is to be delivered.
func (w *world) check() {
	first, second := w.scan(w.sites[0]), w.scan(w.sites[1])
	if w.moved {
		w.travel(first, second)
	}
	for i, all := range []stored{first, second} {
		s := w.sites[i]
		if len(all.twice) > 0 {
			w.fail("two timers with the id %q", all.twice)
		}
		for id := range s.timers {
			if _, there := all.timers[id]; !there && !all.moving[id] {
				w.fail("%s is lost", id)
			}
		}
		for id := range all.timers {
			if s.timers[id] == nil {
				w.fail("%s is stored, and there is no such timer", id)
			}
		}
	}
}

// travel notes which timers have left a Redis for another, and where they have arrived. A
// timer whose id the target has is dropped.
func (w *world) travel(from, to stored) {
	source, target := w.sites[0].timers, w.sites[1].timers
	for id, t := range w.transit {
		if from.leaving[id] {
			continue
		}
		_, back := from.timers[id]
		_, arrived := to.timers[id]
		switch {
		case back && source[id] == nil: // the move was aborted
			source[id] = t
		case arrived && target[id] == nil:
			target[id] = t
		case !back && !arrived:
			w.fail("%s is lost on its way", id)
		}
		delete(w.transit, id)
	}
	for id, t := range source {
		if _, here := from.timers[id]; here || from.moving[id] && !from.leaving[id] { // to other shards
			continue
		}
		_, arrived := to.timers[id]
		switch {
		case from.leaving[id]:
			if w.transit[id] == nil { // else the one that was taken first arrives first
				w.transit[id] = t
			}
			delete(source, id)
		case arrived: // within one step
			if target[id] == nil {
				target[id] = t
			}
			delete(source, id)
		}
	}
}

// checkLimits checks that a claim has not exceeded a limit that all nodes use.
func (w *world) checkLimits(s *site, src *modelSource) {
	if len(s.flows()) != 1 || len(s.known) != 1 {
		return
	}
	flow, place := src.flow, src.src.Name()
	last := s.runs[len(s.runs)-1]
	running, ofKey, everywhere := 0, 0, 0
	var starts, keyStarts []time.Time
	for _, r := range s.runs {
		if r.live() && last.key != "" && r.key == last.key && (r.period == w.period || r.counts) {
			ofKey++
		}
		if r.period != w.period || r.released {
			continue
		}
		if r.place == place {
			starts = append(starts, r.from)
		}
		if last.key != "" && r.key == last.key {
			keyStarts = append(keyStarts, r.from)
		}
		if r.live() {
			everywhere++
		}
		if r.live() && r.place == place {
			running++
		}
	}
	switch {
	case flow.MaxInFlight > 0 && running > flow.MaxInFlight:
		w.fail("%d leases at once in %s, with MaxInFlight(%d)", running, place, flow.MaxInFlight)
	case src.whole.MaxInFlight > 0 && everywhere > src.whole.MaxInFlight:
		w.fail("%d leases at once in all shards, with MaxInFlight(%d)", everywhere, src.whole.MaxInFlight)
	case flow.PerKey > 0 && ofKey > flow.PerKey:
		w.fail("%d timers of %q run at once, with PerKey(%d)", ofKey, last.key, flow.PerKey)
	}
	if flow.RateLimit > 0 {
		w.checkRate("of "+place, starts, flow.RateLimit, flow.RateBurst, flow.RatePer)
	}
	if flow.KeyRateLimit > 0 {
		w.checkRate("of the key "+last.key, keyStarts, flow.KeyRateLimit, flow.KeyRateBurst, flow.KeyRatePer)
	}
}

// checkRate checks that in no span until now there were more starts than the limit allows.
func (w *world) checkRate(what string, starts []time.Time, n, burst int, per time.Duration) {
	if burst == 0 {
		burst = n
	}
	slices.SortFunc(starts, time.Time.Compare)
	const slack = 1e-3
	for i, from := range starts {
		span := time.Since(from)
		allowed := float64(burst) + span.Seconds()/per.Seconds()*float64(n) + slack
		if float64(len(starts)-i) > allowed {
			w.fail("%d starts %s in %v, with %d in %v and a burst of %d", len(starts)-i, what, span, n, per, burst)
		}
	}
}

// audit lets a live node sweep and claim all that it may, and then checks that each due
// timer that does not run waits for a reason that ends.
func (w *world) audit(s *site) {
	n := w.awake(s)
	w.follow(n)
	if slices.ContainsFunc(n.sources, func(src *modelSource) bool { return src.paused }) {
		return // a named reason
	}
	flows := s.flows()
	if len(flows) != 1 { // the other node has not followed: it does so soon
		for _, other := range s.nodes {
			if other.alive {
				w.follow(other)
			}
		}
	}
	w.whileBusy(func() (got int) {
		for _, src := range n.sources {
			got += w.claim(n, src, 500, time.Minute)
		}
		return got
	})
	w.waits(s, n)
}

// awake returns a live node of a site.
func (w *world) awake(s *site) *node {
	for _, n := range s.nodes {
		if n.alive {
			return n
		}
	}
	w.note("  node %d starts", s.nodes[0].number)
	w.start(s.nodes[0])
	return s.nodes[0]
}

// waits checks that each due timer that does not run waits for a named reason.
func (w *world) waits(s *site, n *node) {
	all, now := w.scan(s), time.Now().Add(-grain)
	score := func(id string) time.Time { return time.UnixMicro(int64(all.timers[id].score * 1e6)) }
	for id, t := range s.timers {
		at, here := all.timers[id]
		if !here || t.due.After(now) || s.running(id) != nil {
			continue
		}
		src := n.source(at.place)
		switch {
		case src == nil:
			w.fail("%s is due in %s, which no node polls", id, at.place)
		case src.withheld: // until its timers have moved, or leases elsewhere have ended
		case at.score == parkedAt:
			if !w.blocked(s, src, t, all) && !w.closed(s, at.place, t) {
				w.fail("%s is due since %v and parked, and nothing of its key runs or waits", id, now.Sub(t.due))
			}
		case !score(id).After(now.Add(3 * grain)):
			if !src.held.After(now) {
				w.fail("%s is due since %v and not claimed", id, now.Sub(t.due))
			}
		case score(id).Sub(now) > w.longestWait(src.flow):
			w.fail("%s is due since %v, and %v away", id, now.Sub(t.due), score(id).Sub(now))
		}
	}
}

// longestWait is how long a timer may wait for a token of its key: after a move also for one
// of the limit that the first Redis had.
func (w *world) longestWait(f exchange.Flow) (longest time.Duration) {
	flows := []exchange.Flow{f}
	for i := range tunings {
		if w.moved {
			flows = append(flows, flowOf(tunings[i]))
		}
	}
	for _, f := range flows {
		if f.KeyRateLimit > 0 {
			longest = max(longest, f.KeyRatePer/time.Duration(f.KeyRateLimit)+100*time.Millisecond)
		}
	}
	return longest
}

// blocked reports whether a parked timer waits for others of its key.
func (w *world) blocked(s *site, src *modelSource, t *timer, all stored) bool {
	now, blockers := time.Now(), 0
	for id, other := range s.timers {
		at, here := all.timers[id]
		if id == t.id || modelKey(id) != modelKey(t.id) || !here || at.place != all.timers[t.id].place {
			continue
		}
		until := time.UnixMicro(int64(at.score * 1e6)).Sub(now)
		switch {
		case s.running(id) != nil, // it holds the key
			other.failed && other.due.After(now) && (!w.skips || other.keeps),                     // it waits for its retry
			until <= 0 && src.held.After(now),                                                     // it is due, and a limit of the topic holds it back
			src.flow.KeyRateLimit > 0 && at.score != parkedAt && until <= w.longestWait(src.flow): // it waits for a token
			blockers++
		}
	}
	if src.flow.PerKey > 0 && src.flow.KeyRateLimit == 0 && !src.held.After(now) {
		return blockers >= src.flow.PerKey
	}
	return blockers > 0
}

// closed reports whether timers of the key of a timer move in several steps, of which the
// next one comes soon.
func (w *world) closed(s *site, place string, t *timer) bool {
	state, _ := s.rdb.HGet(w.ctx, s.keys.Of(place).KeyStates, modelKey(t.id)).Result()
	at, _, _ := strings.Cut(state, " ")
	at, is := strings.CutPrefix(at, "c")
	until, _ := strconv.ParseFloat(at, 64)
	_, moves := w.moves(s)
	return is && (moves || time.Now().Before(time.UnixMicro(int64(until*1e6))))
}

// finish ends what was begun, and checks that everything is delivered then.
func (w *world) finish() {
	for _, s := range w.sites {
		w.endReshard(s)
	}
	if w.moved {
		w.endMove()
	}
	for _, s := range w.sites {
		w.deliverAll(s)
	}
}

// endReshard continues a resharding until it has ended.
func (w *world) endReshard(s *site) {
	if s.control.Paused {
		control, err := s.clients[0].Resume(w.ctx, modelTopic)
		w.must(err, "resume")
		s.control = control
	}
	l, _, err := s.clients[0].layouts.Stored(w.ctx, modelTopic)
	w.must(err, "layout")
	to := l.Count()
	if l.To > 0 {
		to = l.To
	}
	if l.To == 0 && !l.Moves() {
		return
	}
	var p Progress
	for began := time.Now(); time.Since(began) < 3*time.Minute; {
		n := w.awake(s)
		w.follow(n)
		w.ackAll(s, n)
		wait, err := s.clients[0].ReshardStep(w.ctx, modelTopic, to, &p)
		if !w.must(err, "reshard") {
			break
		}
		if p.Done {
			return
		}
		w.pass(max(wait, time.Second/2)) // leases of nodes that died expire meanwhile
	}
	l, _, _ = s.clients[0].layouts.Stored(w.ctx, modelTopic)
	for _, name := range sharding.Names(modelTopic, l.From) {
		used, _ := s.clients[0].used(w.ctx, name)
		w.note("  %s is used: %v", name, used)
	}
	w.fail("the change to %d shards does not end: %s", to, l.Text())
}

// endMove continues a move until it has ended.
func (w *world) endMove() {
	var p MoveProgress
	for began := time.Now(); time.Since(began) < 3*time.Minute; {
		if w.move == nil && !w.beginMove() {
			w.abortMove(step{})
			w.check()
			return
		}
		for _, s := range w.sites {
			n := w.awake(s)
			w.follow(n)
			w.ackAll(s, n)
		}
		wait, err := w.move.next(w.ctx, &p)
		if !w.must(err, "move") || p.Done {
			w.check()
			return
		}
		w.check()
		w.pass(max(wait, 10*time.Millisecond))
	}
	w.fail("the move does not end: %+v", p)
}

// ackAll lets the nodes of a site finish what they run, and one of them run what is due.
func (w *world) ackAll(s *site, n *node) (done int) {
	w.whileBusy(func() (got int) {
		for _, other := range s.nodes {
			w.settle(other.leases(), exchange.Ack, 0)
		}
		for _, src := range n.sources {
			got += w.claim(n, src, 500, 2*time.Minute)
		}
		done += got
		return got
	})
	return done
}

// whileBusy calls claim until it does nothing, and fails if that never comes.
func (w *world) whileBusy(claim func() int) {
	for range 1000 {
		if claim() == 0 {
			return
		}
	}
	w.fail("timers are due, and a node that asks again and again gets none")
}

// deliverAll goes on in time until all timers are delivered.
func (w *world) deliverAll(s *site) {
	idle := 0
	for idle < 20 && len(s.timers) > 0 {
		n := w.awake(s)
		w.follow(n)
		if w.ackAll(s, n) > 0 {
			idle = 0
			continue
		}
		idle++
		w.waits(s, n)
		w.pass(w.untilNext(s, n))
	}
	w.check()
	for id, t := range s.timers {
		w.fail("%s is not delivered: it was due %v ago", id, time.Since(t.due))
	}
}

// untilNext is for how long nothing is to be done.
func (w *world) untilNext(s *site, n *node) time.Duration {
	next := time.Hour
	for _, src := range n.sources {
		if d := time.Until(src.held); d > 0 {
			next = min(next, d)
		}
	}
	for _, at := range w.scan(s).timers {
		if d := time.Until(time.UnixMicro(int64(at.score*1e6) + 1)); at.score != parkedAt && d > 0 {
			next = min(next, d)
		}
	}
	return next
}

// pass lets time go on.
func (w *world) pass(d time.Duration) { <-time.After(d) }
