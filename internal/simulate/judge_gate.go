package simulate

import (
	"errors"
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
	last   gate.Ticket // the highest that has had the turn
	used   gate.Ticket // the highest that the guard has accepted
	seen   map[string]uint64
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
	held := reply.Held
	switch {
	case held == 0:
		if t.holder == g && time.Now().Before(t.until) {
			t.sim.broken("turns", "%s has lost its turn %d, and its lease has not expired", g.name, t.ticket)
		}
	case held == t.ticket:
		t.until = time.Now().Add(reply.Remaining)
	case t.holder != nil && time.Now().Before(t.until):
		t.sim.broken("turns", "%s gets the turn %d, and %s has %d", g.name, held, t.holder.name, t.ticket)
	case held <= t.last:
		t.sim.broken("turns", "%s gets the turn with token %d after %d", g.name, held, t.last)
	default:
		t.holder, t.ticket, t.last, t.until = g, held, held, time.Now().Add(reply.Remaining)
		t.sim.note("%s gets the turn %d", g.name, held-gate.Ticket(t.sim.begin.UnixMicro()))
	}
}

// begins checks the token of a turn that begins with the guard: it is accepted while the turn is
// valid, and never after a higher one.
func (t *turns) begins(g *guest) {
	t.sim.result.Turns++
	valid := t.holder == g && t.ticket == g.turn && time.Now().Before(t.until)
	err := g.store.Guard(t.sim.ctx, gateName, "resource", uint64(g.turn), false)
	switch {
	case err != nil && (valid || !errors.Is(err, gates.ErrFenceStale)):
		t.sim.broken("turns", "the guard refuses %s: %v", g.name, err)
	case err == nil && g.turn < t.used:
		t.sim.broken("turns", "the guard accepts the token %d of %s after %d", g.turn, g.name, t.used)
	case err == nil:
		t.used = g.turn
	}
}

// extended notes that a heartbeat has extended a turn, or that it was lost.
func (t *turns) extended(g *guest, lost bool) {
	if t.holder != g || t.ticket != g.turn {
		if !lost {
			t.sim.broken("turns", "the turn %d of %s is extended, and it was lost", g.turn, g.name)
		}
		return
	}
	if lost && time.Now().Before(t.until) {
		t.sim.broken("turns", "a heartbeat of %s finds the turn lost, and its lease has not expired", g.name)
	}
	if !lost {
		t.until = time.Now().Add(terms.Lease)
	}
}

// crashed forgets a process: its turn ends with its lease.
func (t *turns) crashed(g *guest) {
	if t.holder == g {
		t.holder = &guest{name: g.name}
	}
}

// waiting returns how many tickets have not had their turn.
func (t *turns) waiting() (n int) {
	for _, g := range t.sim.guests {
		n += len(g.tickets) + len(g.next)
	}
	return n
}
