// Package gate holds the words of the gates, FIFO locks with fencing tokens.
// They are plain structs: a store (package redisops) answers them, the gates
// actor (package actors) asks them, and neither imports the other.
//
// # The contract of a store
//
// A gate is a queue of tickets, in the order in which they were issued. The
// first live one is the turn, and its number is the fencing token: numbers of
// a gate only grow. A Request is run as one atomic step by the store's clock:
// first what is given back, then what joins, then whatever is due: a turn whose
// lease has ended is taken away, and the next ticket whose process is alive is
// granted. A grant to another process is provisional until that process sends
// a request for the gate.
//
// A Request with the Sequence of the one before it of the same process and gate
// is answered again and not run again; a lower one fails with exchange.ErrStale.
// That is true of a look too: a late copy of it must not confirm a grant of which
// its process has not heard.
//
// An unused gate expires. The tickets of a later gate of the same name are still
// above its last one.
package gate

import "time"

// Ticket is a place in the queue of a gate; of the turn, the fencing token. It
// is the store's clock in µs when the ticket was issued, or one more than the
// last, whichever is higher; below 2^53. 0 is none.
type Ticket uint64

// Kind says what an Op does.
type Kind byte

const (
	// Join takes a ticket.
	Join Kind = 'j'
	// Try takes a ticket if it is the turn at once.
	Try Kind = 't'
	// Give gives a ticket back; of the turn, that hands over to the next.
	Give Kind = 'g'
	// GivePassed is Give of a turn that the process began by itself: see
	// Reply.Since.
	GivePassed Kind = 'p'
)

// Gives reports whether an Op gives a ticket back.
func (k Kind) Gives() bool { return k == Give || k == GivePassed }

// Op is a part of a Request.
type Op struct {
	Kind   Kind
	Number uint64 // Join, Try: tells the tickets of a process apart
	Ticket Ticket // Give, GivePassed
}

// Request is one step of a process at one gate. Without Ops it is a look,
// which confirms a grant to the process and does what is due.
type Request struct {
	Gate     string
	Process  string
	Sequence uint64 // from 1, of the process
	Ops      []Op

	// Floor is the highest ticket that the process has seen: no ticket is
	// issued at or below it, whatever the store has lost.
	Floor Ticket

	Terms
}

// Terms are the durations that a process asks for.
type Terms struct {
	Lease    time.Duration // life of a turn without an extension
	Signal   time.Duration // how long a grant to another process waits for it
	Presence time.Duration // life of a process without a beat
}

// Reply answers a Request.
type Reply struct {
	Now time.Time // the store's clock

	Done []Done // one for each Op

	// Held is the ticket of this process that has the turn, confirmed; 0: none.
	// Remaining is how long its lease is good from the answer.
	Held      Ticket
	Remaining time.Duration

	// Since is the ticket from which on all tickets of the gate are of this
	// process; 0: the last one is not. A process may hand its turn on to such a
	// ticket itself, within the lease, and give back what it passed on later.
	Since Ticket

	// More says that the queue begins with more dead tickets than one step
	// removes: look again.
	More bool
}

// Done says what became of an Op.
type Done struct {
	Ticket Ticket // Join, Try: the ticket; 0: the gate is held
	Had    bool   // Give, GivePassed: the ticket was the turn, and is no more
}

// Signal tells a process that there is something for it at a gate.
type Signal struct {
	Gate string

	// Ticket was granted, and waits for the process until Until, by the store's
	// clock. 0: something else has happened, look.
	Ticket Ticket
	Until  time.Time
}

// Held names a turn.
type Held struct {
	Gate   string
	Ticket Ticket
}

// Beat says that a process lives and extends its turns.
type Beat struct {
	Process string
	Turns   []Held
	Terms
}

// Pulse answers a Beat.
type Pulse struct {
	Now time.Time // the store's clock

	// Lapsed says that the process was not known to live just before: what it
	// waited for may have been passed over.
	Lapsed bool

	Lost []bool // for each turn: it is not held any more

	// Overdue are gates of which something is due, by any process: a look does
	// it. There may be more.
	Overdue []string
}

// Place is what has become of a ticket.
type Place byte

const (
	// Waiting: it is in the queue.
	Waiting Place = 'w'
	// Granted: it has the turn.
	Granted Place = 'h'
	// Gone: it is not there.
	Gone Place = 'g'
)
