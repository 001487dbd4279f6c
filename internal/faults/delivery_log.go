package faults

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wakebell/wakebell/wakebelltype"
)

// DeliveryLog records the calls, deliveries and faults of a round. All instants are
// of one clock: Redis, nodes and harness run on one machine.
type DeliveryLog struct {
	// TTL is the duration of a lease, the same for all nodes of the round.
	TTL time.Duration

	// Resolution is that of the clock of the store; 0: that of Redis, a microsecond.
	Resolution time.Duration

	// MaxOverlap is how long a handler of a timer may overlap with the next one; 0:
	// overlaps are not judged.
	MaxOverlap time.Duration

	// KeptFrom is by how many replicas a timer is confirmed that must not be lost: all that
	// a failover can promote. 0: any timer may be lost in a failover.
	KeptFrom int

	// AtLeastOnce means that repeated deliveries need no cause.
	AtLeastOnce bool

	mu       sync.Mutex
	timers   map[string]*Timer
	faults   []Fault
	counters wakebelltype.Counters
	joined   map[string][]map[wakebelltype.End]int
}

// Counters returns the sums of the exchanges, of the empty ones and of the deliveries of
// all nodes that have ended without a fault.
func (l *DeliveryLog) Counters() wakebelltype.Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counters
}

// NewDeliveryLog returns an empty delivery log.
func NewDeliveryLog(ttl time.Duration) *DeliveryLog {
	return &DeliveryLog{TTL: ttl, timers: map[string]*Timer{}, joined: map[string][]map[wakebelltype.End]int{}}
}

// Timer has the events of one id. Its calls do not overlap.
type Timer struct {
	ID    string
	Calls []Call // in the order in which they were made
	Runs  []*Run // in the order in which they were reported
	Late  []Late // leases that reached a subscriber, and no handler
	Dead  string // the reason of its dead letter; empty: no dead letter
}

// CallKind is the kind of a Call.
type CallKind string

// The calls.
const (
	CallSchedule   CallKind = "schedule"
	CallReschedule CallKind = "reschedule"
	CallCancel     CallKind = "cancel"
	CallRedrive    CallKind = "redrive" // of the dead letter of a timer, of the same generation
)

// Call is one call of a client about one timer.
type Call struct {
	Kind   CallKind
	Client string
	// Generation counts the timers with this id, from 1. A call that is repeated
	// after an error keeps its generation; a cancel has that of its timer.
	Generation int
	// Called and Returned bound the instant at which Redis ran the call.
	Called, Returned time.Time
	// Earliest is the earliest instant of delivery that the caller can compute: In
	// counts from Called.
	Earliest time.Time
	// Due and Found are the answer: the instant in Redis, and the state before the
	// call. Zero after an error.
	Due   time.Time
	Found Found
	// Message is the answered message id. Draft is the number of the draft; a retry
	// keeps it.
	Message string
	Draft   int
	// Replicas is how many replicas have confirmed the timer.
	Replicas int
	Err      error `json:"-"` // the outcome is unknown

	// unsure means that the call may have run twice, so that the answer may be that
	// of the second run.
	unsure bool
}

// Found is the state in which a call found its timer.
type Found string

// The states.
const (
	FoundNothing Found = "nothing"
	FoundPending Found = "pending"
	FoundRunning Found = "running"
)

// Run is one delivery to a handler.
type Run struct {
	Node              string
	Message           string // the id of a message; empty for a timer
	Generation        int
	Attempt, Failures int
	Activation        time.Time
	Delivered         time.Time // Redis's clock at the claim, or when an early claim was handed out
	Began             time.Time // the start of the handler
	Ended             time.Time // the end of the handler's work; zero: never
	End               End
	// SettleCalled and Settled bound a settlement by Timer.Settle; Settled is zero
	// without an answer.
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
	EndNone     End = ""         // its process ended first
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

// RecordCall records a call.
func (l *DeliveryLog) RecordCall(id string, c Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.timer(id)
	t.Calls = append(t.Calls, c)
}

// RecordFault records a fault.
func (l *DeliveryLog) RecordFault(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, f)
}

// RecordDeadLetter records a dead letter.
func (l *DeliveryLog) RecordDeadLetter(id, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason == "" {
		reason = "without a reason"
	}
	l.timer(id).Dead = reason
}

// RecordLine records a line that a node printed.
func (l *DeliveryLog) RecordLine(node string, line Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line.Event == EventStall {
		l.faults = append(l.faults, Fault{Kind: Stall, Target: node, From: line.From, To: line.At})
		return
	}
	if c := line.Counters; c != nil {
		l.counters.Empty += c.Empty
		l.counters.Exchanges += c.Exchanges
		l.counters.Delivered += c.Delivered
	}
	if line.ID == "" {
		return
	}
	if line.Event == EventJoined {
		l.joined[line.ID] = append(l.joined[line.ID], line.Ends)
		return
	}
	t := l.timer(line.ID)
	if line.Event == EventCall {
		if line.Error != "" {
			line.Call.Err = errors.New(line.Error)
		}
		t.Calls = append(t.Calls, *line.Call)
		return
	}
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
	case EventSettling: // the work is done: the reply to the settlement may be lost
		r.SettleCalled, r.Ended, r.End = line.At, line.At, line.End
	case EventSettled:
		r.Settled, r.Result = line.At, line.Result
	case EventEnd:
		if r.SettleCalled.IsZero() {
			r.Ended, r.End = line.At, line.End
		}
	}
}

func (l *DeliveryLog) timer(id string) *Timer {
	t := l.timers[id]
	if t == nil {
		t = &Timer{ID: id}
		l.timers[id] = t
	}
	return t
}

// run finds a run by its node and the instant of its claim.
func (t *Timer) run(node string, delivered time.Time) *Run {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if r := t.Runs[i]; r.Node == node && r.Delivered.Equal(delivered) {
			return r
		}
	}
	return nil
}

// claimedAfter reports whether the lease of a run is newer than that of another. The run with
// the newer lease may begin first: a node keeps a timer that it has claimed early, while a
// call moves the timer and the node claims it again (docs/decisions/0030-early-claims.md).
func (t *Timer) claimedAfter(r, other *Run) bool {
	call, before := t.callOf(r), t.callOf(other)
	if call >= 0 && before >= 0 && call != before && r.Attempt == 1 && other.Attempt == 1 {
		return call > before
	}
	return r.Delivered.After(other.Delivered)
}

// callOf returns the index of the last call that gave a run its instant; -1 if none did.
func (t *Timer) callOf(r *Run) int {
	for i, c := range slices.Backward(t.Calls) {
		if !c.Due.IsZero() && c.Due.Equal(r.Activation) {
			return i
		}
	}
	return -1
}

// History describes the events of a timer so far, a line each.
func (l *DeliveryLog) History(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timer(id).History(l.faults)
}

// Runs counts the deliveries so far.
func (l *DeliveryLog) Runs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, t := range l.timers {
		n += len(t.Runs)
	}
	return n
}

// Lateness returns, for each of the delivered timers, the time from its instant to
// its first delivery.
func (l *DeliveryLog) Lateness(ids []string) []time.Duration {
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

// NextAnswer returns the time from an instant to the next answer that a client
// received.
func (l *DeliveryLog) NextAnswer(client string, after time.Time) (time.Duration, bool) {
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
