package remote_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/conntest"
	"github.com/wakebell/wakebell/internal/redistest"
	"github.com/wakebell/wakebell/messages"
	"github.com/wakebell/wakebell/remote"
)

// Each lapsed turn, rejected message and claimed address causes a log line. The log
// about peers and that about gates and topics have at most 60 lines a minute each,
// for any number of such events.
func TestPeersDoNotFloodLog(t *testing.T) {
	t.Parallel()
	const each = 200
	log := &lines{}
	sys, err := wakebell.New(actorSystem(), conntest.New(t, redistest.Shared(t), connection.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}), wakebell.Config{DrainTimeout: -1})
	require.NoError(t, err)
	server, err := remote.Serve(sys, withMallory())
	require.NoError(t, err)
	require.NoError(t, sys.Start(t.Context()))
	t.Cleanup(func() { _ = sys.Stop(); server.Stop() })
	n := &node{System: sys, server: server, address: server.Address(), gateway: sys.Gateway().GetId(), topic: wakebell.NewTopic[string](redistest.Name(t))}
	began := time.Now()

	lapsing := talk(t, n, malloryToken)
	turns := make([]proto.Message, each)
	for i := range turns {
		turns[i] = &messages.AcquireTurnRequest{Gate: fmt.Sprint(redistest.Name(t), i), Place: uint64(i + 1), Ttl: durationpb.New(time.Second)} //nolint:gosec // small
	}
	lapsing.asks(turns...)

	for i := range each {
		s := meetAs(t, n, malloryToken)
		s.hello(fmt.Sprint("10.0.0.", i, ":80"))
		require.Error(t, s.ended())
		require.NoError(t, s.conn.Close())
	}

	drafts := make([]wakebell.Draft, each)
	for i := range drafts {
		drafts[i] = n.topic.Draft("x")
	}
	_, err = n.Client().Schedule(t.Context(), drafts...)
	require.NoError(t, err)
	rejecting := talk(t, n, malloryToken)
	require.IsType(t, &messages.SubscribeResponse{}, rejecting.ask(subscription(n.topic.Name(), each)))
	for rejected := 0; rejected < each; {
		for _, m := range append(rejecting.others, rejecting.replies()...) {
			leases, _ := m.(*messages.Leases)
			for _, l := range leases.GetLeases() {
				rejected++
				rejecting.say(&messages.Verdicts{Topic: n.topic.Name(), Subscriber: "s", Verdicts: []*messages.Verdict{{
					Id: l.GetId(), Kind: &messages.Verdict_Reject{Reject: &messages.Reject{Delivery: l.GetDelivery(), Reason: "no"}},
				}}})
			}
		}
		rejecting.others = nil
	}
	n.settled(t)

	lapsed := 0
	for lapsed < each {
		for _, m := range append(lapsing.others, lapsing.replies()...) {
			if _, ok := m.(*messages.TurnLost); ok {
				lapsed++
			}
		}
		lapsing.others = nil
	}
	bound := 60 * (1 + int(time.Since(began)/time.Minute))
	refused, all := log.with("a peer was refused"), log.with("")
	t.Logf("%d lines, %d about refused peers", len(all), len(refused))
	require.NotEmpty(t, refused)
	require.Greater(t, len(all), len(refused), "about gates and topics too")
	require.LessOrEqual(t, len(refused), bound)
	require.LessOrEqual(t, len(all), 2*bound)
}
