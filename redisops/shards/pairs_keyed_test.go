package shards

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

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
