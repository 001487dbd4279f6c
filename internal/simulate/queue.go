package simulate

import (
	"fmt"
	"maps"
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
		Policy: &leasing.Policy{Window: leasing.AutomaticWindow}, Effects: p, Counters: &observe.Counters{}, Guards: &leasing.Guards{},
		Topic: p.name, Random: n.sim.random.Float64, Wake: func() {}, NewName: p.newName,
	})
	n.consumer = p
	p.core.Start(time.Now(), new(p.settings()), false)
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
			c.hint(exchange.Hint{Kind: exchange.HintDue, Sent: s.now()})
		}
		return err
	})
}

// message is a message of the queue.
type message struct {
	id, payload string
	place       int // in the order of publishes
	delivered   bool
	handled     bool
	token       exchange.Token
	until       time.Time // when its lease expires
}

// untilOf is when a lease of an exchange expires at the earliest. A queue counts in ms.
func (m *messages) untilOf(r *exchange.Request) time.Time {
	return m.sim.now().Add(r.LeaseTTL.Truncate(time.Millisecond) - time.Millisecond)
}

func (m *message) leased(now time.Time) bool { return m.token != "" && m.until.After(now) }

// messages knows what the queue has to have, and checks it with every step.
type messages struct {
	sim      *sim
	count    int
	waiting  map[string]*message // by id; those that have not ended
	leases   map[string]*message // by id and token
	places   int                 // of messages
	known    map[string]answer   // by payload
	keys     map[string]time.Time
	vague    map[string]bool   // keys that Redis may have forgotten
	answered map[string]uint64 // the last sequence of each stream
}

// answer is the answer to the publish of a message.
type answer struct {
	id string
	at time.Time
}

// publishKept is for how long Redis remembers the answer to a publish.
const publishKept = time.Minute

func newMessages(s *sim) *messages {
	return &messages{
		sim: s, waiting: map[string]*message{}, leases: map[string]*message{}, known: map[string]answer{},
		keys: map[string]time.Time{}, vague: map[string]bool{}, answered: map[string]uint64{},
	}
}

// keepMessages keeps what is known of the queue in Redis, and returns what has the judge expect that
// again: a message that was published since is lost, and one that has ended is delivered once more.
func (s *sim) keepMessages() (restore func()) {
	was, waiting := newMessages(s), map[*message]message{}
	if m := s.messages; m != nil {
		was.waiting, was.known, was.keys, was.answered = maps.Clone(m.waiting), maps.Clone(m.known), maps.Clone(m.keys), maps.Clone(m.answered)
		was.places = m.places
		for _, of := range m.waiting {
			waiting[of] = *of
		}
	}
	return func() {
		for of, before := range waiting {
			before.handled = before.handled || of.handled
			*of = before
		}
		if m := s.messages; m != nil {
			m.waiting, m.known, m.keys, m.answered, m.places = was.waiting, was.known, was.keys, was.answered, was.places
		}
	}
}

// published notes the answer to a publish. One that is made again within a minute has the same
// answer; later, it is another publish.
func (m *messages) published(all []queue.Message, answers []wakebelltype.QueuePublished) {
	for i, a := range answers {
		payload, key := string(all[i].Payload), all[i].Key
		first, known := m.known[payload]
		if known && first.id == a.ID {
			continue
		}
		since := m.sim.now().Sub(m.keys[key])
		switch {
		case known && m.sim.now().Sub(first.at) < publishKept-keysAge:
			m.sim.broken("answers", "the id of %s was %s, and is %s", payload, first.id, a.ID)
		case m.vague[key]:
		case key != "" && a.Fresh && since < window-keysAge:
			m.sim.broken("deduplication", "%s is published, and its key %s was %v ago", payload, key, since)
		case !a.Fresh && (key == "" || since > window+keysAge):
			m.sim.broken("deduplication", "%s is suppressed, and its key %q was not published for %v", payload, key, since)
		case m.waiting[a.ID] != nil && a.Fresh || a.ID == "":
			m.sim.broken("answers", "the id of %s is %q", payload, a.ID)
		}
		m.known[payload] = answer{a.ID, m.sim.now()}
		if !a.Fresh {
			continue
		}
		m.places++
		m.keys[key] = m.sim.now()
		delete(m.vague, key)
		m.waiting[a.ID] = &message{id: a.ID, payload: payload, place: m.places}
	}
}

