package subscriptions

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// A lease is on the way to its subscriber for any time: a link can stand still
// and then deliver. So the hub sends how long it was good when it was sent, and
// what the subscriber's own clock was then, at least. Counted from there the
// subscriber's end of the lease comes before the node's.

// clock is what a subscriber reported of its clock.
type clock struct {
	reported   time.Duration
	receivedAt time.Time // zero: nothing
}

func (k *clock) update(reported *durationpb.Duration, now time.Time) {
	if reported.IsValid() {
		k.reported, k.receivedAt = reported.AsDuration(), now
	}
}

// At is the subscriber's clock, or a little less; nil: it is not known.
func (k *clock) At(now time.Time) *durationpb.Duration {
	if k.receivedAt.IsZero() {
		return nil
	}
	return durationpb.New(k.reported + now.Sub(k.receivedAt))
}

// ttlOf is how long a lease is good.
func ttlOf(l *poller.ForwardedLease, now time.Time) *durationpb.Duration {
	return durationpb.New(max(l.Until().Sub(now), 0))
}

// extended tells subscribers that what they asked for is confirmed.
func (h *hub) extended(all []*poller.ForwardedLease, now time.Time) {
	confirmed := map[*subscriber][]*messages.LeaseExtended{}
	for _, m := range all {
		l := h.held[m.GetDelivery()]
		if l == nil || l.lease != m {
			continue
		}
		l.until = m.Until().Add(time.Second)
		if s := l.of; s != nil && s.to != nil {
			confirmed[s] = append(confirmed[s], &messages.LeaseExtended{Id: m.GetId(), Delivery: m.GetDelivery(), Ttl: ttlOf(m, now)})
		}
	}
	for s, leases := range confirmed {
		for part := range slices.Chunk(leases, maxLeases) {
			h.root.Send(s.to, &messages.LeasesExtended{
				Topic: h.topic, Subscriber: s.key.name, Generation: s.generation, Extended: part, Clock: s.clock.At(now),
			})
		}
	}
}
