package simulate

import (
	"fmt"
	"strconv"
	"time"

	"github.com/wakebell/wakebell/actors/leasing"
	"github.com/wakebell/wakebell/actors/observe"
	"github.com/wakebell/wakebell/messages/exchange"
	"github.com/wakebell/wakebell/redisops/queue"
	"github.com/wakebell/wakebell/redisops/timers"
	"github.com/wakebell/wakebell/wakebelltype"
)

// window is for how long a deduplication key suppresses messages.
const window = 30 * time.Second

// opened returns the queue. Nodes consume it from the first publish on.
func (s *sim) opened() *queue.Queue {
	q, err := queue.New(s.clients[0].store.Timers(), wakebelltype.QueueKeys{Name: "q"})
	if err != nil {
		panic(err)
	}
	if s.messages == nil {
		s.messages = newMessages(s)
		for _, n := range s.nodes {
			n.consume()
		}
	}
	return q
}

// consume starts the consumer of the queue, with the core of the poller.
func (n *node) consume() {
	if n.sim.messages == nil || n.down || n.leaving || n.consumer != nil {
		return
	}
	q, err := queue.New(n.store.Timers(), wakebelltype.QueueKeys{Name: "q"})
	if err != nil {
		panic(err)
	}
	p := &poller{node: n, name: "queue", source: q.Source(queue.SourceOptions{}), shards: 1, account: n.sim.messages}
	p.core = leasing.New(leasing.Config{
		Policy: leasing.Policy{Window: leasing.AutomaticWindow}, Effects: p, Counters: &observe.Counters{}, Guards: &leasing.Guards{},
		Topic: p.name, Random: n.sim.random.Float64, Wake: func() {}, NewName: p.newName,
	})
	n.consumer = p
	p.core.Start(time.Now(), p.settings(), false)
	p.advance()
}

// publish publishes up to three messages, some with a deduplication key. The network may lose
// the request or the answer; then it publishes the same messages again.
func (c *client) publish(o Op) {
	s := c.sim
	q := s.opened()
	var all []queue.Message
	for i := range 1 + o.B%3 {
		key := ""
		if (o.A+i)%3 == 0 {
			key = "d" + strconv.Itoa((o.A+i)%5)
		}
		s.messages.count++
		m, err := queue.MessageOf([]byte("m"+strconv.Itoa(s.messages.count)), key, fmt.Sprintf("%020x", s.messages.count))
		if err != nil {
			panic(err)
		}
		all = append(all, m)
	}
	c.call("publish "+string(all[0].Payload), func(*timers.Key) error {
		s.loseNext()
		published, _, err := q.Publish(s.ctx, queue.PublishOptions{Window: window}, all...)
		if err == nil {
			s.messages.published(all, published)
			c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: time.Now()})
		}
		return err
	})
}
