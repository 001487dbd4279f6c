package remote

import (
	"maps"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/messages"
)

const (
	// checkEvery is how often leases are looked at that may need more time or
	// have ended.
	checkEvery = 100 * time.Millisecond
	// clockEvery is how often an idle subscription tells its clock: between
	// two of them, clocks that differ by 100 ppm drift by 6 ms.
	clockEvery = time.Minute
)

type runningLease struct {
	id     string
	extend time.Time // when to ask for more time
	until  time.Time // when it ends, by what the node has confirmed
	cancel func(error)
}

// goodUntil moves the end of a lease, and when to ask for more time.
func (r *runningLease) goodUntil(until, now time.Time) {
	r.until, r.extend = until, now.Add(until.Sub(now)/3)
}

// clock is what the node is told of the local clock.
func (t *subscriber) clock() *durationpb.Duration { return durationpb.New(time.Since(t.began)) }

// sentAt is when a message was sent, or a little earlier.
func (t *subscriber) sentAt(clock *durationpb.Duration, now time.Time) time.Time {
	if !clock.IsValid() { // of a node that tells none
		return now
	}
	sent := t.began.Add(clock.AsDuration())
	if sent.After(now) { // it was told a time that is not ours
		return now
	}
	return sent
}

// hold notes a lease that has come; false: it has ended already, or may have.
func (t *subscriber) hold(l *messages.Lease, until, now time.Time, cancel func(error)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || !now.Add(checkEvery).Before(until) {
		return false
	}
	r := &runningLease{id: l.GetId(), cancel: cancel}
	r.goodUntil(until, now)
	t.running[l.GetDelivery()] = r
	t.work.Add(1)
	return true
}

// extended takes the node's word for how long leases are good.
func (t *subscriber) extended(m *messages.LeasesExtended) {
	now := time.Now()
	sent := t.sentAt(m.GetClock(), now)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range m.GetExtended() {
		r, until := t.running[e.GetDelivery()], sent.Add(e.GetTtl().AsDuration())
		if r != nil && r.id == e.GetId() && until.After(r.until) {
			r.goodUntil(until, now)
		}
	}
}

// look ends the contexts of leases before they end at the node, and asks for
// more time for the others. An Extend that is not confirmed is asked for again.
func (t *subscriber) checkLeases(now time.Time) {
	var lost []uint64
	t.mu.Lock()
	maps.DeleteFunc(t.crashed, func(_ uint64, until time.Time) bool { return now.After(until) })
	for delivery, r := range t.running {
		switch {
		case !now.Add(checkEvery).Before(r.until): // the next check would be too late
			lost = append(lost, delivery)
		case now.After(r.extend):
			r.extend = now.Add(r.until.Sub(now) / 3)
			t.verdicts = append(t.verdicts, &messages.Verdict{Id: r.id, Kind: &messages.Verdict_Extend{Extend: &messages.Extend{Delivery: delivery}}})
		}
	}
	idle := now.Sub(t.clockSent) >= clockEvery
	t.mu.Unlock()
	for _, delivery := range lost {
		t.lose(delivery, wakebell.ErrLeaseLost)
	}
	if idle {
		t.send(nil)
	}
}

// send sends verdicts, and what the local clock is; false: there is no link.
func (t *subscriber) send(verdicts []*messages.Verdict) bool {
	now := time.Now()
	if !t.link.send(&messages.Verdicts{Topic: t.of.Topic, Subscriber: t.of.Name, Verdicts: verdicts, Clock: t.clock()}) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clockSent = now
	return true
}
