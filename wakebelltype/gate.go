package wakebelltype

import "time"

// GateKeys are the base names of the keys of gates. The key of gate N is the base
// name, a colon and N. By default all begin with the hash tag "{gates}". On a Redis
// Cluster all must begin with the same hash tag: gates are divided into 64 parts there, and
// the tag of a key ends in the number of its part, such as "{gates:7}".
type GateKeys struct {
	Stream    string // stream: the tickets in order; default "{gates}:stream"
	Group     string // name of the streams' consumer group, whose pending entry is the turn; default "gates"
	Signal    string // channel of a process: this prefix, a colon and the name of the process; default "{gates}:signal"
	State     string // hash: holder of the turn; default "{gates}:state"
	Guard     string // hash: resource → newest fencing token used; default "{gates}:guard"
	Exchange  string // string: last request of a process at a gate, and its answer; default "{gates}:exchange"
	Presence  string // zset, one key for all or for each part: process → when its presence expires; default "{gates}:presence"
	Deadlines string // zset, one key for all or for each part: gate in use → when to check it; default "{gates}:deadlines"
	Holds     string // hash: turns by day and by how long they were held; default "{gates}:holds", or State with "-holds" if that is set
	Mark      string // string, one key for all or for each part: the highest ticket of any gate; default "{gates}:mark"
}

// GateInfo is the state of a gate in Redis.
type GateInfo struct {
	Name string    `json:"name"`
	Now  time.Time `json:"now,omitzero"` // Redis's clock

	// Holder has the turn; its Fence is 0 if the gate is free.
	Holder GateTicket `json:"holder"`
	// Confirmed reports that the holder has received the turn; otherwise it is
	// being handed over.
	Confirmed bool `json:"confirmed"`
	// Since is when the holder got the turn, as far as Redis knows: a turn that a
	// process passed on inside is known to it a little later. Zero: unknown.
	Since time.Time `json:"since,omitzero"`
	// Until is when the lease expires unless it is extended. For an unconfirmed
	// holder it is when the turn passes to the next waiter.
	Until time.Time `json:"until,omitzero"`

	Waiting int          `json:"waiting"` // number of waiters
	Waiters []GateTicket `json:"waiters"` // the first 100 waiters, in order

	// LastFence is the highest ticket issued, which is or becomes a fencing token;
	// 0 if none is stored, for a gate that was never used or was idle for 5 minutes.
	LastFence uint64 `json:"last_fence"`
	// Guard is the newest fencing token used, by resource; at most 1,000 resources.
	Guard map[string]uint64 `json:"guard"`

	// Holds counts the turns that ended in the last 7 days by how long they were held,
	// with growing bounds; empty if none did. Processes write them every 5 s.
	Holds []GateHolds `json:"holds"`

	// Cursor continues a listing after this gate: its name. Only List sets it.
	Cursor string `json:"cursor"`

	// Err reports what of the gate cannot be read. List yields it with the gate and
	// continues.
	Err error `json:"-"`
}

// GateHolds counts turns that were held for longer than the bound before, and up to UpTo.
type GateHolds struct {
	UpTo  time.Duration `json:"up_to_ns"` // 0: for longer than all bounds
	Turns int64         `json:"turns"`
}

// GateTicket is a process's place at a gate.
type GateTicket struct {
	// Fence is the number of the ticket. It is the fencing token of the turn that
	// the ticket gets.
	Fence uint64 `json:"fence"`
	// Process is host:pid:random of the process.
	Process string `json:"process"`
}

// GateRepaired is the result of a repair.
type GateRepaired struct {
	Before  uint64 `json:"before"`  // highest ticket that had been issued
	After   uint64 `json:"after"`   // the next tickets are above this one
	Removed int    `json:"removed"` // number of tickets below After, whose owners join again
	// Cleared is the number of resources whose guard had a fencing token that was
	// never issued. They accept the present turn again, and no earlier turn.
	Cleared int `json:"cleared"`
}
