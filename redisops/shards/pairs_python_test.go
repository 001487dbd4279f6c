package shards

import (
	"strconv"
	"time"
)

// publish, take and commit are the commands of a Python worker.
func (w *world) publish(st step) {
	s, id := st.site(w), st.id()
	if old := s.timers[id]; !w.plain(s) || modelKey(id) != "" && (old == nil || old.key == "") { // see unnamed
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
