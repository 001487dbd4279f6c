package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/internal/embedded"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// travels is the topic that moves to a second Redis. Its ids are never used twice: which of two
// timers with an id stays is said by the model of pairs.
const travels = "travels"

// movePage is how many timers a script of a move takes at most.
const movePage = 200

// moveFlows are the limits of that topic.
var moveFlows = []exchange.Flow{
	{},
	{PerKey: 1},
	{KeyRateLimit: 1, KeyRatePer: 10 * time.Second, KeyRateBurst: 2},
	{KeyRateLimit: 1, KeyRatePer: 10 * time.Second, KeyRateBurst: 1, PerKey: 1},
}

// journey is the move of a topic, with what both Redis have of it.
type journey struct {
	sim    *sim
	second *miniredis.Miniredis
	rdb    *redis.Client
	flow   exchange.Flow
	sides  [2]*side
	timers map[string]*version // that have not ended, in either Redis
	again  map[string]*version // that the first Redis has again, beside the second, or after their end there
	count  int
	began  bool
	moving bool // a process moves it, or will go on
	order  Op   // what moves it

	running, begun, undone *shards.MoveProgress // the last one, that has made a step, of which the first Redis has lost the beginning
}

// side is what is known of the topic in one of the two Redis.
type side struct {
	*journey
	number   int
	store    *shards.Store
	mortal   *shards.Store // of the process that moves it
	life     *life
	leases   map[string]*version // by id and token
	answered map[string]uint64
	starts   *starts
}

// beside returns what is known of topics beside the first one, which do not move.
func (s *sim) beside(its *life) *side {
	return &side{
		journey: &journey{sim: s, timers: map[string]*version{}}, store: s.clients[0].store, life: its,
		leases: map[string]*version{}, answered: map[string]uint64{}, starts: newStarts(s, exchange.Flow{}, func() bool { return true }),
	}
}

// travelling returns the journey, and begins it: with a second Redis, and nodes for both.
func (s *sim) travelling() *journey {
	if s.journey != nil {
		return s.journey
	}
	server := embedded.Start()
	server.Miniredis().ClockTTL(false)
	options := server.Options()
	options.PoolSize, options.MaxRetries = 100, -1
	j := &journey{sim: s, second: server.Miniredis(), rdb: redis.NewClient(options), timers: map[string]*version{}, again: map[string]*version{}, flow: moveFlows[s.plan.Seed%uint64(len(moveFlows))]}
	s.atEnd = append(s.atEnd, func() { _ = j.rdb.Close(); server.Close() })
	for i, of := range []*redis.Options{s.options, options} {
		mortal, its := redis.NewClient(of), new(life)
		its.begin(immortal)
		mortal.AddHook(its)
		s.atEnd = append([]func(){func() { _ = mortal.Close() }}, s.atEnd...)
		rdb := []*redis.Client{s.rdb, j.rdb}[i]
		mover := s.store(mortal)
		mover.NameMove = func() string { return strconv.FormatUint(s.random.Uint64(), 36) }
		j.sides[i] = &side{
			journey: j, number: i, store: s.store(rdb), mortal: mover, life: its,
			leases: map[string]*version{}, answered: map[string]uint64{}, starts: newStarts(s, j.flow, func() bool { return true }),
		}
	}
	if shards := 1 + int(s.plan.Seed/4%2); shards > 1 {
		if _, err := j.sides[0].store.Divide(s.ctx, travels, shards); err != nil {
			s.broken("errors", "divide: %v", err)
		}
	}
	s.journey, s.reshaped = j, time.Now()
	s.tick()
	return j
}

