package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/shards"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// client is a process that makes calls.
type client struct {
	sim    *sim
	number int
	store  *shards.Store
	mortal *shards.Store // of processes that may die between two commands
	life   *life         // of that process
	calls  int
	target int // of a change of the layout; 0: none
}

// call makes a call with an idempotency key. The network may lose the request or the answer;
// then it is made again, with the same key.
func (c *client) call(what string, do func(key *timers.Key) error) {
	c.calls++
	key := timers.NewKey("simulation", fmt.Sprint(c.number, "-", c.calls), []byte(what))
	var try func()
	try = func() {
		s := c.sim
		if s.cut() {
			s.note("%s: the request is lost", what)
			s.after(s.plan.Timeout, try)
			return
		}
		switch refused, err := s.attempt(func() error { return do(key) }); {
		case refused:
			s.note("%s is refused: %v", what, err)
			s.after(s.plan.Timeout, try)
			return
		case err != nil:
			s.broken("errors", "%s: %v", what, err)
		}
		if s.cut() {
			s.note("%s: the answer is lost", what)
			s.after(s.plan.Timeout, try)
		}
	}
	try()
}

func name(id int) string { return "id" + strconv.Itoa(id) }

// keyOf returns the key with which an id is scheduled; a third of the ids have none.
func keyOf(id int) string {
	if id%3 == 0 {
		return ""
	}
	return "k" + strconv.Itoa(id%keys)
}

// delays are the delays of timers.
var delays = []time.Duration{-time.Minute, 0, 0, 0, 10 * time.Millisecond, time.Second, 5 * time.Second, time.Minute, time.Hour}

// windows are for how long an id with Once fires once.
var windows = []time.Duration{time.Second, 30 * time.Second, time.Hour}

// debounce schedules a timer whose instant moves with each call, up to a bound.
func (c *client) debounce(o Op) {
	in := []time.Duration{10 * time.Millisecond, time.Second, 5 * time.Second}[o.A%3]
	most := []time.Duration{0, in, 3 * in}[o.B%3]
	c.schedule(o, timers.Entry{Policy: wakebelltype.PolicyDebounce, In: in, MaxDelay: most})
}

// schedule schedules the timer of an operation as e says.
func (c *client) schedule(o Op, e timers.Entry) {
	c.write([]timers.Entry{c.entry(o, e)})
}

// scheduleMany schedules up to 5 timers in a call.
func (c *client) scheduleMany(o Op) {
	var all []timers.Entry
	for i := range 2 + o.B%4 {
		each := o
		each.ID, each.A = (o.ID+i*[]int{1, 5, 7}[o.A%3])%ids, o.A+i
		all = append(all, c.entry(each, timers.Entry{Policy: policies[(o.B+i)%len(policies)]}))
	}
	c.write(all)
}

// scheduleWithoutKey replaces a timer, which keeps its key. In shards it would be another timer,
// and so it would if the call were repeated when there is none.
func (c *client) scheduleWithoutKey(o Op) {
	j := c.sim.judge
	if old := j.current[name(o.ID)]; old == nil || old.key == "" || !j.plain || c.sim.faulty && c.sim.plan.Loss > 0 {
		return
	}
	e := c.entry(o, timers.Entry{})
	e.Key = ""
	c.write([]timers.Entry{e})
}

// scheduleHundred schedules many timers, of one key or of none, in an order of their own.
func (c *client) scheduleHundred(o Op) {
	all, key, kind := make([]timers.Entry, 110), keyOf(1), o.A%4
	if kind > 1 {
		key = ""
	}
	for i := range all {
		all[i] = timers.Entry{
			ID: fmt.Sprintf("of %d %03d", kind, i), Key: key, Payload: c.sim.judge.payload(),
			At: time.Now().Add(-time.Duration(i*(1+o.B)%110) * time.Millisecond),
		}
	}
	c.write(all)
}

