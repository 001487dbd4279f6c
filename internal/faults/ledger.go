package faults

import (
	"sync"
	"time"
)

// Ledger holds all that happened in a round. All instants in it are of one
// clock: Redis, nodes and harness run on one machine.
type Ledger struct {
	// TTL is how long a lease of the round's nodes lasts. Invariant: all nodes
	// of a round have the same.
	TTL time.Duration

	// Beside is how long a handler of a timer may run beside the next one; 0: it
	// is not judged.
	Beside time.Duration

	mu     sync.Mutex
	timers map[string]*Timer
	faults []Fault
}

// NewLedger makes an empty ledger.
func NewLedger(ttl time.Duration) *Ledger {
	return &Ledger{TTL: ttl, timers: map[string]*Timer{}}
}

// Timer is all that is known of one id. Its calls come one after another.
type Timer struct {
	ID    string
	Calls []Call // in the order in which they were made
	Runs  []*Run // in the order in which they were reported
	Late  []Late // leases that reached a subscriber, and no handler
	Dead  string // the reason of its dead letter; empty: it has none
}

// CallKind is what a client called.
type CallKind string

// The calls.
const (
	CallSchedule   CallKind = "schedule"
	CallReschedule CallKind = "reschedule"
	CallCancel     CallKind = "cancel"
)

// Call is one call of a client about one timer.
type Call struct {
	Kind   CallKind
	Client string
	// Generation counts the timers that the id has stood for, from 1. A call
	// that is made again after an error keeps its generation; a cancel has that
	// of the timer it is about.
	Generation int
	// Called and Returned bound the instant at which Redis ran it.
	Called, Returned time.Time
	// Earliest is the instant before which the timer must not be delivered, as
	// far as the caller knows: In counts from Called.
	Earliest time.Time
	// Due and Found are what was answered: the instant in Redis, and what was
	// there before. Zero after an error.
	Due   time.Time
	Found Found
	// Message is the id that was answered of the message of that key, Draft the
	// number of what the client published, which a retry of it keeps.
	Message string
	Draft   int
	Err     error // the outcome is unknown

	// unsure: the answer may be that of a second try of the connection's own.
	unsure bool
}

// Found says what a call found under its id.
type Found string

// What is found.
const (
	FoundNothing Found = "nothing"
	FoundPending Found = "pending"
	FoundRunning Found = "running"
)

// Run is one delivery to a handler.
type Run struct {
	Node              string
	Message           string // the id of a message; of a timer empty
	Generation        int
	Attempt, Failures int
	Activation        time.Time
	Delivered         time.Time // Redis's clock at the claim
	Began             time.Time // when its handler began
	Ended             time.Time // when the handler was done with its work; zero: never
	End               End
	// SettleCalled and Settled bound a settlement by Timer.Settle; Settled is
	// zero where none was answered.
	SettleCalled, Settled time.Time
	Result                Result
}

// Late is a lease that arrived at a subscriber after its end.
type Late struct {
	Node                           string
	Attempt                        int
	Activation, Delivered, Arrived time.Time
}

// End is how a handler ended.
type End string

// The ends.
const (
	EndNone     End = ""         // it never did: its process ended first
	EndAck      End = "ack"      // it returned nil
	EndNack     End = "nack"     // it returned an error
	EndReject   End = "reject"   // it rejected the timer
	EndPanic    End = "panic"    // it panicked
	EndDraining End = "draining" // its context ended with ErrDraining
	EndCut      End = "cut"      // its context ended with another cause
)

// Result is what Timer.Settle answered.
type Result string

// The results.
const (
	ResultNone     Result = ""         // not called, or not answered
	ResultAccepted Result = "accepted" // Redis confirmed it
	ResultRefused  Result = "refused"  // the timer was no longer the holder's
	ResultUnknown  Result = "unknown"  // the wait ended first
)

// FaultKind is a kind of fault.
type FaultKind string

