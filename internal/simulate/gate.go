package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/messages/gate"
	"github.com/wakebell/wakebell/redisops/gates"
	"github.com/wakebell/wakebell/wakebelltype"
)

// gateName is the gate at which processes take turns, and terms are the durations of its turns.
const gateName = "g"

var terms = gate.Terms{Lease: 5 * time.Second, Signal: 4 * time.Second, Presence: 12 * time.Second}

// lookEvery is how many heartbeats are between two looks at the places of tickets.
const lookEvery = 10

// guest is a process at a gate. It makes one request after another; one whose answer is lost is
// sent again.
type guest struct {
	sim     *sim
	number  int
	name    string // of this incarnation
	life    int
	store   *gates.Store
	down    bool
	stalled time.Time // until when its process stands still

	request *gate.Request // on its way; nil: none
	next    []gate.Op     // of the next request
	tickets []gate.Ticket // that wait
	turn    gate.Ticket   // that it has, until
	until   time.Time
	floor   gate.Ticket
	numbers uint64
	count   uint64 // of requests
	beating bool   // heartbeats are sent
	beats   int
}

func newGuest(s *sim, number int) *guest {
	store, err := gates.New(s.rdb, wakebelltype.GateKeys{}, nil)
	if err != nil {
		panic(err)
	}
	return &guest{sim: s, number: number, store: store, name: fmt.Sprint("g", number, ".0")}
}

// after has something happen in this process, unless it has ended by then.
func (g *guest) after(d time.Duration, do func()) {
	life := g.life
	g.sim.after(d, func() {
		switch wait := time.Until(g.stalled); {
		case g.life != life || g.down:
		case wait > 0:
			g.after(wait, do)
		default:
			do()
		}
	})
}

// join takes a ticket.
func (g *guest) join(kind gate.Kind) {
	if g.down || len(g.tickets)+len(g.next) > 4 {
		return
	}
	g.numbers++
	g.next = append(g.next, gate.Op{Kind: kind, Number: g.numbers})
	if !g.beating {
		g.beat()
	}
	g.send()
}

// send sends the next request, if none is on its way.
func (g *guest) send() {
	if g.request != nil {
		return
	}
	g.count++
	g.request = &gate.Request{Gate: gateName, Process: g.name, Sequence: g.count, Ops: g.next, Floor: g.floor, Terms: terms}
	g.next = nil
	g.after(g.sim.transit(), g.arrive)
}

// arrive carries out a request, unless the network loses it.
func (g *guest) arrive() {
	s, r := g.sim, g.request
	if s.cut() {
		g.after(s.plan.Timeout, g.arrive)
		return
	}
	s.loseNext()
	reply, err := g.store.Exchange(s.ctx, r)
	if err != nil {
		s.broken("errors", "a request of %s: %v", g.name, err)
	}
	s.turns.exchanged(g, r, reply)
	if s.cut() {
		s.note("the answer to %s is lost", g.name)
		g.after(s.plan.Timeout, g.arrive)
		return
	}
	sent := time.Now()
	g.after(s.transit(), func() { g.answered(r, reply, sent) })
}

// answered takes an answer: tickets, and perhaps the turn.
func (g *guest) answered(r *gate.Request, reply *gate.Reply, at time.Time) {
	g.request = nil
	for i, op := range r.Ops {
		if t := reply.Done[i].Ticket; !op.Kind.Gives() && t > 0 {
			g.tickets, g.floor = append(g.tickets, t), max(g.floor, t)
		}
	}
	if reply.Held > 0 && reply.Held != g.turn && slices.Contains(g.tickets, reply.Held) {
		g.begin(reply.Held, at.Add(reply.Remaining))
	}
	switch {
	case len(g.next) > 0 || reply.More:
		g.send()
	case len(g.tickets) > 0:
		g.after(time.Second, g.send) // as signals would have it do
	}
}

// begin begins a turn. It uses a resource that is guarded by the token, and ends.
func (g *guest) begin(t gate.Ticket, until time.Time) {
	s := g.sim
	g.turn, g.until = t, until
	s.turns.begins(g)
	takes := s.between(0, time.Second)
	if s.faulty && s.chance(0.2) {
		takes = s.between(0, 3*terms.Lease)
	}
	g.after(takes, func() {
		if g.turn == t {
			g.end()
		}
	})
}

// end gives the turn back, or the ticket of a turn that was lost.
func (g *guest) end() {
	g.next = append(g.next, gate.Op{Kind: gate.Give, Ticket: g.turn})
	g.tickets = slices.DeleteFunc(g.tickets, func(t gate.Ticket) bool { return t == g.turn })
	g.turn = 0
	g.send()
}

// beat says that the process is alive, and extends its turn.
func (g *guest) beat() {
	s := g.sim
	g.beating = len(g.tickets)+len(g.next) > 0 || g.request != nil
	if !g.beating {
		return
	}
	g.after(terms.Lease/3, g.beat)
	if s.cut() {
		return
	}
	b := &gate.Heartbeat{Process: g.name, Terms: terms}
	if g.turn > 0 {
		b.Turns = []gate.Held{{Gate: gateName, Ticket: g.turn}}
	}
	reply, err := g.store.Heartbeat(s.ctx, b)
	if err != nil {
		s.broken("errors", "a heartbeat of %s: %v", g.name, err)
	}
	if g.turn > 0 {
		s.turns.extended(g, reply.Lost[0])
	}
	// A turn may begin and end while the process stands still: it asks for its tickets now and
	// then, as nodes do.
	if g.beats++; reply.Lapsed || g.beats%lookEvery == 0 {
		g.look()
	}
	if slices.Contains(reply.Overdue, gateName) {
		g.send()
	}
}

// look drops the tickets that are gone, because the process has counted as dead.
func (g *guest) look() {
	g.tickets = slices.DeleteFunc(g.tickets, func(t gate.Ticket) bool {
		at, err := g.store.Places(g.sim.ctx, []gate.Held{{Gate: gateName, Ticket: t}})
		if err != nil {
			g.sim.broken("errors", "places: %v", err)
		}
		return at[0] == gate.Gone && t != g.turn
	})
}

// crash ends the process. It starts again after a while, and knows nothing.
func (g *guest) crash(again time.Duration) {
	if g.down {
		return
	}
	g.sim.note("%s crashes", g.name)
	g.sim.turns.crashed(g)
	g.life++
	number := g.number
	*g = guest{sim: g.sim, number: number, store: g.store, life: g.life, down: true, name: "g" + strconv.Itoa(number) + "." + strconv.Itoa(g.life)}
	g.sim.after(again, func() { g.down = false })
}