// policies are those of the timers of a call.
var policies = []wakebelltype.Policy{wakebelltype.PolicyReplace, wakebelltype.PolicyReplace, wakebelltype.PolicyKeep, wakebelltype.PolicyEarliest}

func (c *client) entry(o Op, e timers.Entry) timers.Entry {
	e.ID, e.Key, e.Payload = name(o.ID), keyOf(o.ID), c.sim.judge.payload()
	switch in := c.sim.delay(o.A); {
	case e.Policy == wakebelltype.PolicyDebounce:
	case c.sim.plan.Steps && o.B%2 == 0 && in > 0: // by the clock of Redis, not by that of the client
		e.In = in
	default:
		e.At = time.Now().Add(in)
	}
	return e
}

// write makes a call that schedules timers.
func (c *client) write(all []timers.Entry) {
	s, done := c.sim, effect{sim: c.sim}
	c.call(fmt.Sprintf("schedule %d from %s %s", len(all), all[0].ID, all[0].Payload), func(key *timers.Key) error {
		b := timers.NewBatch("", len(all))
		for i := range all {
			if err := b.Add(topic, &all[i]); err != nil {
				return err
			}
		}
		out, err := c.store.Write(s.ctx, key, b)
		if err != nil || done.happened() {
			return err
		}
		done.note()
		var first time.Time // of many timers
		for i := range all {
			s.result.Scheduled++
			s.note("%s %s: %v, due in %v", all[i].ID, all[i].Payload, out[i].Outcome, out[i].Due.Sub(s.now()))
			s.judge.scheduled(&all[i], out[i])
			if out[i].Outcome != wakebelltype.OutcomeCreated || len(all) < 200 {
				c.hint(exchange.Hint{Kind: exchange.HintCheck, ID: all[i].ID, Sent: c.sim.now()})
			}
			if due := out[i].Due; len(all) < 200 || first.IsZero() || due.Before(first) {
				first = due
				c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(due.Sub(s.now()), 0), Sent: c.sim.now()})
			}
		}
		return nil
	})
}

// hint has the channels of Redis carry a hint to all nodes; it may get lost.
func (c *client) hint(h exchange.Hint) {
	s := c.sim
	for _, n := range s.nodes {
		if !s.cut() {
			n.after(s.transit(), func() { n.hint(h) })
		}
	}
}

func (c *client) cancel(o Op) {
	s, done := c.sim, effect{sim: c.sim}
	c.call("cancel "+name(o.ID), func(key *timers.Key) error {
		found, err := c.store.CancelKeyed(s.ctx, topic, key, name(o.ID))
		if err != nil || done.happened() {
			return err
		}
		done.note()
		s.note("%s: %v", name(o.ID), found[0])
		s.judge.cancelled(name(o.ID), found[0])
		c.hint(exchange.Hint{Kind: exchange.HintCheck, ID: name(o.ID), Sent: c.sim.now()})
		return nil
	})
}

func (c *client) cancelAll() {
	n, err := c.store.CancelAll(c.sim.ctx, topic)
	if err != nil {
		c.sim.broken("errors", "cancel all: %v", err)
	}
	c.sim.note("cancelled %d", n)
	c.sim.judge.cancelledAll(int(n))
	c.hint(exchange.Hint{Kind: exchange.HintCheck, Sent: c.sim.now()})
}

func (c *client) reschedule(o Op) {
	s := c.sim
	out, err := c.store.Reschedule(s.ctx, topic, name(o.ID), time.Now().Add(c.sim.delay(o.A)), 0)
	if errors.Is(err, wakebelltype.ErrNotFound) {
		s.judge.absent(name(o.ID))
		return
	}
	if err != nil {
		s.broken("errors", "reschedule: %v", err)
	}
	s.judge.rescheduled(name(o.ID), out.Due)
	c.hint(exchange.Hint{Kind: exchange.HintCheck, ID: name(o.ID), Sent: c.sim.now()})
	c.hint(exchange.Hint{Kind: exchange.HintDue, In: max(out.Due.Sub(s.now()), 0), Sent: c.sim.now()})
}