// expire notes, before the clock steps, what Redis may not remember any more: that does not come back.
func (m *messages) expire() {
	if m == nil {
		return
	}
	for payload, a := range m.known {
		if m.sim.now().Sub(a.at) > publishKept-keysAge {
			m.known[payload] = answer{id: a.id}
		}
	}
	for key, at := range m.keys {
		switch since := m.sim.now().Sub(at); {
		case since > window+keysAge:
			delete(m.keys, key)
		case since > window-keysAge:
			m.vague[key] = true
		}
	}
}

// exchanged checks an exchange that Redis has carried out, or answered again.
func (m *messages) exchanged(r *exchange.Request, reply *exchange.Reply) {
	stream := r.Incarnation + "/" + strconv.Itoa(r.Stream)
	if m.answered[stream] == r.Sequence {
		return
	}
	m.answered[stream] = r.Sequence
	refused := map[int]bool{}
	for _, f := range reply.Refused {
		refused[f.Index] = true
	}
	for i, s := range r.Settle {
		if of := m.of(s.Held, refused[i]); of != nil {
			m.settled(of, s.Verdict)
		}
	}
	for i, held := range r.Extend {
		if of := m.of(held, refused[len(r.Settle)+i]); of != nil {
			of.until = m.untilOf(r)
		}
	}
	for i := range reply.Leases {
		m.claimed(r, &reply.Leases[i])
	}
}

// of returns the message that a verdict or an extension of a lease counts for; nil: it does not.
func (m *messages) of(h exchange.Held, refused bool) *message {
	of := m.leases[h.ID+" "+string(h.Token)]
	if of != nil && (m.waiting[of.id] != of || of.token != h.Token) {
		of = nil
	}
	switch {
	case of == nil && !refused:
		m.sim.broken("fence", "a verdict of the message %s counts, and its lease is void", h.ID)
	case of != nil && refused && of.leased(m.sim.now()):
		m.sim.broken("acks count", "a verdict of the message %s is refused, and its lease is valid", h.ID)
	case refused:
		return nil
	}
	return of
}

func (m *messages) settled(of *message, v exchange.Verdict) {
	of.token = ""
	switch v {
	case exchange.Ack:
		if !of.handled {
			m.sim.broken("acks", "the message %s is acked, and no handler has succeeded", of.payload)
		}
		delete(m.waiting, of.id)
	case exchange.DeadLetter, exchange.Fail:
		delete(m.waiting, of.id)
	}
}

func (m *messages) claimed(r *exchange.Request, l *exchange.Lease) {
	of := m.waiting[l.ID]
	switch {
	case of == nil:
		m.sim.broken("fence", "the message %s is delivered, and it has ended or does not exist", l.ID)
	case string(l.Payload) != of.payload:
		m.sim.broken("payloads", "the message %s is delivered with %s", of.payload, l.Payload)
	case m.leases[l.ID+" "+string(l.Token)] != nil:
		m.sim.broken("fence", "the message %s is claimed with the token %s, which an earlier lease has had", of.payload, l.Token)
	case of.leased(m.sim.now()):
		m.sim.broken("exclusion", "the message %s is claimed, and its lease has not expired", of.payload)
	}
	for _, other := range m.waiting {
		if !of.delivered && !other.delivered && other.place < of.place {
			m.sim.broken("order", "the message %s overtakes %s, which was published before", of.payload, other.payload)
		}
	}
	of.delivered, of.token, of.until = true, l.Token, m.untilOf(r)
	m.leases[l.ID+" "+string(l.Token)] = of
}

// begins checks that the handler of a message may begin.
func (m *messages) begins(_ *poller, l *leasing.Lease, _ *run) {
	m.sim.result.Messages++
	if m.leases[l.ID+" "+string(l.Token)] == nil {
		m.sim.broken("fence", "the message %s begins without a lease", l.Payload)
	}
}

func (m *messages) succeeded(l *leasing.Lease) {
	if of := m.leases[l.ID+" "+string(l.Token)]; of != nil {
		of.handled = true
	}
}

// left returns how many messages have not ended.
func (m *messages) left() int {
	if m == nil {
		return 0
	}
	return len(m.waiting)
}
