package faults

import "time"

// FaultKind is a kind of fault.
type FaultKind string

// The faults. All but Stall were injected by the harness.
const (
	Kill        FaultKind = "kill"                // SIGKILL of a node
	Stop        FaultKind = "stop"                // SIGSTOP of a node until SIGCONT
	Drain       FaultKind = "drain"               // SIGTERM of a node until its end
	Outage      FaultKind = "outage"              // Redis was away
	Full        FaultKind = "memory full"         // Redis refused writes
	DataLoss    FaultKind = "amnesia"             // Redis lost its writes of the interval
	LostRequest FaultKind = "lost request"        // a command never reached Redis
	LostReply   FaultKind = "lost reply"          // Redis ran a command, its reply was dropped
	Reset       FaultKind = "reset"               // as LostReply, and the connection was reset
	Duplicate   FaultKind = "duplicate"           // a command was sent again, and had run at To
	Slow        FaultKind = "slow"                // the reply of a command was held until To
	LinkCut     FaultKind = "link cut"            // to the serving node: closed, or silent, until To
	ServingKill FaultKind = "serving node killed" // SIGKILL of the node that serves a subscriber
	Stall       FaultKind = "stall"               // a process or Redis was not scheduled by the machine; observed
)

// Fault is one fault, from its start to its end.
type Fault struct {
	Kind FaultKind
	// Target is a node or a client; empty: all of them. With a target, DataLoss is of what
	// this process wrote.
	Target   string
	From, To time.Time
	// Words are the ids in the command that was hit; nil: the fault is not of a
	// single command.
	Words []string
}
