package remote

import (
	"context"
	"errors"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/convert"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/payload"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// checkEvery is how often a subscriber looks for leases to extend and for
	// expired leases.
	checkEvery = 100 * time.Millisecond
	// clockEvery is how often an idle subscriber sends its clock. Two clocks that
	// differ by 100 ppm drift apart by 6 ms in that time.
	clockEvery = time.Minute
)

type runningLease struct {
	id     string
	extend time.Time // when to request the next extension
	until  time.Time // when it expires, as confirmed by the node
	cancel func(error)
	ack    *messages.Ack // with its result; nil: it has none
}

// goodUntil sets the end of a lease and the time of its next extension.
func (r *runningLease) goodUntil(until, now time.Time) {
	r.until, r.extend = until, now.Add(until.Sub(now)/3)
}

// clock returns the local clock as the node receives it: the time since began.
func (t *subscriber) clock() *durationpb.Duration { return durationpb.New(time.Since(t.began)) }

// sentAt returns when the node sent a message, or a little earlier. The clock is
// that of the message.
func (t *subscriber) sentAt(clock *durationpb.Duration, now time.Time) time.Time {
	if !clock.IsValid() { // the node sends none
		return now
	}
	sent := t.began.Add(clock.AsDuration())
	if sent.After(now) { // the clock is not one that this subscriber sent
		return now
	}
	return sent
}

// hold stores a lease that arrived. It returns false if the lease has expired or is
// about to, or if the subscriber is stopped.
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

// extended applies the extensions that the node confirms.
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

// checkLeases cancels the contexts of leases shortly before they expire at the node,
// and requests extensions for the others. An Extend that is not confirmed is
// repeated.
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

// send sends verdicts and the local clock. It returns false if there is no link.
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

// open decodes the body of a lease. A body that no retry can decode is rejected.
func (t *subscriber) open(ctx context.Context, l *messages.Lease) error {
	if t.chain == nil {
		return nil
	}
	kind := wakebelltype.OutgoingTimer
	if t.of.Queue.Name != "" {
		kind = wakebelltype.OutgoingMessage
	}
	plain, err := t.chain.Decode(ctx, payload.Encoded{
		Kind: kind, Topic: t.of.Topic, ID: l.GetId(), Headers: convert.HeaderList(l.GetHeaders()), Body: l.GetBody(), ContentType: l.GetContentType(),
	})
	switch {
	case errors.Is(err, payload.ErrCorrupt):
		return wakebell.Reject(err)
	case err != nil:
		return err
	}
	l.Body, l.ContentType, l.Headers = plain.Body, plain.ContentType, convert.HeaderMap(plain.Headers)
	return nil
}

// addVerdict queues a verdict for the next write; mu is held.
func (t *subscriber) addVerdict(v *messages.Verdict) {
	t.verdicts = append(t.verdicts, v)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// write sends queued verdicts and extends leases until stop is closed.
func (t *subscriber) write(stop <-chan struct{}) {
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		select {
		case <-t.wake:
		case <-check.C:
			t.checkLeases(time.Now())
		case <-stop:
			t.flush()
			return
		}
		t.flush()
	}
}

// flush sends the queued verdicts. If there is no link, they stay queued, and it returns false.
func (t *subscriber) flush() bool {
	t.mu.Lock()
	all := t.verdicts
	t.verdicts = nil
	t.mu.Unlock()
	for len(all) > 0 {
		n := 1
		for size := proto.Size(all[0]); n < min(len(all), maxFrame); n++ {
			if size += proto.Size(all[n]) + wire.EnvelopeOverhead; size > t.maxVerdict() {
				break
			}
		}
		if !t.send(all[:n]) {
			t.mu.Lock()
			t.verdicts = append(all, t.verdicts...)
			t.mu.Unlock()
			return false
		}
		all = all[n:]
	}
	return true
}

// maxVerdict is how many bytes verdicts of one frame have, if they are several, and a result.
func (t *subscriber) maxVerdict() int { return t.link.cfg.MaxMessage / 2 }
