package fleet

import (
	"slices"
	"testing/synctest"
	"time"

	"github.com/wakebell/wakebell/internal/embedded/contents"
)

// loseWrites has Redis lose what it writes for up to three seconds, as when its machine dies: it is
// away for a moment, in which the judge's copy is made, and again when that takes its place. No topic is
// resharded meanwhile, because both places must keep their data for that.
func (f *fleet) loseWrites(o Op) {
	for _, topic := range topics {
		defer f.locks.take("the shards of " + topic)()
	}
	lag := time.Duration(1+o.C) * 30 * time.Millisecond
	if time.Until(f.calm) < lag || f.plan.Outbox != nil {
		return // a row that has left its outbox would be gone
	}
	loss := &span{name: "lost writes", from: time.Now()}
	f.record.mu.Lock()
	f.record.losses = append(f.record.losses, loss)
	f.record.mu.Unlock()
	defer f.fault("Redis loses what it writes in %v", lag)()
	var had contents.Contents
	f.standstill(func() (err error) { had, err = contents.Of(f.store.server.Miniredis()); return err })
	<-time.After(lag)
	f.standstill(func() error {
		m := f.store.server.Miniredis()
		if err := had.Restore(m); err != nil {
			return err
		}
		m.FastForward(lag) // keys expire when they would have done
		return f.direct.ScriptFlush(f.ctx).Err()
	})
	f.record.mu.Lock()
	defer f.record.mu.Unlock()
	loss.to = time.Now()
}

// standstill does something with the server while it executes no command.
func (f *fleet) standstill(do func() error) {
	defer f.locks.take("Redis")()
	f.store.goAway()
	defer f.store.comeBack()
	synctest.Wait()
	f.check(do(), "copy what Redis has")
}

// lost reports whether Redis has lost writes of a time. A lease may have been on its way for as long as
// it lasts, so what is said about a handler counts from that long before.
func (j *judge) lost(from, to time.Time) bool {
	return slices.ContainsFunc(j.record.losses, func(s *span) bool { return !s.from.After(to) && !s.to.Before(from) })
}

// forget makes the outcome unknown of what was written while Redis lost it: whether it was sent before
// or after is not known.
func (j *judge) forget() {
	for _, w := range j.record.writes {
		if j.lost(w.from, w.to) {
			w.result, w.pending = unknown, false
		}
	}
	for _, a := range j.record.alarms {
		if j.lost(a.from, a.to) {
			a.result = unknown
		}
	}
	j.record.series = slices.DeleteFunc(j.record.series, func(s *series) bool { return j.lost(s.start.Add(-gatewayTimeout), s.until.Add(calmAfter)) })
	j.record.joins = slices.DeleteFunc(j.record.joins, func(of *join) bool { return j.lost(of.write.from, of.limit.Add(calmAfter)) })
	j.record.turns = slices.DeleteFunc(j.record.turns, func(t *turn) bool {
		to := t.to
		if to.IsZero() {
			to = time.Now()
		}
		return j.lost(t.from.Add(-calmAfter), to)
	})
}
