//go:build !race

package remote_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/messages/rpc"
	"github.com/wakebell/wakebell/remote"
)

// These tests send hundreds of thousands of messages and look at the memory of the process,
// which the race detector multiplies. make test runs them without it.

func TestFramesAreBounded(t *testing.T) {
	t.Parallel()
	cfg := withToken()
	cfg.MaxMessage = 1 << 20
	n := serve(t, cfg)
	for name, b := range map[string]*premote.MessageBatch{
		"in bytes": {Envelopes: []*premote.MessageEnvelope{{MessageData: make([]byte, 2<<20)}}},
		"in envelopes": {Envelopes: func() []*premote.MessageEnvelope {
			all := make([]*premote.MessageEnvelope, 300_000)
			for i := range all {
				all[i] = &premote.MessageEnvelope{}
			}
			return all
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := meet(t, n).hello(deadAddress(t)).welcomed()
			s.batch(b)
			require.Error(t, s.ended())
			n.alive(t)
		})
	}
	t.Run("in parts of a body", func(t *testing.T) {
		t.Parallel()
		s := meet(t, n).hello(deadAddress(t)).welcomed()
		timers := make([]*messages.ScheduleRequest, 300_000)
		for i := range timers {
			timers[i] = &messages.ScheduleRequest{}
		}
		s.batch(s.batchOf(s.gateway(), &messages.ScheduleBatchRequest{Timers: timers}))
		require.Error(t, s.ended())
		n.alive(t)
	})
}

// A million requests whose answers are not read: the node reads only as many as it
// has room to answer.
func TestMillionRequestsWithoutReadingAnswer(t *testing.T) { //nolint:paralleltest // it measures memory
	n := serve(t, withToken())
	address := blackHole(t)
	s := meet(t, n)
	s.hello(address).welcomed()
	const each = 1000
	b := s.batchOf(s.gateway(), &messages.GetTopicStatsRequest{Topic: n.topic.Name()})
	b.Senders = []*actor.PID{actor.NewPID(address, "missing")}
	b.Envelopes[0].Sender = 1
	for len(b.Envelopes) < each {
		b.Envelopes = append(b.Envelopes, proto.CloneOf(b.Envelopes[0]))
	}
	before := int64(heap())
	var sent int
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sent = 0; sent < 1000; sent++ {
			if s.stream.Send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: b}}) != nil {
				return
			}
		}
	}()
	select {
	case <-done:
		require.Fail(t, "the node read all of it")
	case <-time.After(2 * time.Second): // the flow control of its stream holds it up
	}
	n.alive(t)
	// Tests before it release their memory later.
	all := int64(1000 * proto.Size(b))
	require.Eventually(t, func() bool { return int64(heap())-before < all }, patience, 250*time.Millisecond, "less than what was to be sent")
	require.NoError(t, s.conn.Close())
	<-done
	require.Less(t, sent, 100)
}

// Verdicts have no answer, so no room is reserved for them: a flood of them waits for
// the hub to process the earlier ones.
func TestFloodOfVerdictsAboutNothing(t *testing.T) { //nolint:paralleltest // it measures memory
	n := serve(t, withToken())
	subscribe(t, dial(t, n), remote.Subscription{Topic: n.topic.Name(), Name: "s"}, func(context.Context, *messages.Lease) error { return nil })
	s := meet(t, n)
	s.hello(deadAddress(t)).welcomed()
	const each, frames = 1000, 200
	b := s.batchOf(s.gateway(), &messages.Verdicts{
		Topic: n.topic.Name(), Subscriber: "s",
		Verdicts: []*messages.Verdict{{Id: "x", Kind: &messages.Verdict_Ack{Ack: &messages.Ack{Delivery: 7}}}},
	})
	for len(b.Envelopes) < each {
		b.Envelopes = append(b.Envelopes, proto.CloneOf(b.Envelopes[0]))
	}
	before := int64(heap())
	for range frames {
		s.batch(b)
	}
	n.alive(t)
	all := int64(frames * proto.Size(b))
	require.Eventually(t, func() bool { return int64(heap())-before < all }, patience, 250*time.Millisecond, "less than what was sent")
	_, err := n.topic.Schedule(t.Context(), n.Client(), "x", wakebell.ID("a"))
	require.NoError(t, err)
	eventually(t, func() bool {
		_, _, err := n.Client().Get(t.Context(), n.topic.Name(), "a")
		return errors.Is(err, wakebell.ErrNotFound)
	})
	require.Empty(t, n.log.with("a peer was refused"))
}