// The faults. All but Stall were injected by the harness.
const (
	Kill        FaultKind = "kill"                // SIGKILL of a node
	Stop        FaultKind = "stop"                // SIGSTOP of a node until SIGCONT
	Drain       FaultKind = "drain"               // SIGTERM of a node until its end
	Outage      FaultKind = "outage"              // Redis was away
	Full        FaultKind = "memory full"         // Redis refused to write
	Amnesia     FaultKind = "amnesia"             // Redis forgot what it had written in the span
	LostRequest FaultKind = "lost request"        // a command never reached Redis
	LostReply   FaultKind = "lost reply"          // Redis ran a command, its reply was dropped
	Reset       FaultKind = "reset"               // as LostReply, with a connection that was reset
	Duplicate   FaultKind = "duplicate"           // a command was sent once more, and had run at To
	Slow        FaultKind = "slow"                // the reply of a command was held until To
	Cut         FaultKind = "link cut"            // to the serving node: closed, or silent, until To
	Orphan      FaultKind = "serving node killed" // SIGKILL of the node that serves a subscriber
	Stall       FaultKind = "stall"               // a process or Redis was not run by the machine; observed
)

// Fault is one fault, from its begin to its end.
type Fault struct {
	Kind FaultKind
	// Who had it: a node or a client; empty: everybody.
	Who      string
	From, To time.Time
	// Words are those of the command that it struck; nil: it struck none alone.
	Words []string
}

// Called notes a call.
func (l *Ledger) Called(id string, c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.timer(id)
	t.Calls = append(t.Calls, c)
}

// Struck notes a fault.
func (l *Ledger) Struck(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, f)
}

// Died notes a dead letter.
func (l *Ledger) Died(id, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason == "" {
		reason = "without a reason"
	}
	l.timer(id).Dead = reason
}

// Heard notes a line of a node.
func (l *Ledger) Heard(node string, line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line.Event == EventStall {
		l.faults = append(l.faults, Fault{Kind: Stall, Who: node, From: line.From, To: line.At})
		return
	}
	if line.ID == "" {
		return
	}
	t := l.timer(line.ID)
	if line.Event == EventBegin {
		t.Runs = append(t.Runs, &Run{
			Node: node, Message: line.Message, Generation: line.Generation, Attempt: line.Attempt, Failures: line.Failures,
			Activation: line.Activation, Delivered: line.Delivered, Began: line.At,
		})
		return
	}
	if line.Event == EventLate {
		t.Late = append(t.Late, Late{
			Node: node, Attempt: line.Attempt, Activation: line.Activation, Delivered: line.Delivered, Arrived: line.At,
		})
		return
	}
	r := t.run(node, line.Delivered)
	if r == nil {
		return
	}
	switch line.Event {
	case EventSettling: // the work is done: Redis may take the settlement and no more be heard
		r.SettleCalled, r.Ended, r.End = line.At, line.At, line.End
	case EventSettled:
		r.Settled, r.Result = line.At, line.Result
	case EventEnd:
		if r.SettleCalled.IsZero() {
			r.Ended, r.End = line.At, line.End
		}
	}
}

func (l *Ledger) timer(id string) *Timer {
	t := l.timers[id]
	if t == nil {
		t = &Timer{ID: id}
		l.timers[id] = t
	}
	return t
}

// run finds a run by its node and its claim.
func (t *Timer) run(node string, delivered time.Time) *Run {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if r := t.Runs[i]; r.Node == node && r.Delivered.Equal(delivered) {
			return r
		}
	}
	return nil
}

// History tells what happened to a timer so far, a line each.
func (l *Ledger) History(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timer(id).History(l.faults)
}

// Runs counts the deliveries so far.
func (l *Ledger) Runs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, t := range l.timers {
		n += len(t.Runs)
	}
	return n
}

// Lateness is how long after its instant each of the timers that were delivered
// was so for the first time.
func (l *Ledger) Lateness(ids []string) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var late []time.Duration
	for _, id := range ids {
		if t := l.timer(id); len(t.Runs) > 0 {
			late = append(late, t.Runs[0].Delivered.Sub(t.Runs[0].Activation))
		}
	}
	return late
}

// NextAnswer is how long after an instant a client got its next answer.
func (l *Ledger) NextAnswer(client string, after time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next time.Time
	for _, t := range l.timers {
		for _, c := range t.Calls {
			if c.Client == client && c.Err == nil && c.Returned.After(after) && (next.IsZero() || c.Returned.Before(next)) {
				next = c.Returned
			}
		}
	}
	return next.Sub(after), !next.IsZero()
}
