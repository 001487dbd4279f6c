package wakebelltype

import "time"

// GateKeys are the base names of the keys of gates. The key of gate N is the base name,
// a colon and N. By default all begin with the hash tag "{gates}", because on a
// Redis Cluster all gates of one Keys must be in one slot.
type GateKeys struct {
	Stream    string // stream: the tickets in order; default "{gates}:stream"
	Group     string // consumer group of the streams, whose pending entry is the turn; default "gates"
	Signal    string // prefix of a process's channel, before a colon and its name; default "{gates}:signal"
	State     string // hash: holder of the turn; default "{gates}:state"
	Guard     string // hash: resource → newest token used; default "{gates}:guard"
	Exchange  string // last request of a process at a gate; default "{gates}:exchange"
	Presence  string // zset, one key for all: process → when its presence expires; default "{gates}:presence"
	Deadlines string // zset, one key for all: gate in use → when to check it; default "{gates}:deadlines"
	Mark      string // string, one key for all: the highest ticket of any gate; default "{gates}:mark"
}

// GateInfo is the state of a gate in Redis.
type GateInfo struct {
	Name string
	Now  time.Time // Redis's clock

	// Holder has the turn; its Fence is 0 if the gate is free.
	Holder GateTicket
	// Confirmed reports that the holder has received the turn; otherwise it is
	// being handed over.
	Confirmed bool
	// Until is when the lease expires unless it is extended. For an unconfirmed
	// holder it is when the turn passes to the next waiter.
	Until time.Time

	Waiting int          // number of waiters
	Waiters []GateTicket // the first 100 waiters, in order

	// LastFence is the highest token issued; 0 if none is stored, for a gate that
	// was never used or was idle for 5 minutes.
	LastFence uint64
	// Guard is the newest token used, by resource; at most 1,000 resources.
	Guard map[string]uint64

	// Cursor continues a listing after this gate: its name. Only List sets it.
	Cursor string

	// Err reports what of the gate cannot be read. List yields it with the gate and
	// continues.
	Err error
}

// GateTicket is a process's place at a gate.
type GateTicket struct {
	Fence uint64 // the ticket, which becomes the fencing token of the turn
	// Process is host:pid:random of the process.
	Process string
}

// GateRepaired is the result of a repair.
type GateRepaired struct {
	Before  uint64 // the last token that had been issued
	After   uint64 // the next tokens are above this one
	Removed int    // number of tickets below After, whose owners join again
	// Cleared is the number of resources whose guard had a token that was never
	// issued. They accept the present turn again, and no earlier turn.
	Cleared int
}
