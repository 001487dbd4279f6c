package spec

import "slices"

// exchange carries out an exchange as one step of Redis. Stale: a later one of the node
// and place was carried out.
func (w *World) exchange(s *State, node int8, r Request) (a Answer, stale bool, err error) {
	last := &s.Answers[r.Place][node]
	if last.Sequence == r.Sequence && w.Without != "replay" {
		return s.again(r.Place, *last), false, nil
	}
	if last.Sequence > r.Sequence && w.Without != "replay" {
		return Answer{}, true, nil
	}
	for id := range w.IDs {
		w.settle(&s.Places[r.Place][id], s, r.Verdicts[id], r.Tokens[id])
	}
	a.Sequence = r.Sequence
	for range r.Want {
		id, ok := w.next(s, r.Place)
		if !ok {
			break
		}
		if err := w.claim(s, r.Place, id); err != nil {
			return a, false, err
		}
		t := &s.Places[r.Place][id]
		a.Leases[id] = Lease{r.Place, t.Token, t.Version, t.Due}
	}
	*last = a
	return a, false, nil
}

// claim gives a timer to a node.
func (w *World) claim(s *State, place Place, id int8) error {
	if err := w.mayRun(s, place, id); err != nil {
		return err
	}
	s.Tokens++
	t := &s.Places[place][id]
	t.Token, t.Due, t.Holds, t.Claims = s.Tokens, s.Now+w.TTL, true, t.Claims+1
	return nil
}

// again repeats an answer, with those of its leases that are still held.
func (s *State) again(place Place, a Answer) Answer {
	for id := range a.Leases {
		if a.Leases[id].Token != s.Places[place][id].Token {
			a.Leases[id] = Lease{}
		}
	}
	return a
}

// settle ends a lease, if the token is the one that the timer has.
func (w *World) settle(t *Timer, s *State, v Verdict, token int8) {
	if v == Undecided || t.Version == 0 || t.Token != token && w.Without != "token" {
		return
	}
	switch v {
	case Ack:
		s.end(t, Acked)
		*t = Timer{}
	case Reject:
		s.end(t, Rejected)
		*t = Timer{}
	case Nack: // it keeps its key until its retry has ended
		t.Token, t.Due, t.Failures = 0, s.Now+1, t.Failures+1
	case Release:
		t.Token, t.Due, t.Claims = 0, max(s.Now, t.Instant), t.Claims-1
	case Extend:
		t.Due = s.Now + w.TTL
	}
}

// next returns the timer that a claim of a place takes: of those that are due and may run,
// the one that has been due for longest.
func (w *World) next(s *State, place Place) (id int8, ok bool) {
	if w.InFlight > 0 && w.Without != "limit" && s.leases() >= w.InFlight {
		return 0, false
	}
	var due []int8
	for id := range w.IDs {
		t := &s.Places[place][id]
		if t.Version > 0 && w.due(s, t) && (w.PerKey == 0 || w.Without == "key" || w.inTurn(s, place, id)) {
			due = append(due, id)
		}
	}
	if len(due) == 0 {
		return 0, false
	}
	return slices.MinFunc(due, func(a, b int8) int { return int(s.Places[place][a].Due) - int(s.Places[place][b].Due) }), true
}

// due reports whether a timer may be claimed as to its time. A lease that has not expired
// ends first.
func (w *World) due(s *State, t *Timer) bool {
	return t.Due <= s.Now || t.Token == 0 && t.Due <= s.Now+w.Ahead
}

// inTurn reports whether a timer holds its key, or is the next one to get a free place.
func (w *World) inTurn(s *State, place Place, id int8) bool {
	t := &s.Places[place][id]
	if t.Holds {
		return true
	}
	held, before := int8(0), int8(0)
	for i := range w.IDs {
		switch other := &s.Places[place][i]; {
		case i == id || other.Version == 0:
		case other.Holds:
			held++
		case precedes(other, t):
			before++
		}
	}
	return held+before < w.PerKey
}

// precedes is the order of the timers of a key: by their instants, then by their schedules.
func precedes(a, b *Timer) bool {
	return a.Instant < b.Instant || a.Instant == b.Instant && a.Order < b.Order
}

// leases returns how many leases have not expired.
func (s *State) leases() (n int8) {
	for place := range s.Places {
		for _, t := range s.Places[place] {
			if t.Token > 0 && t.Due > s.Now {
				n++
			}
		}
	}
	return n
}

// mayRun checks the invariants of a claim.
func (w *World) mayRun(s *State, place Place, id int8) error {
	t := &s.Places[place][id]
	if t.Instant > s.Now+w.Ahead {
		return broken("never early", "timer %d is claimed at %d, its instant is %d", id, s.Now, t.Instant)
	}
	if w.InFlight > 0 && s.leases() >= w.InFlight {
		return broken("limit", "timer %d is claimed beside %d leases", id, s.leases())
	}
	if w.PerKey == 0 {
		return nil
	}
	running := int8(0)
	for p := range s.Places {
		for i := range w.IDs {
			other := &s.Places[p][i]
			if (int8(p) != int8(place) || i != id) && other.Token > 0 && other.Due > s.Now {
				running++
			}
			if w.PerKey == 1 && i != id && other.Version > 0 && t.Claims == 0 && !other.Holds && precedes(other, t) {
				return broken("order", "timer %d is claimed before %d of its key", id, i)
			}
		}
	}
	if running >= w.PerKey {
		return broken("key", "timer %d is claimed beside %d of its key", id, running)
	}
	return nil
}
