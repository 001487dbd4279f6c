package shards

import (
	"fmt"
	"slices"
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
// with shards it would be another timer.
func (w *world) unnamed(s *site, st step) bool {
	l, _, err := s.clients[0].layouts.Stored(w.ctx, modelTopic)
	w.must(err, "layout")
	return st.flag && l.Plain() && l.From == 0 && !w.moved
}

func (w *world) entry(s *site, st step, id string) timers.Entry {
	w.version++
	e := timers.Entry{ID: id, Key: modelKey(id), Payload: []byte(strconv.Itoa(w.version)), At: time.Now().Add(st.in())}
	if w.unnamed(s, st) {
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
	if mark := s.marks[id]; mark.Equal(old.due) && !mark.IsZero() {
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

func (w *world) cancelAll(st step) {
	s := st.site(w)
	n, err := st.client(s).CancelAll(w.ctx, modelTopic)
	if !w.must(err, "cancel all") {
		return
	}
	if int(n) != len(s.timers) && !w.moved {
		w.fail("cancel all has removed %d timers, and there were %d", n, len(s.timers))
	}
	w.emptied(s)
}

// emptied notes that a topic has no timers any more.
func (w *world) emptied(s *site) {
	for id := range s.timers {
		s.remove(id)
	}
}

func (w *world) forget(st step) {
	s := st.site(w)
	if w.must(st.client(s).Forget(w.ctx, modelTopic), "forget") {
		w.emptied(s)
		s.control = wakebelltype.Control{}
		if s.number == 0 { // what is on its way is the topic's too
			clear(w.transit)
		}
	}
}

func (w *world) removeTopic(st step) {
	_, err := st.client(st.site(w)).RemoveTopic(w.ctx, modelTopic)
	w.must(err, "remove the topic")
}

func (w *world) redrive(st step) {
	s := st.site(w)
	_, err := st.client(s).Redrive(w.ctx, modelTopic, wakebelltype.RedriveOptions{
		Overwrite: st.flag, In: max(st.in(), 0), Rate: 10_000,
		Each: func(l wakebelltype.RedrivenLetter) {
			w.note("  %s: %v", l.ID, l.Outcome)
			old := s.timers[l.ID]
			switch l.Outcome {
			case wakebelltype.RedriveSucceeded:
				if old != nil {
					w.fail("the redrive has made %s, and there is a timer of that id", l.ID)
				}
			case wakebelltype.RedriveOverwrote:
				if old == nil {
					w.fail("the redrive has replaced %s, and there was no such timer", l.ID)
				}
			default:
				return
			}
			s.put(l.ID, modelKey(l.ID), "redriven", time.Now().Add(max(st.in(), 0)))
		},
	})
	w.must(err, "redrive")
	for id, t := range s.timers {
		if t.payload == "redriven" {
			w.read(s, id)
		}
	}
}

// read notes payload and instant of a timer that was made of a dead letter.
func (w *world) read(s *site, id string) {
	got, err := s.clients[0].Get(w.ctx, modelTopic, id)
	if err != nil {
		w.fail("%s is there, and cannot be read: %v", id, err)
	}
	s.timers[id].payload, s.timers[id].due = string(got.Payload), got.Activation
}

func (w *world) deleteDead(st step) {
	_, err := st.client(st.site(w)).DeleteDead(w.ctx, modelTopic, wakebelltype.DeadFilter{})
	w.must(err, "delete dead letters")
}

// put stores a timer as an import does.
func (w *world) put(st step) {
	s, id := st.site(w), st.id()
	w.version++
	at := time.Now().Add(st.in())
	mode := map[bool]timers.PutMode{false: timers.PutKeep, true: timers.PutReplace}[st.flag]
	t := timers.Stored{ID: id, Key: modelKey(id), At: at, Due: at, Payload: []byte(strconv.Itoa(w.version)), Number: int64(w.version)}
	existed, err := st.client(s).Put(w.ctx, modelTopic, mode, []timers.Stored{t})
	if !w.must(err, "import") {
		return
	}
	if known := s.timers[id] != nil; known != existed[0] && !w.moved {
		w.fail("the import says %v of whether %s existed", existed[0], id)
	}
	if !existed[0] || st.flag {
		s.put(id, modelKey(id), string(t.Payload), at)
	}
}

// keyedCall is a call with an idempotency key, which is repeated.
type keyedCall struct {
	site  *site
	what  string
	again func(s *Store) (any, error)
	was   any
	at    time.Time
}

func (w *world) scheduleKeyed(st step) {
	s := st.site(w)
	entries := []timers.Entry{w.entry(s, st, st.id())}
	if other := modelTimers[st.b%len(modelTimers)]; other != st.id() {
		entries = append(entries, w.entry(s, st, other))
	}
	key := timers.NewKey("owner", strconv.Itoa(w.version), nil)
	call := func(c *Store) (any, error) {
		b := timers.NewBatch("", len(entries))
		for i := range entries {
			e := entries[i]
			if err := b.Add(modelTopic, &e); err != nil {
				return nil, err
			}
		}
		return c.Write(w.ctx, key, b)
	}
	answer, err := call(st.client(s))
	if !w.must(err, "schedule with an idempotency key") {
		return
	}
	done, _ := answer.([]wakebelltype.Scheduled)
	for i := range done {
		w.note("  %s: %v", entries[i].ID, done[i].Outcome)
		w.wrote(s, &entries[i], done[i])
	}
	w.calls = append(w.calls, keyedCall{s, "schedule", call, slices.Clone(done), time.Now()})
}

func (w *world) cancelKeyed(st step) {
	s := st.site(w)
	ids := slices.Compact([]string{st.id(), modelTimers[st.b%len(modelTimers)]})
	w.version++
	key := timers.NewKey("owner", strconv.Itoa(w.version), nil)
	call := func(c *Store) (any, error) { return c.CancelKeyed(w.ctx, modelTopic, key, ids...) }
	answer, err := call(st.client(s))
	if w.must(err, "cancel with an idempotency key") {
		found, _ := answer.([]wakebelltype.Presence)
		w.cancelled(s, ids, found)
		w.calls = append(w.calls, keyedCall{s, "cancel", call, slices.Clone(found), time.Now()})
	}
}

// repeat repeats a call with an idempotency key, whose answer was lost.
func (w *world) repeat(st step) {
	s := st.site(w)
	for _, c := range w.calls {
		if c.site != s || time.Since(c.at) > 12*time.Hour {
			continue
		}
		got, err := c.again(st.client(s))
		if !w.must(err, "repeat a "+c.what) {
			w.fail("repeat a %s: %v", c.what, err)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.was) {
			w.fail("a repeated %s returns %v, and it returned %v", c.what, got, c.was)
		}
	}
}

// publish, take and commit are the commands of a Python worker.
func (w *world) publish(st step) {
	s, id := st.site(w), st.id()
	if !w.plain(s) {
		return
	}
	w.version++
	k, payload, at := s.keys.Of(modelTopic), strconv.Itoa(w.version), time.Now().Add(st.in()).Truncate(time.Microsecond)
	pipe := s.rdb.TxPipeline()
	pipe.ZAdd(w.ctx, k.Timeline, z(at, id))
	pipe.HSet(w.ctx, k.Payloads, id, payload)
	_, err := pipe.Exec(w.ctx)
	w.must(err, "publish")
	s.put(id, "", payload, at)
}

// commit removes a timer, as a worker that has handled it, or begins to handle it.
func (w *world) commit(st step) {
	s, id := st.site(w), st.id()
	t := s.timers[id]
	if !w.plain(s) || t == nil {
		return
	}
	k := s.keys.Of(modelTopic)
	all := w.scan(s)
	switch at, here := all.timers[id]; {
	case !here:
	case st.flag:
		w.must(s.rdb.ZRem(w.ctx, k.Timeline, id).Err(), "commit")
		w.must(s.rdb.HDel(w.ctx, k.Payloads, id).Err(), "commit")
		s.remove(id)
	case at.score*1e6 <= float64(time.Now().UnixMicro()):
		until := time.Now().Add(time.Hour).Truncate(time.Microsecond)
		w.must(s.rdb.ZAdd(w.ctx, k.Timeline, z(until, id)).Err(), "claim")
		s.end(id)
		t.due, t.delivered, t.failed = until, true, false
	}
}

// plain reports whether Python workers find the timers of a topic.
func (w *world) plain(s *site) bool {
	l, _, err := s.clients[0].layouts.Stored(w.ctx, modelTopic)
	w.must(err, "layout")
	return l.Plain() && l.From == 0 && !w.moved
}
