package remote_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
)

// answerAttacks do not read the answers that they request.
var answerAttacks = []attack{
	{"large answers that are not read", func(t *testing.T, n *node, random *rand.Rand) {
		topic := wakebell.NewTopic[string](redistest.Name(t))
		_, err := topic.Schedule(t.Context(), n.Client(), strings.Repeat("x", 900<<10), wakebell.ID("large"), wakebell.In(time.Hour))
		if !assertNoError(t, err, "schedule") {
			return
		}
		k := assault(t, n)
		all := make([]proto.Message, 200)
		for i := range all {
			all[i] = &messages.GetTimerRequest{Request: uint64(i + 1), Topic: topic.Name(), Id: "large"} //nolint:gosec // small
		}
		k.say(all...)
		lasting(t, time.Duration(500+random.IntN(500))*time.Millisecond)
		k.end()
		_, err = n.Client().CancelAll(t.Context(), topic.Name())
		assertNoError(t, err, "cancel all")
	}},
	{"requests of a peer that reads nothing", func(t *testing.T, n *node, random *rand.Rand) {
		address := blackHole(t)
		s := intrude(t, n)
		s.hello(address).welcomed()
		b := s.batchOf(s.gateway(), &messages.GetTopicStatsRequest{Topic: n.topic.Name()})
		b.Senders = []*actor.PID{actor.NewPID(address, "missing")}
		b.Envelopes[0].Sender = 1
		for len(b.Envelopes) < 1000 {
			b.Envelopes = append(b.Envelopes, proto.CloneOf(b.Envelopes[0]))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				if s.stream.Send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: b}}) != nil {
					return
				}
			}
		}()
		lasting(t, time.Duration(500+random.IntN(500))*time.Millisecond)
		_ = s.conn.Close()
		<-done
	}},
	{"hoarded leases of many topics", func(t *testing.T, n *node, random *rand.Rand) {
		const topics = 4
		k, large := assault(t, n), strings.Repeat("x", 900<<10)
		for i := range topics {
			topic := wakebell.NewTopic[string](redistest.Name(t) + strconv.Itoa(i))
			drafts := make([]wakebell.Draft, 12)
			for i := range drafts {
				drafts[i] = topic.Draft(large)
			}
			_, err := n.Client().Schedule(t.Context(), drafts...)
			assertNoError(t, err, "schedule")
			k.say(subscription(topic.Name(), 10_000)) // and it reads nothing
		}
		lasting(t, time.Duration(500+random.IntN(500))*time.Millisecond)
		k.end()
		for i := range topics {
			_, err := n.Client().CancelAll(t.Context(), redistest.Name(t)+strconv.Itoa(i))
			assertNoError(t, err, "cancel all")
		}
	}},
	{"addresses that are claimed", func(t *testing.T, n *node, random *rand.Rand) {
		for range 50 {
			s := intrude(t, n)
			s.hello("10." + strconv.Itoa(random.IntN(256)) + ".0.1:80")
			_ = s.ended()
			_ = s.conn.Close()
		}
	}},
}
