// Package spec is an executable specification of a topic: what its timers, leases, keys,
// limits, layouts and idempotency keys are, in the language of states and steps, without
// Redis, actors and clocks. docs/spec.md explains it.
//
// A [State] is a value. A [World] has what does not change: the settings of the topic, and
// how much may happen. [World.Steps] lists what can happen next, and [Step.Apply] does it.
// Every step checks the invariants, and returns the one that it breaks as an error.
//
// Time is counted in ticks. A world has few ids, so that all states can be explored.
package spec

import "fmt"

const (
	// MaxTimers is the most ids of a world.
	MaxTimers = 3
	// MaxCalls is the most calls of a client.
	MaxCalls    = 4
	maxVersions = 2 * MaxCalls
)

// Instant is an instant, or a duration: in ticks, or in µs where a trace is checked.
type Instant int32

// Place is where a timer can be. A topic without shards has the first place only.
type Place int8

// The places of a topic whose layout changes: the physical topic before, the outbox in
// which timers move, and the next physical topic.
const (
	Old Place = iota
	Outbox
	New
	places
)

// Stage is how far a change of the layout is.
type Stage int8

// The stages: in the first two, timers are written to the place before. In the third they
// are written where they are, new ones to the next place. In the last all are there.
const (
	Plain Stage = iota
	Announced
	Moving
	Divided
)

// Timer is an entry of a place; Version 0: there is none.
type Timer struct {
	Instant  Instant // for which it was scheduled
	Due      Instant // from when on it is claimed: its instant, that of its retry, or when its lease expires
	Version  int8    // the number of the call that has written it, and so its payload
	Order    int8    // of the call that has set the instant, among all calls
	Token    int8    // of its lease; 0: it has none
	Holds    bool    // its key: it was claimed, and is not settled
	Claims   int8
	Failures int8
}

// Verdict is the outcome of a handler.
type Verdict int8

// The verdicts; Undecided is none.
const (
	Undecided Verdict = iota
	Ack
	Nack
	Reject
	Release // the claim is undone
	Extend  // the lease expires later
)

// Lease is what a node knows of a lease; Token 0: there is none.
type Lease struct {
	Place          Place
	Token, Version int8
	Until          Instant
}

// Request is an exchange with one place: what it settles, and how many timers it claims.
type Request struct {
	Place    Place
	Sequence int8
	Verdicts [MaxTimers]Verdict
	Tokens   [MaxTimers]int8
	Want     int8
}

// Answer is what an exchange answers: the leases that it has given.
type Answer struct {
	Sequence int8
	Leases   [MaxTimers]Lease
}

// Node polls the places. A node that starts anew after a crash knows no leases.
type Node struct {
	Down     bool
	Leases   [MaxTimers]Lease
	Sequence [places]int8
	Sent     Request // whose answer was lost; Sequence 0: none
}

// Kind is a kind of call.
type Kind int8

// The kinds of calls.
const (
	NoCall Kind = iota
	Schedule
	Cancel
	RunNow
)

// Call is a call of a client about one id. Number is its idempotency key.
type Call struct {
	Kind   Kind
	ID     int8
	Delay  Instant // of Schedule
	Number int8    // from 1; unique in the world
}

// Client makes calls, one at a time.
type Client struct {
	Knows Stage // the layout with which it routes
	Made  int8  // calls
	Sent  Call  // whose answer was lost, or that was refused; it is repeated
}

// Fate is what has become of a version that was written.
type Fate int8

// The fates. A pending version is delivered, or waits for a reason that ends.
const (
	Unwritten Fate = iota
	Pending
	Acked
	Rejected
	Cancelled
	Replaced
)

// Found is what a call has found under its id.
type Found int8

// What a call has found; Unanswered: it was not carried out.
const (
	Unanswered Found = iota
	Absent
	Waiting
	Running
)

// State is all that there is at an instant.
type State struct {
	Now     Instant
	Stage   Stage
	Places  [places][MaxTimers]Timer
	Nodes   [2]Node
	Clients [2]Client
	Answers [places][2]Answer // of the last exchange of each node

	Calls    int8                   // that were made
	Order    int8                   // of the last call that was carried out
	Tokens   int8                   // that were given
	Answered [maxVersions + 1]Found // what each call has found
	Fates    [maxVersions + 1]Fate  // of the versions that calls have written
	Late     Request                // an exchange that the network delivers once more
	LateOf   int8                   // the node that has sent it
	LateCall Call                   // a call that the network delivers once more
	Used     struct{ Losses, Repeats, Crashes, Changes int8 }
}

// World is what does not change.
type World struct {
	IDs      int8
	Calls    int8    // of each client
	Ticks    Instant // that pass at most
	TTL      Instant // of leases
	Ahead    Instant // how long before its instant a timer may be claimed; its handler waits for it
	PerKey   int8    // all timers have the same key; 0: they have none
	InFlight int8    // leases at once; 0: no bound

	Losses, Repeats, Crashes int8 // that may happen
	Change                   bool // the layout may change

	// Without has the names of clauses that do not hold, to show that the invariants
	// need them.
	Without string
}

// Broken is an invariant that does not hold.
type Broken struct{ Invariant, Text string }

func (b *Broken) Error() string { return b.Invariant + ": " + b.Text }

func broken(invariant, format string, args ...any) error {
	return &Broken{invariant, fmt.Sprintf(format, args...)}
}
