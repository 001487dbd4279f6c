package spec

import "fmt"

// Act is what a step does.
type Act int8

// The acts.
const (
	Tick     Act = iota // a tick passes
	MakeCall            // a client makes a new call, or repeats the one that it has sent
	Poll                // a node exchanges
	Crash               // a node ends, and its leases are forgotten
	Start               // a node starts
	Advance             // the layout gets to its next stage
	Take                // a process moves timers into the outbox
	Arrive              // a process moves them to the next place
	LateCall            // the network delivers a call once more
	LatePoll            // the network delivers an exchange once more
)

// Fault is what the network does with a call or an exchange.
type Fault int8

// The faults.
const (
	None   Fault = iota
	Lost         // the answer is lost
	Copied       // the request is delivered once more, later
)

// Step is something that happens.
type Step struct {
	Act      Act
	Who      int8 // the client or the node
	Call     Call
	Verdicts [MaxTimers]Verdict
	Place    Place
	ID       int8 // of Take
	Fault    Fault
}

func (s Step) String() string {
	names := [...]string{"tick", "call", "poll", "crash", "start", "advance", "take", "arrive", "late call", "late poll"}
	text := fmt.Sprintf("%s %d", names[s.Act], s.Who)
	switch s.Act {
	case MakeCall:
		text += fmt.Sprintf(" %s id %d in %d", [...]string{"", "schedule", "cancel", "run now"}[s.Call.Kind], s.Call.ID, s.Call.Delay)
	case Poll:
		text += fmt.Sprintf(" place %d verdicts %v", s.Place, s.Verdicts)
	case Take:
		text += fmt.Sprintf(" id %d", s.ID)
	}
	return text + [...]string{"", " (answer lost)", " (copied)"}[s.Fault]
}

// Begin returns the first state of a world.
func (w *World) Begin() State { return State{} }

// Apply carries out a step. The error is a *Broken.
func (w *World) Apply(s State, step Step) (State, error) {
	err := w.apply(&s, step)
	if err == nil {
		err = w.check(&s)
	}
	return s, err
}

func (w *World) apply(s *State, step Step) (err error) {
	switch step.Act {
	case Tick:
		s.Now++
	case MakeCall:
		return w.makeCall(s, step)
	case Poll:
		return w.poll(s, step)
	case Crash:
		s.Used.Crashes++
		s.Nodes[step.Who] = Node{Down: true, Sequence: s.Nodes[step.Who].Sequence}
	case Start:
		s.Nodes[step.Who].Down = false
	case Advance:
		if s.Stage++; s.Stage == Moving {
			s.Used.Changes++
		}
	case Take:
		w.take(s, step.ID)
	case Arrive:
		w.arrive(s, step.ID)
	case LateCall:
		c := s.LateCall
		s.LateCall = Call{}
		_, err = w.call(s, c, Plain)
	case LatePoll:
		r := s.Late
		s.Late = Request{}
		_, _, err = w.exchange(s, s.LateOf, r)
	}
	return err
}

// makeCall sends a call of a client. A refused call is routed anew.
func (w *World) makeCall(s *State, step Step) error {
	c := &s.Clients[step.Who]
	call := c.Sent
	if call.Kind == NoCall {
		s.Calls++
		c.Made++
		call = step.Call
		call.Number = s.Calls
	}
	refused, err := w.call(s, call, c.Knows)
	c.Sent = Call{}
	switch {
	case refused:
		c.Knows, c.Sent = s.Stage, call
	case step.Fault == Lost:
		s.Used.Losses++
		c.Sent = call
	case step.Fault == Copied:
		s.Used.Repeats++
		s.LateCall = call
	}
	return err
}

// poll sends an exchange of a node with a place, or the one again whose answer was lost.
func (w *World) poll(s *State, step Step) error {
	n := &s.Nodes[step.Who]
	r, held := n.Sent, n.Leases
	if r.Sequence == 0 {
		n.Sequence[step.Place]++
		r = Request{Place: step.Place, Sequence: n.Sequence[step.Place], Want: w.IDs}
		for id, v := range step.Verdicts {
			if v != Undecided {
				r.Verdicts[id], r.Tokens[id] = v, n.Leases[id].Token
				n.Leases[id] = Lease{}
			}
		}
	}
	a, stale, err := w.exchange(s, step.Who, r)
	n.Sent = Request{}
	switch {
	case err != nil || stale:
		return err
	case !s.counted(r, held):
		return broken("acks count", "the ack of a valid lease had no effect")
	case step.Fault == Lost:
		s.Used.Losses++
		n.Sent = r
		return nil
	case step.Fault == Copied:
		s.Used.Repeats++
		s.Late, s.LateOf = r, step.Who
	}
	for id, l := range a.Leases {
		if l.Token > 0 {
			n.Leases[id] = l
		}
	}
	return nil
}

// counted reports whether all acks of an exchange have ended their timers, where their
// leases had not expired.
func (s *State) counted(r Request, held [MaxTimers]Lease) bool {
	for id, v := range r.Verdicts {
		if l := held[id]; v == Ack && l.Until > s.Now && s.Fates[l.Version] == Pending {
			return false
		}
	}
	return true
}

// known reports whether a node knows a lease, or will.
func (s *State) known(id int, token int8) bool {
	for _, n := range s.Nodes {
		if n.Leases[id].Token == token || n.Sent.Sequence > 0 {
			return true
		}
	}
	return false
}

// check checks the invariants of a state.
func (w *World) check(s *State) error {
	var seen [maxVersions + 1]bool
	for p := range s.Places {
		for id, t := range s.Places[p] {
			if t.Version == 0 {
				continue
			}
			if seen[t.Version] {
				return broken("one place", "version %d is in two places", t.Version)
			}
			seen[t.Version] = true
			if t.Token > 0 && t.Due > s.Now && s.Used.Crashes == 0 && !s.known(id, t.Token) {
				return broken("known", "no node knows that it has timer %d", id)
			}
			for q := range p {
				if s.Places[q][id].Version > 0 {
					return broken("one place", "timer %d is in two places", id)
				}
			}
		}
	}
	for version, fate := range s.Fates {
		if (fate == Pending) != seen[version] {
			return broken("nothing lost", "version %d: fate %d, stored %t", version, fate, seen[version])
		}
	}
	if s.Stage == Divided {
		for id, t := range s.Places[Old] {
			if t.Version > 0 {
				return broken("polled", "timer %d is in a place that no node polls", id)
			}
		}
	}
	for id := range w.IDs {
		a, b := s.Nodes[0].Leases[id], s.Nodes[1].Leases[id]
		if a.Version == b.Version && min(a.Until, b.Until) > s.Now {
			return broken("exclusion", "two nodes run timer %d", id)
		}
	}
	return nil
}
