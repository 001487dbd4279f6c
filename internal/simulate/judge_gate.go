package simulate

import (
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/gates"
)

// turns knows who has the turn of the gate, and checks every answer.
type turns struct {
	sim    *sim
	holder *guest // nil: no process
	ticket gate.Ticket
	until  time.Time   // when the lease expires at the earliest
	far    bool        // the clock has stepped far since the lease was last extended
	last   gate.Ticket // the highest that has had the turn
	used   gate.Ticket // the highest that the guard has accepted
	seen   map[string]uint64
	issued gate.Ticket            // the highest ticket of all, also of those that Redis has lost
	had    map[gate.Ticket]string // the processes of the tickets that have had the turn, also of those
}

// keep keeps what is known of what Redis has, and returns what has the judge expect that again. No
// process learns at once that its turn is lost, so two may use theirs until then; their tickets stay
// what they were.
func (t *turns) keep() (restore func()) {
	was, seen, name := *t, maps.Clone(t.seen), ""
	if t.holder != nil {
		name = t.holder.name
	}
	return func() {
		t.holder, t.ticket, t.until, t.last, t.used, t.seen = was.holder, was.ticket, was.until, was.last, was.used, seen
		if t.holder != nil && t.holder.name != name { // it has crashed meanwhile
			t.holder = &guest{name: name}
		}
	}
}

// exchanged checks a request that Redis has carried out, or answered again.
func (t *turns) exchanged(g *guest, r *gate.Request, reply *gate.Reply) {
	if t.seen[g.name] == r.Sequence {
		return
	}
	t.seen[g.name] = r.Sequence
	for _, op := range r.Ops {
		if op.Kind == gate.Give && op.Ticket == t.ticket {
			t.holder, t.ticket = nil, 0
		}
	}
	t.tickets(g, r, reply)
	held := reply.Held
	switch {
	case held == 0:
		if t.holder == g && t.sim.now().Before(t.until) {
			t.sim.broken("turns", "%s has lost its turn %d, and its lease has not expired", g.name, t.ticket)
		}
	case held == t.ticket:
		t.until, t.far = t.sim.now().Add(reply.Remaining), false
	case t.holder != nil && t.sim.now().Before(t.until):
		t.sim.broken("turns", "%s gets the turn %d, and %s has %d", g.name, held, t.holder.name, t.ticket)
	case held <= t.last:
		t.sim.broken("turns", "%s gets the turn with token %d after %d", g.name, held, t.last)
	case t.had[held] != "" && t.had[held] != g.name:
		t.sim.broken("turns", "%s gets the turn %d, which %s has had", g.name, held, t.had[held])
	default:
		t.had[held] = g.name
		t.holder, t.ticket, t.last, t.until, t.far = g, held, held, t.sim.now().Add(reply.Remaining), false
		t.sim.note("%s gets the turn %d", g.name, held-gate.Ticket(t.sim.begin.UnixMicro()))
	}
}

// tickets checks that new tickets are higher than all before, also than those that Redis has lost.
func (t *turns) tickets(g *guest, r *gate.Request, reply *gate.Reply) {
	before := t.issued
	for i, op := range r.Ops {
		ticket := reply.Done[i].Ticket
		if op.Kind.Gives() || ticket == 0 {
			continue
		}
		if ticket <= before {
			t.sim.broken("turns", "%s gets the ticket %d after %d", g.name, ticket, before)
		}
		t.issued = max(t.issued, ticket)
	}
}

// begins checks the token of a turn that begins with the guard: it is accepted while the turn is
// valid, and never after a higher one.
func (t *turns) begins(g *guest) {
	t.sim.result.Turns++
	valid := t.holder == g && t.ticket == g.turn && t.sim.now().Before(t.until)
	err := g.store.Guard(t.sim.ctx, gateName, "resource", uint64(g.turn), false)
	switch {
	case t.lost(g):
		if valid || !errors.Is(err, gates.ErrFenceUnknown) {
			t.sim.broken("turns", "Redis has lost the turn %d of %s, and the guard says: %v", g.turn, g.name, err)
		}
	case err != nil && (valid || !errors.Is(err, gates.ErrFenceStale)):
		t.sim.broken("turns", "the guard refuses %s: %v", g.name, err)
	case err == nil && g.turn < t.used:
		t.sim.broken("turns", "the guard accepts the token %d of %s after %d", g.turn, g.name, t.used)
	case err == nil:
		t.used = g.turn
	}
}

// lost reports whether Redis has lost the turn that begins, and knows of no later one. A token whose
// ticket waits is that of a turn while its process has the turn with another one, which it may pass on.
func (t *turns) lost(g *guest) bool {
	s := t.sim
	if s.writes == 0 {
		return false
	}
	state, err := s.rdb.HMGet(s.ctx, "{gates}:state:"+gateName, "granted", "process").Result()
	if err != nil {
		s.broken("errors", "the state of the gate: %v", err)
	}
	granted, _ := state[0].(string)
	if highest, err := strconv.ParseUint(granted, 10, 64); err == nil && uint64(g.turn) <= highest {
		return false
	}
	at, err := g.store.Places(s.ctx, []gate.Held{{Gate: gateName, Ticket: g.turn}})
	if err != nil {
		s.broken("errors", "places: %v", err)
	}
	return at[0] == gate.Gone || state[1] != g.name
}

// extended notes that a heartbeat has extended a turn, or that it was lost.
func (t *turns) extended(g *guest, lost bool) {
	if t.holder != g || t.ticket != g.turn {
		if !lost {
			t.sim.broken("turns", "the turn %d of %s is extended, and it was lost", g.turn, g.name)
		}
		return
	}
	if lost && t.sim.now().Before(t.until) {
		t.sim.broken("turns", "a heartbeat of %s finds the turn lost, and its lease has not expired", g.name)
	}
	if !lost {
		t.until, t.far = t.sim.now().Add(terms.Lease), false
	}
}

// crashed forgets a process: its turn ends with its lease, or earlier where Redis takes its presence
// for that of another clock.
func (t *turns) crashed(g *guest) {
	if t.holder == g {
		t.holder = &guest{name: g.name}
		t.stepsFar(t.far)
	}
}

// stepsFar notes whether the clock has stepped so far that presences are taken for those of another
// clock: processes that live renew theirs.
func (t *turns) stepsFar(far bool) {
	t.far = t.far || far
	if t.far && t.holder != nil && t.holder.sim == nil {
		t.until = time.Time{}
	}
}

// setBack notes that the clock was set back: from the next exchange on the turn is good for its
// lease, and not for longer.
func (t *turns) setBack() {
	if most := t.sim.now().Add(terms.Lease); t.until.After(most) {
		t.until = most
	}
}

// waiting returns how many tickets have not had their turn.
func (t *turns) waiting() (n int) {
	for _, g := range t.sim.guests {
		n += len(g.tickets) + len(g.next)
	}
	return n
}
