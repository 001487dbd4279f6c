package remote_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/wakebelltype"
)

// attacks are all attacks that TestHostile mixes. Each file of attacks has its list.
var attacks = slices.Concat(frameAttacks, shareAttacks, connectionAttacks, answerAttacks)

var frameAttacks = []attack{
	{"frames that end a stream", func(t *testing.T, n *node, random *rand.Rand) {
		for range 20 {
			s := intrude(t, n)
			b := s.batchOf(s.gateway(), s.schedule("x"))
			switch random.IntN(4) {
			case 0:
				b.Envelopes[0].TypeId = int32(random.IntN(1000)) - 500
			case 1:
				b.Envelopes[0].Target = int32(random.IntN(1000)) + 1
			case 2:
				b.Envelopes[0].Sender = -1
			case 3:
				b.Envelopes[0].MessageData = []byte{0xff}
			}
			s.hello(s.address).batch(b)
			_ = s.conn.Close()
		}
	}},
	{"messages to actors that are not for peers", func(t *testing.T, n *node, random *rand.Rand) {
		s := intrude(t, n)
		s.hello(s.address).welcomed()
		for range 200 {
			s.batch(s.batchOf(s.gateway(), &actor.Stop{}))
			s.batch(s.batchOf("activator", &actor.PoisonPill{}))
		}
		_ = s.conn.Close()
	}},
	{"watching without end", func(t *testing.T, n *node, random *rand.Rand) {
		s := intrude(t, n)
		s.hello(s.address).welcomed()
		for i := range 3000 {
			s.batch(s.batchOf(s.gateway(), &actor.Watch{Watcher: actor.NewPID(s.address, "w"+strconv.Itoa(i))}))
		}
		_ = s.conn.Close()
	}},
	{"verdicts about nothing", func(t *testing.T, n *node, random *rand.Rand) {
		k := assault(t, n)
		all := make([]proto.Message, 5000)
		for i := range all {
			all[i] = &messages.Verdicts{Topic: n.topic.Name(), Subscriber: "s", Verdicts: []*messages.Verdict{
				{Id: "x", Kind: &messages.Verdict_Ack{Ack: &messages.Ack{Delivery: random.Uint64()}}},
			}}
		}
		k.say(all...)
		k.end()
	}},
	{"a wrong token", func(t *testing.T, n *node, random *rand.Rand) {
		for range 50 {
			_ = n.call(t, "a-wrong-one-of-sixteen-bytes", &messages.GetTopicStatsRequest{Topic: n.topic.Name()})
		}
	}},
}

var shareAttacks = []attack{
	{"topics without end", func(t *testing.T, n *node, random *rand.Rand) {
		k := assault(t, n)
		name := redistest.Name(t)
		all := make([]proto.Message, 300+random.IntN(300))
		for i := range all {
			all[i] = subscription(name+strconv.Itoa(i), 1)
		}
		k.asks(all...)
		k.end()
	}},
	{"subscribing and leaving", func(t *testing.T, n *node, random *rand.Rand) {
		k := assault(t, n)
		name := redistest.Name(t)
		for i := range 100 {
			topic := name + strconv.Itoa(random.IntN(20))
			k.ask(subscription(topic, uint32(1+i)))
			k.say(&messages.UnsubscribeRequest{Topic: topic, Subscriber: "s"})
		}
		k.end()
	}},
	{"all credits of a topic", func(t *testing.T, n *node, random *rand.Rand) {
		k := assault(t, n)
		topic := redistest.Name(t)
		for i := range 50 {
			m := subscription(topic, 10_000)
			m.Subscriber = strconv.Itoa(i)
			k.ask(m)
		}
		k.end()
	}},
	{"keys of one's own", func(t *testing.T, n *node, random *rand.Rand) {
		k := assault(t, n)
		foreign := redistest.Name(t)
		for range 50 {
			queue := &messages.Queue{DeadLetters: foreign}
			if random.IntN(2) == 0 {
				queue = &messages.Queue{Separator: strconv.Itoa(random.IntN(100))}
			}
			k.refused(messages.Code_CODE_INVALID, &messages.SubscribeRequest{Topic: redistest.Name(t), Subscriber: "s", Credits: 1, Queue: queue})
			k.refused(messages.Code_CODE_INVALID, &messages.PublishRequest{
				Name: redistest.Name(t), Queue: queue, Messages: []*messages.QueueMessage{{Body: []byte("x")}}, Cap: 1, DropOldest: true,
			})
		}
		k.end()
	}},
	{"tails without end", func(t *testing.T, n *node, random *rand.Rand) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := dialAs(t, n, malloryToken)
		var all []<-chan error
		for range 40 {
			_, ended := watch(ctx, c, n.topic.Name())
			all = append(all, ended)
		}
		select {
		case <-time.After(time.Duration(random.IntN(500)) * time.Millisecond):
		case <-ctx.Done():
		}
		cancel()
		for _, ended := range all {
			_ = receive(t, ended) // it was cut, or refused
		}
	}},
	{"schedules by the thousand", func(t *testing.T, n *node, random *rand.Rand) {
		k := assault(t, n)
		topic := redistest.Name(t)
		for range 5 {
			batch := &messages.ScheduleBatchRequest{Timeout: durationpb.New(patience)}
			for range 500 {
				batch.Timers = append(batch.Timers, &messages.ScheduleRequest{Topic: topic, When: &messages.ScheduleRequest_In{In: durationpb.New(time.Hour)}})
			}
			k.ask(batch)
		}
		_, err := n.Client().CancelAll(t.Context(), topic)
		assertNoError(t, err, "cancel all")
		k.end()
	}},
	{"what operators do", func(t *testing.T, n *node, random *rand.Rand) {
		c := dialAs(t, n, malloryToken)
		for range 30 {
			_, _ = c.Queues().Purge(t.Context(), wakebelltype.QueueKeys{Name: redistest.Name(t), DeadLetters: "timers_topics"}, true)
			_, _ = c.Overview(t.Context(), n.topic.Name())
		}
	}},
}