// schedule schedules a few timers, or hundreds of one key. A client that stays with the old
// address writes to the first Redis, the other one to the second as soon as the move has begun.
func (j *journey) schedule(o Op) {
	c, to, n := j.sim.client(o), j.sides[0], 1+o.B%4
	if j.began && c.number == 1 {
		to = j.sides[1]
	}
	if o.A%10 == 0 && len(j.timers) < movePage {
		n = movePage + 50
	}
	all := make([]timers.Entry, n)
	for i := range all {
		all[i] = timers.Entry{ID: fmt.Sprint("w", j.count), Payload: j.sim.judge.payload(), At: time.Now().Add(moveDelays[(o.A+i)%len(moveDelays)])}
		if j.count++; n > movePage || o.B%3 > 0 {
			all[i].Key = fmt.Sprint("key ", o.A%3)
		}
	}
	done := effect{sim: j.sim}
	c.call("schedule "+all[0].ID+" where it moves", func(key *timers.Key) error {
		b := timers.NewBatch("", n)
		for i := range all {
			if err := b.Add(travels, &all[i]); err != nil {
				return err
			}
		}
		out, err := to.store.Write(j.sim.ctx, key, b)
		if err != nil || done.happened() {
			return err
		}
		if done.note(); to.number == 1 {
			done.at = 0 // the second Redis loses nothing
		}
		for i := range all {
			if out[i].Outcome != wakebelltype.OutcomeCreated {
				j.sim.broken("answers", "schedule of %s: %v, and no timer had that id", all[i].ID, out[i].Outcome)
			}
			j.sim.result.Scheduled++
			v := &version{id: all[i].ID, key: all[i].Key, payload: string(all[i].Payload), due: out[i].Due}
			if to.number == 0 && j.timers[v.id] != nil { // it has moved, and the first Redis has lost that it had it
				j.again[v.id] = v
			} else {
				j.timers[v.id] = v
			}
			if n < movePage || i == 0 {
				c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(out[i].Due.Sub(j.sim.now()), 0), Sent: j.sim.now()})
			}
		}
		return nil
	})
}