// One frame requests many large timers, and the answers are not read: the node holds
// no more of them than the bounds allow, and serves others meanwhile.
func TestFrameOfManyLargeAnswersIsBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	cfg := withToken()
	cfg.Tokens[otherSecret] = "honest"
	cfg.Token = otherSecret
	n := serve(t, cfg)
	_, err := n.topic.Schedule(t.Context(), n.Client(), strings.Repeat("x", 1000<<10), wakebell.ID("large"), wakebell.In(time.Hour))
	require.NoError(t, err)
	commands := &messages.Commands{}
	for i := range 400 {
		commands.Commands = append(commands.Commands, &messages.Command{Kind: &messages.Command_GetTimer{
			GetTimer: &messages.GetTimerRequest{Request: uint64(i + 1), Topic: n.topic.Name(), Id: "large"}, //nolint:gosec // small
		}})
	}
	before := int64(heap())
	stream, err := n.dial(t).NewStream(bearing(t.Context(), secret), &premote.Remoting_ServiceDesc.Streams[0], rpc.Timers_Session_FullMethodName)
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(commands))
	honest, err := remote.Dial(t.Context(), n.server.Address(), conntest.WithoutRedis(t, connection.Config{Logger: quiet}), remote.DialConfig{Config: remote.Config{Token: otherSecret}})
	require.NoError(t, err)
	t.Cleanup(honest.Close)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := honest.Stats(ctx, n.topic.Name())
		cancel()
		require.NoError(t, err)
	}
	most := int64(0)
	for range 10 {
		most = max(most, int64(heap())-before)
		<-time.After(200 * time.Millisecond)
	}
	require.Less(t, most, int64(200<<20), "400 answers are 400 MiB")

	// All of it is answered once it is read.
	answered := 0
	for answered < 400 {
		replies := &messages.Replies{}
		require.NoError(t, stream.RecvMsg(replies))
		for _, r := range replies.GetReplies() {
			if r.GetError() == nil {
				size := len(r.GetGetTimer().GetTimer().GetContent().GetBody())
				require.Equal(t, 1000<<10, size, "the whole body")
			}
			answered++
		}
	}
}

// One principal must not use up the subscriptions of all, and the end of its session
// must not delay the next Subscribe (it once did for 76 s).
func TestPrincipalHasItsShareOfSubscriptionsAndLeavesQuickly(t *testing.T) {
	t.Parallel()
	n := serve(t, withMallory())
	mallory := talk(t, n, malloryToken)
	const share = 2000
	all := make([]proto.Message, share+1)
	name := redistest.Name(t)
	for i := range all {
		all[i] = subscription(name+strconv.Itoa(i), 1)
	}
	refused := 0
	for _, answer := range mallory.asks(all...) {
		if fault, ok := answer.(*messages.Error); ok {
			refused++
			require.Equal(t, messages.Code_CODE_OVERLOADED, fault.GetCode(), fault.GetMessage())
		}
	}
	require.Equal(t, 1, refused)
	n.subscribes(t, secret)
	mallory.end()
	n.subscribes(t, secret)
}

// TestHostile mixes all attacks by seed, several at a time, while an honest client
// works. `make hostile FOR=30m SEED=1` runs it for long.
func TestHostile(t *testing.T) { //nolint:paralleltest // it measures how long answers take
	s := &siege{node: serveElsewhere(t), ran: map[string][]span{}, random: rand.New(rand.NewPCG(*hostileSeed, 0))} //nolint:gosec // by seed
	s.honest = stayHonest(t, s.node.node)
	eventually(t, func() bool { return s.honest.during(time.Time{}) >= 100 }) // workers and connections have started
	before := s.node.usage(t)
	rssBefore, measured := resident(s.node.cmd.Process.Pid) // since the first call
	began, rounds := time.Now(), 0
	for !t.Failed() && (rounds == 0 || time.Since(began) < max(*hostileFor, 5*time.Second)) {
		t.Run(strconv.Itoa(rounds), s.round)
		rounds++
	}
	took := time.Since(began)
	rss, _ := resident(s.node.cmd.Process.Pid)
	after := s.node.usage(t)
	require.NoError(t, s.honest.end(), s.honest.stderr.tail())
	<-s.honest.followed
	eventually(t, func() bool { return s.node.usage(t).Goroutines <= before.Goroutines+goroutineSlack }, "goroutines")
	lines := len(s.node.stderr.with(""))
	t.Logf("%d rounds of %d attacks in %v, %d log lines\n%s", rounds, len(attacks), took.Round(time.Second), lines, s.honest.table(s.ran))
	mib := func(now, then uint64) int64 { return (int64(now) - int64(then)) >> 20 } //nolint:gosec // of a machine
	t.Logf("the node's memory: from %d MiB up to %d MiB more, at the end %d MiB more, of it live %d MiB more; resident: up to %d MiB more",
		before.Held>>20, mib(after.Most, before.Held), mib(after.Held, before.Held), mib(after.Live, before.Live), mib(rss, rssBefore))
	if t.Failed() {
		t.Log(s.node.stderr.tail())
	}
	s.judgeAnswers(t)
	bound := uint64(hostileMemory)
	if *hostileFor == 0 {
		bound += unseenGarbage
	}
	require.LessOrEqual(t, after.Most, before.Held+bound, "memory")
	if measured && *hostileFor > 0 {
		require.LessOrEqual(t, rss, rssBefore+hostileMemory, "resident memory")
	}
	require.LessOrEqual(t, lines, max(hostileLines, int(hostileLines*took/hostileLinesTime)), "log lines")
}
