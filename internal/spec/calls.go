package spec

// call carries out a call as one step of Redis, and reports whether it was refused because
// it was routed with a layout that does not apply any more.
func (w *World) call(s *State, c Call, knows Stage) (refused bool, err error) {
	if s.Answered[c.Number] != Unanswered && w.Without != "idempotency" {
		return false, nil // it is answered as before
	}
	if knows != s.Stage && w.Without != "fence" {
		return true, nil
	}
	place := w.whereIs(s, c.ID, knows)
	if place == Outbox {
		return true, nil // until it has arrived
	}
	if s.Answered[c.Number] != Unanswered {
		return false, broken("once", "call %d took effect twice", c.Number)
	}
	t := &s.Places[place][c.ID]
	s.Answered[c.Number] = s.find(t)
	s.Order++
	switch c.Kind {
	case Schedule:
		s.end(t, Replaced)
		*t = Timer{Version: c.Number, Instant: s.Now + c.Delay, Order: s.Order, Due: s.Now + c.Delay}
		s.Fates[c.Number] = Pending
	case Cancel:
		s.end(t, Cancelled)
		*t = Timer{}
	case RunNow:
		w.runNow(s, t)
	}
	return false, nil
}

// runNow makes a timer due that waits. One that was delivered keeps its instant.
func (w *World) runNow(s *State, t *Timer) {
	if t.Version == 0 || t.Due <= s.Now || t.Token > 0 {
		return
	}
	t.Due = s.Now
	if t.Claims == 0 {
		t.Instant, t.Order = s.Now, s.Order
	}
}

// find returns what a call finds.
func (s *State) find(t *Timer) Found {
	switch {
	case t.Version == 0:
		return Absent
	case t.Token > 0 && t.Due > s.Now:
		return Running
	default:
		return Waiting
	}
}

// with returns the ids whose timers are in one place at a time: those of the key, or the
// id alone.
func (w *World) with(id int8) (ids []int8) {
	if w.PerKey == 0 {
		return []int8{id}
	}
	for i := range w.IDs {
		ids = append(ids, i)
	}
	return ids
}

// whereIs returns the place in which a call writes an id: where it or a timer of its key
// is, or where new timers are written.
func (w *World) whereIs(s *State, id int8, knows Stage) Place {
	switch knows {
	case Plain, Announced:
		return Old
	case Divided:
		return New
	}
	for _, place := range []Place{Old, Outbox} {
		for _, i := range w.with(id) {
			if s.Places[place][i].Version > 0 {
				return place
			}
		}
	}
	return New
}

// end notes what becomes of the version of a timer, if there is one.
func (s *State) end(t *Timer, fate Fate) {
	if t.Version > 0 {
		s.Fates[t.Version] = fate
	}
}

// take moves an id, with its key, into the outbox, unless one of its timers runs.
func (w *World) take(s *State, id int8) (moved bool) {
	for _, i := range w.with(id) {
		if s.find(&s.Places[Old][i]) == Running && w.Without != "running" {
			return false
		}
	}
	for _, i := range w.with(id) {
		if t := &s.Places[Old][i]; t.Version > 0 {
			s.Places[Outbox][i], *t, moved = *t, Timer{}, true
		}
	}
	return moved
}

// arrive writes an id, with its key, from the outbox to the next place.
func (w *World) arrive(s *State, id int8) (moved bool) {
	for _, i := range w.with(id) {
		if t := &s.Places[Outbox][i]; t.Version > 0 {
			s.Places[New][i], *t, moved = *t, Timer{}, true
		}
	}
	return moved
}