// moveDelays are the delays of these timers.
var moveDelays = []time.Duration{0, 5 * time.Second, 12 * time.Second, -time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// move moves the topic, in steps of a process that may die between any two of its commands, and
// is started again then.
func (j *journey) move(o Op) {
	if j.moving {
		return
	}
	first := o                                           // to have something to move
	first.Client = 0                                     // who writes to the first Redis
	first.A += len(moveDelays) - 1 - o.A%len(moveDelays) // with the longest delay
	j.schedule(first)
	j.began, j.moving = true, true
	j.start(o, new(shards.MoveProgress))
}

func (j *journey) start(o Op, p *shards.MoveProgress) {
	j.order, j.running = o, p
	for _, of := range j.sides {
		of.life.begin(immortal)
		if j.sim.faulty && o.B%2 == 1 {
			of.life.begin(1 + o.B/10)
		}
	}
	j.step(o, p)
}

func (j *journey) step(o Op, p *shards.MoveProgress) {
	s := j.sim
	s.reshaped = time.Now()
	s.loseNext()
	wait, err := j.sides[0].mortal.MoveStep(s.ctx, travels, j.sides[1].mortal, travels, wakebelltype.MoveOptions{All: o.B%3 == 0}, p)
	switch {
	case errors.Is(err, wakebelltype.ErrInvalid) && p == j.undone: // it asks for that
		j.start(o, new(shards.MoveProgress))
		return
	case errors.Is(err, errDied):
		s.note("the move dies")
		again := o
		again.B += 60 // it lives longer
		s.after(time.Duration(o.A)*100*time.Millisecond, func() { j.start(again, new(shards.MoveProgress)) })
		return
	case err != nil:
		s.broken("errors", "move: %v", err)
	}
	j.begun = p
	s.note("moved %d, left %d, done %t", p.Moved, p.Left, p.Done)
	if p.Done {
		j.moving = false
		j.sides[1].starts.takeOver(j.sides[0].starts)
		return
	}
	s.after(max(wait, time.Millisecond), func() { j.step(o, p) })
}

// left returns how many timers have not ended.
func (j *journey) left() int {
	if j == nil {
		return 0
	}
	n := len(j.timers)
	for id := range j.again {
		if j.sides[0].has(id) {
			n++
		}
	}
	if j.moving {
		n++
	}
	return n
}

// all returns the timers that have not ended.
func (j *journey) all() map[string]*version {
	if j == nil {
		return nil
	}
	return j.timers
}

// poll starts the pollers of both Redis in a node.
func (j *journey) poll(n *node) {
	for i, of := range j.sides {
		if n.journeys[i] == nil {
			n.journeys[i] = j.sim.store([]*redis.Client{j.sim.rdb, j.rdb}[i])
		}
		n.track(&n.travels[i], n.journeys[i], travels, func(p *poller) { p.account, p.limits, p.second = of, &j.flow, i == 1 })
	}
}

// exchanged checks an exchange that one of the two Redis has carried out, or answered again.
func (d *side) exchanged(r *exchange.Request, reply *exchange.Reply) {
	stream := fmt.Sprint(r.Incarnation, "/", r.Stream)
	if d.answered[stream] == r.Sequence {
		return
	}
	d.answered[stream] = r.Sequence
	refused := map[int]bool{}
	for _, f := range reply.Refused {
		refused[f.Index] = true
	}
	for i, s := range r.Settle {
		if v := d.of(s.Held, refused[i]); v != nil {
			d.settled(v, s)
		}
	}
	for i, held := range r.Extend {
		if v := d.of(held, refused[len(r.Settle)+i]); v != nil {
			v.token, v.until = reply.Extended, d.sim.expiry(r.LeaseTTL)
			d.leases[held.ID+" "+string(v.token)] = v
		}
	}
	for _, dead := range reply.DeadLettered {
		if dead.Index < 0 {
			d.remove(dead.ID)
		}
	}
	for i := range reply.Leases {
		d.claimed(r, &reply.Leases[i])
	}
}

// of returns the timer that a verdict or an extension counts for; nil: it does not.
func (d *side) of(h exchange.Held, refused bool) *version {
	v := d.leases[h.ID+" "+string(h.Token)]
	if v != nil && (d.at(h.ID) != v || v.token != h.Token) {
		v = nil
	}
	switch {
	case v == nil && !refused:
		d.sim.broken("fence", "a verdict of %s counts, and its lease is void", h.ID)
	case v != nil && refused && v.counts(d.sim.now()):
		d.sim.broken("acks count", "a verdict of %s is refused, and its lease is valid", h.ID)
	case refused:
		return nil
	}
	return v
}

func (d *side) settled(v *version, s exchange.Settlement) {
	v.token = ""
	switch s.Verdict {
	case exchange.Ack:
		if !v.handled {
			d.sim.broken("acks", "%s is acked, and no handler has succeeded", v.id)
		}
		d.remove(v.id)
	case exchange.DeadLetter, exchange.Fail:
		d.remove(v.id)
	case exchange.Nack:
		v.due = d.sim.now().Add(s.Delay)
	case exchange.Release:
		d.starts.released(v)
	}
}

func (d *side) claimed(r *exchange.Request, l *exchange.Lease) {
	v, now := d.at(l.ID), d.sim.now()
	if v == nil && d.again[l.ID] != nil { // it has moved once more
		v = d.again[l.ID]
		d.timers[l.ID] = v
		delete(d.again, l.ID)
	}
	switch {
	case v == nil:
		d.sim.broken("fence", "%s is delivered in Redis %d, and there is no timer", l.ID, d.number)
	case string(l.Payload) != v.payload:
		d.sim.broken("payloads", "%s is delivered with %s, expected %s", l.ID, l.Payload, v.payload)
	case v.early(now.Add(r.Ahead)):
		d.sim.broken("never early", "%s is claimed %v early", l.ID, v.due.Sub(now))
	case v.counts(now):
		d.sim.broken("exclusion", "%s is claimed in Redis %d, and its lease has not expired", l.ID, d.number)
	}
	for _, other := range d.timers {
		if d.flow.PerKey == 1 && other != v && other.key == v.key && v.key != "" && other.counts(now) && d.leases[other.id+" "+string(other.token)] == other {
			d.sim.broken("key", "%s is claimed, and %s of its key runs", v.id, other.id)
		}
	}
	d.starts.claimed(v)
	v.token, v.until = l.Token, d.sim.expiry(r.LeaseTTL)
	d.leases[l.ID+" "+string(l.Token)] = v
}

// begins checks that a handler may begin.
func (d *side) begins(_ *poller, l *leasing.Lease, _ *run) {
	d.sim.result.Travelled++
	if d.leases[l.ID+" "+string(l.Token)] == nil {
		d.sim.broken("fence", "%s begins without a lease", l.ID)
	}
}

func (d *side) succeeded(l *leasing.Lease) {
	if v := d.leases[l.ID+" "+string(l.Token)]; v != nil {
		v.handled = true
	}
}
