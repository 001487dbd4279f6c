package faults

import (
	"context"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/wakebelltype"
)

// EventJoined is the run of the timer of a join, with how many of its parts have ended how.
const EventJoined Event = "joined"

// joining returns the handlers of a node for the timers of joins, which are on Topic, and of
// their parts, which are on the topics with shards.
func (c NodeConfig) joining(w worker) []wakebell.Handler {
	options := append(asTopic(c.options()), wakebell.MaxConcurrent(c.MaxConcurrent))
	handlers := []wakebell.Handler{wakebell.Handle(wakebell.NewTopic[Work](c.Topic), w.join, options...)}
	for name, n := range c.Shards {
		own := append(options[:len(options):len(options)], wakebell.Shards(n))
		handlers = append(handlers, wakebell.Handle(wakebell.NewTopic[Work](name), w.part, own...))
	}
	return handlers
}

// part handles a part as its body says. It reports nothing: its join does.
func (w worker) part(ctx context.Context, t wakebell.Timer[Work]) error {
	_, err := do(ctx, t)
	return err
}

// join reports how the parts have ended.
func (w worker) join(ctx context.Context, t wakebell.Timer[Work]) error {
	ends := map[wakebelltype.End]int{}
	for p, err := range t.Parts(ctx) {
		if err != nil {
			return err
		}
		ends[p.End]++
	}
	w.report(Line{Event: EventJoined, ID: t.ID, Ends: ends})
	return nil
}

// Joined returns what the runs of the timers of joins have reported, by id.
func (l *DeliveryLog) Joined() map[string][]map[wakebelltype.End]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string][]map[wakebelltype.End]int, len(l.joined))
	for id, runs := range l.joined {
		all[id] = runs
	}
	return all
}
