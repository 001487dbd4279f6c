package subscriptions

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/actors/poller"
	"github.com/wakebell/wakebell/messages"
)

// A lease can take any time to reach its subscriber: a link can stall and then
// deliver. So the hub sends the duration for which the lease was valid when it was sent,
// and a lower bound of the subscriber's own clock at that time. Counted from there, the
// subscriber's lease expires before the node's.

// clock is the last reading of a subscriber's clock.
type clock struct {
	reported   time.Duration
	receivedAt time.Time // zero: no reading
}

func (k *clock) update(reported *durationpb.Duration, now time.Time) {
	if reported.IsValid() {
		k.reported, k.receivedAt = reported.AsDuration(), now
	}
}

// At estimates the subscriber's clock, never too high. It returns nil without a
// reading.
func (k *clock) At(now time.Time) *durationpb.Duration {
	if k.receivedAt.IsZero() {
		return nil
	}
	return durationpb.New(k.reported + now.Sub(k.receivedAt))
}

// ttlOf returns the remaining duration of a lease.
func ttlOf(l *poller.ForwardedLease, now time.Time) *durationpb.Duration {
	return durationpb.New(max(l.Until().Sub(now), 0))
}

// extended notifies subscribers of confirmed extensions.
func (h *hub) extended(all []*poller.ForwardedLease, now time.Time) {
	confirmed := map[*subscriber][]*messages.LeaseExtended{}
	for _, m := range all {
		l := h.held[m.GetDelivery()]
		if l == nil || l.lease != m {
			continue
		}
		l.until = m.Until().Add(time.Second)
		h.answerExtending(l, Settled{Held: true, TTL: ttlOf(m, now).AsDuration()})
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
