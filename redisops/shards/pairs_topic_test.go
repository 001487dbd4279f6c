package shards

import (
	"errors"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

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
		w.period++         // the state of limits is gone: they start with a burst
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
				if old == nil {
					w.fail("the redrive has left the dead letter of %s, and nothing is in its way", l.ID)
				}
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

// repair finds nothing to restore or to drop, because nothing was lost.
func (w *world) repair(st step) {
	done, err := st.client(st.site(w)).Repair(w.ctx, modelTopic, wakebelltype.RepairOptions{Apply: true, DropMissing: true})
	if errors.Is(err, wakebelltype.ErrInvalid) { // it is being resharded
		return
	}
	if w.must(err, "repair") && done.Restored+done.Missing > 0 {
		w.fail("a repair restores %d timers, and %d have no payload", done.Restored, done.Missing)
	}
}

// put stores a timer as an import does.
func (w *world) put(st step) {
	s, id := st.site(w), st.id()
	w.version++
	at := time.Now().Add(st.in())
	mode := map[bool]timers.PutMode{false: timers.PutKeep, true: timers.PutReplace}[st.flag]
	t := timers.Stored{ID: id, Key: w.keyFor(s, id), At: at, Due: at, Payload: []byte(strconv.Itoa(w.version)), Number: int64(w.version)}
	existed, err := st.client(s).Put(w.ctx, modelTopic, mode, []timers.Stored{t})
	if !w.must(err, "import") {
		return
	}
	if known := s.timers[id] != nil; known != existed[0] && !w.moved {
		w.fail("the import says %v of whether %s existed", existed[0], id)
	}
	if !existed[0] || st.flag {
		s.put(id, t.Key, string(t.Payload), at)
	}
}
