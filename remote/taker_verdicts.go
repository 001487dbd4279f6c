package remote

import (
	"maps"
	"time"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

func (t *taker) say(v *messages.Verdict) {
	t.mu.Lock()
	t.verdicts = append(t.verdicts, v)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// lookEvery is how often leases are looked at that may need more time.
const lookEvery = 100 * time.Millisecond

// write sends verdicts as they gather, and asks for more time.
func (t *taker) write(stop <-chan struct{}) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-t.wake:
		case <-look.C:
			t.look(time.Now())
		case <-stop:
			t.flush()
			return
		}
		t.flush()
	}
}

func (t *taker) look(now time.Time) {
	var lost []uint64
	t.mu.Lock()
	maps.DeleteFunc(t.crashed, func(_ uint64, until time.Time) bool { return now.After(until) })
	for delivery, r := range t.running {
		switch {
		case now.After(r.until):
			lost = append(lost, delivery)
		case now.After(r.extend):
			r.extend = now.Add(r.ttl / 3)
			if t.link.isUp() {
				r.until = now.Add(r.ttl)
			}
			t.verdicts = append(t.verdicts, &messages.Verdict{Id: r.id, Kind: &messages.Verdict_Extend{Extend: &messages.Extend{Delivery: delivery}}})
		}
	}
	t.mu.Unlock()
	for _, delivery := range lost {
		t.lose(delivery, wakebell.ErrLeaseLost)
	}
}

// flush sends what has gathered. Where there is no link it stays, for the next.
func (t *taker) flush() {
	t.mu.Lock()
	all := t.verdicts
	t.verdicts = nil
	t.mu.Unlock()
	for first := 0; first < len(all); first += maxFrame {
		part := all[first:min(first+maxFrame, len(all))]
		if !t.link.send(&messages.Verdicts{Topic: t.of.Topic, Subscriber: t.of.Name, Verdicts: part}) {
			t.mu.Lock()
			t.verdicts = append(all[first:], t.verdicts...)
			t.mu.Unlock()
			return
		}
	}
}

func (s *clientLink) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}
