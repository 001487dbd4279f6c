package shards

import (
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// The ids of the model, and the key of each: in a topic with shards an id has one key.
var modelTimers = []string{"t0", "t1", "t2", "t3", "t4", "u0", "u1", "v0", "v1"}

func modelKey(id string) string {
	switch id[0] {
	case 't', 'b':
		return "k"
	case 'u':
		return "l"
	default:
		return ""
	}
}

var instants = []time.Duration{-time.Minute, -time.Second, 0, time.Second, 30 * time.Second, time.Hour}

func (st step) id() string            { return modelTimers[st.target%len(modelTimers)] }
func (st step) in() time.Duration     { return instants[st.b%len(instants)] }
func (st step) site(w *world) *site   { return w.sites[st.place%2] }
func (st step) client(s *site) *Store { return s.clients[st.c%2] }

// unnamed reports whether a timer is scheduled without its key, which it keeps. In a topic
// with shards it would be another timer, and so would one that has no key yet and moves to
// such a topic.
func (w *world) unnamed(s *site, st step, id string) bool {
	old := s.timers[id]
	return st.flag && old != nil && old.key != "" && w.plain(s)
}

// keyFor returns the key with which an id is scheduled. In a topic with shards it is that of
// its timer: with another one it would be another timer.
func (w *world) keyFor(s *site, id string) string {
	if old := s.timers[id]; old != nil && old.key == "" && !w.plain(s) {
		return ""
	}
	return modelKey(id)
}

func (w *world) entry(s *site, st step, id string) timers.Entry {
	w.version++
	e := timers.Entry{ID: id, Key: w.keyFor(s, id), Payload: []byte(strconv.Itoa(w.version)), At: time.Now().Add(st.in())}
	if w.unnamed(s, st, id) {
		e.Key = ""
	}
	return e
}

// scheduling schedules with a policy.
func scheduling(policy wakebelltype.Policy, once time.Duration) func(w *world, st step) {
	return func(w *world, st step) {
		s := st.site(w)
		e := w.entry(s, st, st.id())
		e.Policy, e.Once = policy, once
		if policy == wakebelltype.PolicyDebounce {
			e.At, e.In = time.Time{}, max(st.in(), time.Millisecond)
		}
		done, err := st.client(s).Schedule(w.ctx, modelTopic, e)
		if w.must(err, "schedule") {
			w.note("  %s key %q %+v: %v at %v", e.ID, e.Key, st.in(), done[0].Outcome, time.Until(done[0].Due))
			w.wrote(s, &e, done[0])
		}
	}
}

// wrote notes the outcome of a schedule, and checks that it is one that the documentation
// has.
func (w *world) wrote(s *site, e *timers.Entry, done wakebelltype.Scheduled) {
	old, mark := s.timers[e.ID], s.marks[e.ID]
	waits := old != nil && s.running(e.ID) == nil
	switch done.Outcome {
	case wakebelltype.OutcomeCreated:
		if old != nil {
			w.fail("%s is created, and there is a timer of that id", e.ID)
		}
	case wakebelltype.OutcomeAlreadyDone:
		if old != nil || e.Once == 0 || mark.IsZero() {
			w.fail("%s is done already, and it is not", e.ID)
		}
		return
	case wakebelltype.OutcomeKeptPending, wakebelltype.OutcomeKeptRunning, wakebelltype.OutcomeKeptEarlier:
		switch {
		case old == nil:
			w.fail("%s is kept, and there is no such timer", e.ID)
		case e.Policy == wakebelltype.PolicyEarliest && old.due.After(e.At):
			w.fail("%s is kept with PolicyEarliest, and it is %v later", e.ID, old.due.Sub(e.At))
		case e.Policy == wakebelltype.PolicyReplace && waits && !old.delivered && mark.Equal(old.due):
			w.fail("%s counts as delivered, and it was not", e.ID)
		}
		return
	default:
		switch {
		case old == nil:
			w.fail("%s is %v, and there is no such timer", e.ID, done.Outcome)
		case e.Policy == wakebelltype.PolicyEarliest && waits && done.Due.After(old.due):
			w.fail("PolicyEarliest makes %s later by %v", e.ID, done.Due.Sub(old.due))
		}
	}
	s.put(e.ID, e.Key, string(e.Payload), done.Due)
	if e.Once > 0 {
		s.marks[e.ID] = done.Due
	}
}

// bulk schedules more timers of a key than a script looks at.
func (w *world) bulk(st step) {
	s := st.site(w)
	entries := make([]timers.Entry, 110)
	for i := range entries {
		entries[i] = w.entry(s, st, fmt.Sprintf("b%03d", i))
		entries[i].Key = modelKey("b")
		entries[i].At = time.Now().Add(-time.Second)
	}
	done, err := st.client(s).Schedule(w.ctx, modelTopic, entries...)
	if w.must(err, "schedule many") {
		for i := range done {
			w.wrote(s, &entries[i], done[i])
		}
	}
}

func (w *world) reschedule(st step) {
	s, id := st.site(w), st.id()
	done, err := st.client(s).Reschedule(w.ctx, modelTopic, id, time.Now().Add(st.in()), 0)
	old := s.timers[id]
	if !w.must(err, "reschedule") {
		if old != nil && !w.moved {
			w.fail("reschedule does not find %s", id)
		}
		return
	}
	w.note("  %s %+v: %v", id, st.in(), done.Outcome)
	if old == nil {
		w.fail("%s is rescheduled, and there is no such timer", id)
	}
	if mark := s.marks[id]; mark.Equal(old.due) && !mark.IsZero() && !old.delivered {
		s.marks[id] = done.Due
	}
	s.put(id, old.key, old.payload, done.Due)
}

func (w *world) runNow(st step) {
	s, id := st.site(w), st.id()
	found, err := st.client(s).RunNow(w.ctx, modelTopic, id)
	old := s.timers[id]
	if !w.must(err, "run now") {
		if old != nil && !w.moved {
			w.fail("run now does not find %s", id)
		}
		return
	}
	w.note("  %s: %v", id, found)
	switch {
	case old == nil:
		w.fail("%s is to run now, and there is no such timer", id)
	case found == wakebelltype.PresencePending && s.running(id) != nil:
		w.fail("%s runs, and run now has found it pending", id)
	case found == wakebelltype.PresencePending && old.due.After(time.Now()):
		old.due = time.Now()
	}
}

func (w *world) cancel(st step) {
	s, ids := st.site(w), []string{st.id()}
	if st.flag {
		ids = []string{"t0", "t1", "u0", "v0"}
	}
	found, err := st.client(s).Cancel(w.ctx, modelTopic, ids...)
	if w.must(err, "cancel") {
		w.cancelled(s, ids, found)
	}
}

func (w *world) cancelled(s *site, ids []string, found []wakebelltype.Presence) {
	w.note("  %q: %v", ids, found)
	for i, id := range ids {
		absent := found[i] == wakebelltype.PresenceAbsent
		if known := s.timers[id] != nil; known == absent && !w.moved {
			w.fail("cancel finds %s %v, and there is such a timer: %v", id, found[i], known)
		}
		if !absent {
			s.remove(id)
		}
	}
}
