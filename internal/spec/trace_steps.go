package spec

// numbered is the idempotency key of all calls of a trace, which differ in their bodies.
const numbered = 1

// call returns the states after a call: if it was carried out, and if it was answered as the
// one before.
func (f *search) call(at reached, s *Seen) (all []reached) {
	t := at.state.Places[Old][0]
	if s.Again && at.body == s.Writes && t.Version > 0 && (s.Due == Unknown || s.Due == t.Instant) {
		all = append(all, at)
	}
	if s.Again && s.Call == Cancel && t.Version == 0 {
		all = append(all, at)
	}
	if s.Found == Running && t.Token > 0 && at.state.Now >= t.Due && at.state.Now < f.latest(&t) {
		f.settle(&at.state, Extend, t.Token)
		t = at.state.Places[Old][0]
	}
	if found := at.state.find(&t); s.Found != Unanswered && found != s.Found {
		return all
	}
	if s.Call == Schedule && s.Writes == 0 && t.Version == 0 { // it moves what is there
		if s.Found == Absent || s.Found == Unanswered {
			all = append(all, at)
		}
		return all
	}
	for _, due := range f.dues(at.state.Now, s) {
		after := at
		after.state.Answered[numbered] = Unanswered
		if _, err := f.World.call(&after.state, Call{Kind: s.Call, Delay: due - at.state.Now, Number: numbered}, Plain); err != nil {
			continue
		}
		if s.Writes > 0 {
			after.body = s.Writes
		}
		after.forget()
		all = append(all, after)
	}
	return all
}

// forget leaves out of a state what makes no difference to what follows.
func (r *reached) forget() {
	r.state.Order, r.state.Tokens = 0, 0
	r.state.Fates, r.state.Answered = [maxVersions + 1]Fate{}, [maxVersions + 1]Found{}
}

// dues returns the instants that a call may have given its timer: the one that was answered,
// or one that a later delivery has, or an earlier one that is not seen.
func (f *search) dues(now Instant, s *Seen) []Instant {
	if s.Call != Schedule {
		return []Instant{0}
	}
	if s.Due != Unknown {
		return []Instant{s.Due}
	}
	all := []Instant{now + s.In}
	for _, other := range f.Seen {
		if other.Kind == SeenClaim && other.Instant >= s.From+s.In {
			all = append(all, other.Instant)
		}
		if other.Kind == SeenCall && other.Due != Unknown && other.Writes == s.Writes && s.Writes > 0 {
			all = append(all, other.Due)
		}
	}
	return all
}

// latest returns until when the lease of a timer may have been extended.
func (f *search) latest(t *Timer) Instant {
	for _, s := range f.Seen {
		if s.Kind == SeenClaim && s.Run == t.Token {
			return s.Ended
		}
	}
	return t.Due
}

// claim returns the state after a delivery, if the timer can be claimed and is the one that
// was delivered.
func (f *search) claim(at reached, s *Seen) []reached {
	t := &at.state.Places[Old][0]
	same := t.Instant == s.Instant && at.body == s.Body && t.Claims+1 == s.Claims && t.Failures == s.Failures
	if _, ok := f.World.next(&at.state, Old); !ok || !same || s.Began < t.Instant {
		return nil
	}
	if f.World.claim(&at.state, Old, 0) != nil {
		return nil
	}
	t.Token = s.Run
	at.forget()
	return []reached{at}
}

// verdict returns the states after the end of a delivery that counted.
func (f *search) verdict(at reached, s *Seen) (all []reached) {
	for v, possible := range s.Verdicts {
		if !possible {
			continue
		}
		after := at
		if t := &after.state.Places[Old][0]; t.Version == 0 || t.Token != s.Run {
			return nil
		}
		f.settle(&after.state, Verdict(v), s.Run)
		after.forget()
		all = append(all, after)
	}
	return all
}

func (f *search) settle(s *State, v Verdict, token int8) {
	f.World.settle(&s.Places[Old][0], s, v, token)
}

// unseen returns the state after a claim whose answer reached no handler, if a later delivery
// counts it, or a call finds its lease.
func (f *search) unseen(at reached) []reached {
	t := at.state.Places[Old][0]
	counted := false
	for i, s := range f.Seen {
		claimed := s.Kind == SeenClaim && s.Claims > t.Claims+1 && s.Instant == t.Instant
		counted = counted || !at.has(i) && (claimed || s.Kind == SeenVerdict && s.Run == Unseen || s.Kind == SeenCall && s.Found == Running)
	}
	from := t.Due
	if t.Token == 0 {
		from -= f.World.Ahead
	}
	at.state.Now = max(at.state.Now, from)
	if _, ok := f.World.next(&at.state, Old); !counted || !ok || f.World.claim(&at.state, Old, 0) != nil {
		return nil
	}
	at.state.Places[Old][0].Token = Unseen
	at.forget()
	return []reached{at}
}
