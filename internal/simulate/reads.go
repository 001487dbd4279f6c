package simulate

import (
	"errors"
	"slices"
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// read compares what operators see with what there is. While timers move to other shards,
// those on their way are in no listing.
func (c *client) read(o Op) {
	if c.sim.clients[0].resharding() {
		return
	}
	c.readTimer(o)
	c.readTimers()
	c.readDead()
	c.readCounts()
}

func (c *client) readTimer(o Op) {
	s, id := c.sim, name(o.ID)
	found, err := c.store.Get(s.ctx, topic, id)
	v := s.judge.current[id]
	switch {
	case errors.Is(err, wakebelltype.ErrNotFound):
		s.judge.absent(id)
	case err != nil:
		s.broken("errors", "get: %v", err)
	case v == nil:
		s.broken("answers", "%s is found, and there is no such timer", id)
	case string(found.Payload) != v.payload || found.Running != v.leased() || found.Key != v.key:
		s.broken("answers", "%s has payload %s, key %q, running %t; expected %+v", id, found.Payload, found.Key, found.Running, v)
	case !v.leased() && !found.Parked && v.token == "" && !s.judge.dueAt(v, found.Due):
		s.broken("answers", "%s is due %v, expected %v", id, found.Due.Sub(s.begin), v.due.Sub(s.begin))
	}
}

func (c *client) readTimers() {
	s := c.sim
	var ids []string
	for after, more := timers.Cursor(""), true; more; more = after != "" {
		page, next, err := c.store.List(s.ctx, topic, timers.Filter{After: after, Limit: max(5, s.judge.pending()/20)})
		if err != nil {
			s.broken("errors", "list: %v", err)
		}
		for i := range page {
			ids = append(ids, page[i].ID)
		}
		after = next
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		s.broken("answers", "the list names an id twice: %q", ids)
	}
	for id := range s.judge.current {
		if !has(ids, id) {
			s.broken("answers", "%s is not listed", id)
		}
	}
	if len(ids) != s.judge.pending() {
		s.broken("answers", "the list has %q, and there are %d timers", ids, s.judge.pending())
	}
}

// has reports whether a sorted list has an id.
func has(sorted []string, id string) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}

func (c *client) readDead() {
	s := c.sim
	seen := 0
	for after, more := "", true; more; more = after != "" {
		page, next, err := c.store.DeadLetters(s.ctx, topic, wakebelltype.DeadFilter{}, after, max(3, min(s.judge.letters()/20, 200)))
		if err != nil {
			s.broken("errors", "dead letters: %v", err)
		}
		for i := range page {
			if seen++; !slices.ContainsFunc(s.judge.dead[page[i].ID], func(v *version) bool { return v.payload == string(page[i].Payload) && v.key == page[i].Key }) {
				s.broken("answers", "there is no such dead letter: %+v", page[i])
			}
		}
		after = next
	}
	if want := s.judge.letters(); seen != want {
		s.broken("answers", "%d dead letters, expected %d", seen, want)
	}
}

func (c *client) readCounts() {
	s := c.sim
	st, err := c.store.Stats(s.ctx, topic)
	if err != nil {
		s.broken("errors", "stats: %v", err)
	}
	leased := 0
	for _, v := range s.judge.current {
		if v.leased() {
			leased++
		}
	}
	if sum := st.Pending + st.Due + st.Leased + st.Retrying + st.Parked; int(st.Total) != s.judge.pending() || sum != st.Total ||
		int(st.Leased) != leased || int(st.Dead) != s.judge.letters() {
		s.broken("answers", "stats at %v: %+v; expected %d timers, %d leased, %d dead", time.Since(s.begin), st, s.judge.pending(), leased, s.judge.letters())
	}
}