func (c *client) runNow(o Op) {
	s := c.sim
	found, err := c.store.RunNow(s.ctx, topic, name(o.ID))
	if errors.Is(err, wakebelltype.ErrNotFound) || found == wakebelltype.PresenceAbsent {
		s.judge.absent(name(o.ID))
		return
	}
	if err != nil {
		s.broken("errors", "run now: %v", err)
	}
	s.judge.runNow(name(o.ID))
	c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: c.sim.now()})
}

// hundreds returns the ids and keys of hundreds of timers; none: there are too many already. Those
// of two operations are the same ones now and then.
func (c *client) hundreds(o Op) (names, keys []string) {
	n := 100 + o.B*3
	if c.sim.judge.pending()+n > most {
		return nil, nil
	}
	set := o.A % 20
	of := []int{1, 4, 97}[set%3] // so many keys, the same ones for the same ids
	for i := range n {
		key := ""
		if of > 1 && i%5 > 0 {
			key = fmt.Sprint("many ", i%of)
		}
		names, keys = append(names, fmt.Sprintf("m%d %d", set, i)), append(keys, key)
	}
	return names, keys
}

// instant returns the instant of one of many timers: within 5 s, some have passed.
func instant(i, drawn int) time.Time {
	return time.Now().Add(time.Duration((i*(7+drawn))%61-10) * 100 * time.Millisecond).Truncate(time.Microsecond)
}

// scheduleHundreds schedules hundreds of timers in a call.
func (c *client) scheduleHundreds(o Op) {
	names, keys := c.hundreds(o)
	all := make([]timers.Entry, len(names))
	for i := range all {
		all[i] = timers.Entry{ID: names[i], Key: keys[i], Payload: c.sim.judge.payload(), At: instant(i, o.B)}
	}
	if len(all) > 0 {
		c.write(all)
	}
}

// page is how many timers an import stores at once.
const page = 200

// putHundreds stores hundreds of timers as an import does, in the place of those that are there.
func (c *client) putHundreds(o Op) {
	s := c.sim
	names, keys := c.hundreds(o)
	for i := 0; i < len(names); i += page {
		var all []timers.Stored
		for at := i; at < min(i+page, len(names)); at++ {
			due := instant(at, o.B)
			all = append(all, timers.Stored{ID: names[at], Key: keys[at], At: due, Due: due, Payload: s.judge.payload(), Number: int64(s.judge.payloads)})
		}
		existed, err := c.store.Put(s.ctx, topic, timers.PutReplace, all)
		if errors.Is(err, wakebelltype.ErrInvalid) && s.clients[0].resharding() {
			return
		}
		if err != nil {
			s.broken("errors", "import: %v", err)
		}
		for at := range all {
			if known := s.judge.current[all[at].ID] != nil; known != existed[at] {
				s.broken("answers", "the import says %v of whether %s existed", existed[at], all[at].ID)
			}
			s.judge.replaced(all[at].ID, all[at].Key, string(all[at].Payload), all[at].Due)
			s.result.Scheduled++
		}
		c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: c.sim.now()})
	}
}

// first makes the first of some calls.
func (w *workflow) first(calls []func() bool) bool {
	w.sim.loseNext()
	return calls[0]()
}

// steps makes calls of a client one after the other, each again while the network loses it or its
// answer, until one returns false or the client dies.
func (w *workflow) steps(what string, calls ...func() bool) {
	s := w.sim
	s.after(s.transit(), func() {
		again := func() { s.after(s.plan.Timeout, func() { w.steps(what, calls...) }) }
		switch {
		case s.faulty && s.chance(0.03):
			s.note("%s: the client dies", what)
		case s.cut():
			again()
		case !w.first(calls):
		case s.cut():
			again()
		case len(calls) > 1:
			w.steps(what, calls[1:]...)
		}
	})
}
