package spec

// Steps returns what can happen in a state. Steps without effect are left out.
func (w *World) Steps(s *State) (all []Step) {
	if s.Now < w.Ticks {
		all = append(all, Step{Act: Tick})
	}
	for who := range int8(2) {
		all = w.calls(all, s, who)
		all = w.polls(all, s, who)
	}
	switch {
	case !w.Change || s.Stage == Divided:
	case s.Stage != Moving || s.Places[Old] == [MaxTimers]Timer{} && s.Places[Outbox] == [MaxTimers]Timer{}:
		all = append(all, Step{Act: Advance})
	}
	for id := range w.IDs {
		if copied := *s; s.Stage == Moving && w.take(&copied, id) {
			all = append(all, Step{Act: Take, ID: id})
		}
	}
	for id := range w.IDs {
		if copied := *s; w.arrive(&copied, id) {
			all = append(all, Step{Act: Arrive, ID: id})
		}
	}
	if s.LateCall.Kind != NoCall {
		all = append(all, Step{Act: LateCall})
	}
	if s.Late.Sequence > 0 {
		all = append(all, Step{Act: LatePoll})
	}
	return all
}

func (w *World) calls(all []Step, s *State, who int8) []Step {
	c := &s.Clients[who]
	var calls []Call
	switch {
	case c.Sent.Kind != NoCall:
		calls = []Call{c.Sent}
	case c.Made < w.Calls:
		for id := range w.IDs {
			calls = append(calls, Call{Schedule, id, 0, 0}, Call{Schedule, id, 1, 0}, Call{Cancel, id, 0, 0}, Call{RunNow, id, 0, 0})
		}
	}
	for _, call := range calls {
		all = w.faults(all, s, Step{Act: MakeCall, Who: who, Call: call})
	}
	return all
}

// faults adds a step, without a fault and with those that may still happen.
func (w *World) faults(all []Step, s *State, step Step) []Step {
	all = append(all, step)
	if step.Call.Kind == RunNow { // it has no idempotency key
		return all
	}
	if s.Used.Losses < w.Losses {
		step.Fault = Lost
		all = append(all, step)
	}
	if s.Used.Repeats < w.Repeats {
		step.Fault = Copied
		all = append(all, step)
	}
	return all
}

func (w *World) polls(all []Step, s *State, who int8) []Step {
	n := &s.Nodes[who]
	if n.Down {
		return append(all, Step{Act: Start, Who: who})
	}
	if s.Used.Crashes < w.Crashes && (n.Leases != [MaxTimers]Lease{} || n.Sent.Sequence > 0) {
		all = append(all, Step{Act: Crash, Who: who})
	}
	if n.Sent.Sequence > 0 {
		return w.faults(all, s, Step{Act: Poll, Who: who, Place: n.Sent.Place})
	}
	for _, place := range []Place{Old, New} {
		for _, verdicts := range w.outcomes(n, place) {
			if _, claims := w.next(s, place); claims || verdicts != [MaxTimers]Verdict{} {
				all = w.faults(all, s, Step{Act: Poll, Who: who, Place: place, Verdicts: verdicts})
			}
		}
	}
	return all
}

// outcomes returns the verdicts that the handlers of a node may have reached.
func (w *World) outcomes(n *Node, place Place) [][MaxTimers]Verdict {
	all := [][MaxTimers]Verdict{{}}
	for id, l := range n.Leases {
		if l.Token == 0 || l.Place != place {
			continue
		}
		for _, before := range all {
			for _, v := range []Verdict{Ack, Nack} {
				before[id] = v
				all = append(all, before)
			}
		}
	}
	return all
}

// Drain lets a world come to rest without faults: what was sent is answered, the layout
// gets to its last stage, and every timer is handled. A timer that is left is lost, or
// waits for something that does not end.
func (w *World) Drain(s State) error {
	for range 4 * (int(w.TTL) + int(MaxTimers)) {
		for _, step := range w.rest(&s) {
			var err error
			if s, err = w.Apply(s, step); err != nil {
				return err
			}
		}
		s.Now++
	}
	for version, fate := range s.Fates {
		if fate == Pending {
			return broken("delivered", "version %d waits for ever", version)
		}
	}
	return nil
}

// rest returns steps that bring a world nearer to its rest.
func (w *World) rest(s *State) (all []Step) {
	if s.LateCall.Kind != NoCall {
		all = append(all, Step{Act: LateCall})
	}
	if s.Late.Sequence > 0 {
		all = append(all, Step{Act: LatePoll})
	}
	for who := range int8(2) {
		if s.Clients[who].Sent.Kind != NoCall {
			all = append(all, Step{Act: MakeCall, Who: who})
		}
		if s.Nodes[who].Down {
			all = append(all, Step{Act: Start, Who: who})
		}
	}
	if s.Stage == Moving {
		for id := range w.IDs {
			all = append(all, Step{Act: Take, ID: id}, Step{Act: Arrive, ID: id})
		}
	}
	if s.Stage == Announced || s.Stage == Moving && s.Places[Old] == [MaxTimers]Timer{} && s.Places[Outbox] == [MaxTimers]Timer{} {
		return append(all, Step{Act: Advance})
	}
	for who, n := range s.Nodes {
		if n.Sent.Sequence > 0 {
			all = append(all, Step{Act: Poll, Who: int8(who), Place: n.Sent.Place})
			continue
		}
		for _, place := range []Place{Old, New} {
			step := Step{Act: Poll, Who: int8(who), Place: place}
			for id, l := range n.Leases {
				if l.Token > 0 && l.Place == place {
					step.Verdicts[id] = Ack
				}
			}
			all = append(all, step)
		}
	}
	return all
}
