package fleet

import (
	"errors"
	"time"

	"github.com/wakebell/wakebell"
)

// reshard gives a topic another number of shards while its timers are scheduled and handled. A
// process that makes the change and ends is followed by another one within seconds, because the
// promise that timers are moved whole needs that.
func (f *fleet) reshard(o Op) {
	topic, shards := topics[o.B%len(topics)], 1+o.C%4
	defer f.locks.take("the shards of " + topic)()
	f.trace("%s gets %d shards", topic, shards)
	for i := o.A; f.ctx.Err() == nil; i++ {
		n := f.nodes[i%len(f.nodes)]
		if run := n.running(); run != nil && f.reshardAt(n, run, topic, shards) {
			return
		}
		<-time.After(time.Second)
	}
}

// reshardAt changes the number of shards from a node, and reports whether the change has ended.
func (f *fleet) reshardAt(n *node, run *incarnation, topic string, shards int) bool {
	for p, err := range run.sys.Client().Reshard(f.ctx, topic, shards) {
		if errors.Is(err, wakebell.ErrInvalid) {
			f.check(err, "reshard "+topic)
			return true
		}
		if err != nil {
			f.trace("%s: reshard %s: %v", n.name(), topic, err)
			return false
		}
		if n.running() != run {
			return false // its process has ended
		}
		if p.Done {
			f.trace("%s has %d shards", topic, shards)
			return true
		}
	}
	return false
}
