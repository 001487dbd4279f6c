// Package gate defines the requests and replies of gates, FIFO locks with fencing
// tokens. They are plain structs: the gates actor (actors/gates) sends requests, a
// store (redisops/gates) answers them, and neither imports the other.
//
// # The contract of a store
//
// A gate is a queue of tickets, in the order in which they were issued. The first
// ticket whose process is alive has the turn, and its number is the fencing token;
// the numbers of a gate only grow. The store runs a Request as one atomic step, by
// its own clock: first it takes returned tickets, then it issues new ones, then it
// ends a turn whose lease has expired and grants the turn to the next ticket. A
// grant to another process is provisional until that process sends a request for
// the gate.
//
// A Request with the Sequence of the previous one of the same process and gate gets
// the same answer and does not run again; a lower one fails with exchange.ErrStale.
// This holds for a Request without Ops too: a late copy must not confirm a grant
// that its process has not received.
//
// A store may divide gates into parts, by their names. A part has a clock of its own, a
// heartbeat shows that a process is alive at the gates of one part, and a part may be
// unavailable while others are not.
//
// An unused gate expires. Tickets of a later gate of the same name have higher
// numbers all the same.
package gate

import "time"

// Ticket is a place in the queue of a gate, and the fencing token of the turn. It is
// the store's clock in µs when the ticket was issued, or one more than the last
// ticket if that is higher; it is below 2^53. 0 means none.
type Ticket uint64

// HoldBounds are the bounds by which Holds distinguishes turns.
var HoldBounds = [...]time.Duration{
	10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour,
}

// Holds counts turns by how long they were held: up to each of HoldBounds, and longer.
type Holds [len(HoldBounds) + 1]int64

// Add counts a turn.
func (h *Holds) Add(held time.Duration) {
	i := 0
	for i < len(HoldBounds) && held > HoldBounds[i] {
		i++
	}
	h[i]++
}

// Kind is the kind of an Op.
type Kind byte

const (
	// Join takes a ticket.
	Join Kind = 'j'
	// Try takes a ticket if it gets the turn at once.
	Try Kind = 't'
	// Give returns a ticket. If it has the turn, the next ticket gets it.
	Give Kind = 'g'
	// GivePassed returns the ticket of a turn that the process began by itself; see
	// Reply.Since.
	GivePassed Kind = 'p'
)

// Gives reports whether an Op returns a ticket.
func (k Kind) Gives() bool { return k == Give || k == GivePassed }

// Op is a part of a Request.
type Op struct {
	Kind   Kind
	Number uint64 // Join, Try: distinguishes the tickets of a process
	Ticket Ticket // Give, GivePassed
}

// Request is one step of a process at one gate. Without Ops it only confirms a grant
// to the process and does what is due.
type Request struct {
	Gate     string
	Process  string
	Sequence uint64 // from 1, of the process
	Ops      []Op

	// Floor is the highest ticket that the process has seen. The store issues only
	// higher ones, even if it has lost data.
	Floor Ticket

	Terms
}

// Terms are the durations that apply to a process.
type Terms struct {
	Lease    time.Duration // of a turn without an extension
	Signal   time.Duration // how long a grant waits until its process confirms it
	Presence time.Duration // how long a process without a heartbeat counts as alive
}

// Reply answers a Request.
type Reply struct {
	Now time.Time // the store's clock

	Done []Done // one for each Op

	// Held is the ticket of this process that has the turn, confirmed; 0 means none.
	// Remaining is the time from Now until its lease expires.
	Held      Ticket
	Remaining time.Duration

	// Since is the first ticket after which all tickets of the gate belong to this
	// process; 0 if the last one does not. The process may pass its turn to such a
	// ticket by itself, within the lease, and return the passed tickets later.
	Since Ticket

	// More reports that the queue begins with more tickets of dead processes than
	// one step removes; another Request continues.
	More bool
}

// Done is the result of an Op.
type Done struct {
	Ticket Ticket // Join, Try: the ticket; 0 if the gate is held
	Had    bool   // Give, GivePassed: the ticket had the turn until now
}

// Signal notifies a process about a gate.
type Signal struct {
	Gate string

	// Ticket was granted and has to be confirmed before Until, by the store's clock.
	// 0 means another change; a Request finds out which.
	Ticket Ticket
	Until  time.Time
}

// Held identifies a turn.
type Held struct {
	Gate   string
	Ticket Ticket
}

// Heartbeat shows that a process is alive at the gates of a part, and extends its turns
// at them.
type Heartbeat struct {
	Process string
	Part    int
	Turns   []Held
	Terms
}

// HeartbeatReply is the reply to a Heartbeat.
type HeartbeatReply struct {
	Now time.Time // the clock of the part

	// Lapsed reports that the process counted as dead until this heartbeat, so its
	// tickets may have been removed.
	Lapsed bool

	Lost []bool // for each turn, whether the process has lost it

	// Overdue are gates of the part, also those of other processes, where something is
	// due; a Request does it. There may be more.
	Overdue []string
}

// Place is the state of a ticket.
type Place byte

const (
	// Waiting means that the ticket is in the queue.
	Waiting Place = 'w'
	// Granted means that the ticket has the turn.
	Granted Place = 'h'
	// Gone means that the gate has no such ticket.
	Gone Place = 'g'
)
