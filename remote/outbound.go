package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	dialTimeout = 5 * time.Second
	// A link that says nothing is asked after pingAfter whether it is there, and
	// given up when it does not answer within pingTimeout.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
)

var pings = keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}

// dialOptions are those of protoactor's writers, which dial a peer to send it
// what is for its actors.
func (g *guard) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport(g.cfg)),
		grpc.WithContextDialer(g.dial),
		grpc.WithChainStreamInterceptor(g.outbound),
		grpc.WithKeepaliveParams(pings),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(frames{}),
			grpc.MaxCallRecvMsgSize(g.cfg.MaxMessage),
			grpc.MaxCallSendMsgSize(g.cfg.MaxMessage),
		),
	}
}

func transport(cfg Config) credentials.TransportCredentials {
	if cfg.TLS == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(cfg.TLS)
}

// dial connects to peers alone: a sender's address in an envelope is only a
// claim, and must not make us connect to anybody.
func (g *guard) dial(ctx context.Context, address string) (net.Conn, error) {
	if _, ok := g.peers.at(address); !ok {
		return nil, fmt.Errorf("dial %q: %w", address, errUnknownPeer)
	}
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "tcp", address)
}

// outbound shows a peer our token, and bounds what it can make us wait for.
func (g *guard) outbound(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	p, ok := g.peers.at(cc.Target())
	if !ok {
		return nil, status.Errorf(codes.PermissionDenied, "%q: %v", cc.Target(), errUnknownPeer)
	}
	ctx, cancel := context.WithCancel(ctx)
	if p.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+p.token)
	}
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	o := &outbound{ClientStream: stream, peer: p, guard: g}
	o.hello = time.AfterFunc(dialTimeout, cancel)
	o.forget = p.outbound(cancel)
	context.AfterFunc(stream.Context(), func() {
		o.hello.Stop()
		o.forget()
		cancel()
	})
	return o, nil
}

// outbound is a stream to a peer.
type outbound struct {
	grpc.ClientStream
	peer   *peer
	guard  *guard
	hello  *time.Timer // ends a stream to a peer that does not say hello
	forget func()
}

func (o *outbound) RecvMsg(m any) error {
	err := o.ClientStream.RecvMsg(m)
	o.hello.Stop()
	return err
}

// SendMsg sends a batch in frames that the peer takes. What is too large for
// any is reported as a dead letter, as protoactor reports what it cannot send.
func (o *outbound) SendMsg(m any) error {
	message, ok := m.(*premote.RemoteMessage)
	if !ok || message.GetMessageBatch() == nil {
		return o.ClientStream.SendMsg(m)
	}
	batch := message.GetMessageBatch()
	if proto.Size(message) <= o.guard.cfg.MaxMessage {
		return o.send(message, batch)
	}
	tables := proto.Size(&premote.MessageBatch{TypeNames: batch.GetTypeNames(), Targets: batch.GetTargets(), Senders: batch.GetSenders()})
	room := o.guard.cfg.MaxMessage - tables - frameOverhead
	for first := 0; first < len(batch.GetEnvelopes()); {
		last, size := first, 0
		for last < len(batch.GetEnvelopes()) {
			n := proto.Size(batch.GetEnvelopes()[last]) + envelopeOverhead
			if size+n > room {
				break
			}
			size, last = size+n, last+1
		}
		if last == first {
			o.tooLarge(batch, batch.GetEnvelopes()[first])
			first++
			continue
		}
		part := &premote.MessageBatch{
			TypeNames: batch.GetTypeNames(), Targets: batch.GetTargets(), Senders: batch.GetSenders(),
			Envelopes: batch.GetEnvelopes()[first:last],
		}
		if err := o.send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_MessageBatch{MessageBatch: part}}, part); err != nil {
			return err
		}
		first = last
	}
	return nil
}

// What the encoding adds to a message and to an envelope in it, at the most.
const frameOverhead, envelopeOverhead = 64, 16

func (o *outbound) send(message *premote.RemoteMessage, batch *premote.MessageBatch) error {
	if err := o.ClientStream.SendMsg(message); err != nil {
		return err
	}
	var sent debt
	for _, e := range batch.GetEnvelopes() {
		if kind := batch.GetTypeNames()[e.GetTypeId()]; isAnswer[kind] {
			sent.answers++
			sent.weight += weightOf(kind)
		}
	}
	o.peer.paid(sent)
	return nil
}

var isAnswer = set(append(slices.Clone(answers), undelivered))

var errTooLarge = errors.New("larger than the largest frame")

func (o *outbound) tooLarge(batch *premote.MessageBatch, e *premote.MessageEnvelope) {
	kind := batch.GetTypeNames()[e.GetTypeId()]
	o.guard.log.Error("a message to a peer was dropped", "peer", o.peer.address, "type", kind,
		"bytes", len(e.GetMessageData()), "limit", o.guard.cfg.MaxMessage, "err", errTooLarge)
	o.guard.system.EventStream.Publish(&actor.DeadLetterEvent{PID: batch.GetTargets()[e.GetTarget()], Message: e})
	if isAnswer[kind] {
		o.peer.paid(debt{1, weightOf(kind)})
	}
}
