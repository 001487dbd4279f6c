package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

const (
	dialTimeout = 5 * time.Second
	// A link that says nothing is asked after pingAfter whether it is there, and
	// given up when it does not answer within pingTimeout.
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
	// restAfter is how long after a link failed the peer is not dialled again:
	// what is for it meanwhile are dead letters.
	restAfter = time.Second
)

// pings are those of a Client to a Server, which takes them. A peer may be a
// stock gRPC server, which does not.
var pings = keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}

// dialOptions are those for dialling; nil: without TLS.
func dialOptions(tls *tls.Config, maxMessage int) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport(tls)),
		// Its own would have whoever was away for minutes wait for two more.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: redialFirst, Multiplier: 2, Jitter: 0.2, MaxDelay: redialMax / 4},
			MinConnectTimeout: dialTimeout,
		}),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(frames{}),
			grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage),
		),
	}
}

func transport(cfg *tls.Config) credentials.TransportCredentials {
	if cfg == nil {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(cfg)
}

// link is a stream to a peer, for what goes to its actors.
type link struct {
	stream premote.Remoting_ReceiveClient
	lost   chan struct{} // closed when the peer has gone
}

// write sends a peer what is for its actors, from the first message on until
// the link is lost. It runs in a goroutine of its own.
func (g *guard) write(p *peer) {
	defer g.running.Done()
	ctx, cancel := context.WithCancel(g.closing)
	defer cancel()
	p.onCut(cancel)
	err := g.connectAndWrite(ctx, p)
	g.parted(p, err)
}

func (g *guard) connectAndWrite(ctx context.Context, p *peer) error {
	owner, host, dial := p.origin()
	end, err := g.dials.begin(owner, host)
	if err != nil {
		return err
	}
	defer func() { end(false) }()
	options := append(dialOptions(g.cfg.TLS, g.cfg.MaxMessage), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return peerDialer().DialContext(ctx, "tcp", dial)
	}))
	conn, err := grpc.NewClient("passthrough:///"+p.address, options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the link is lost either way
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l, err := g.connect(ctx, p, conn)
	if err != nil {
		return err
	}
	end(true)
	p.isUp()
	limit := min(g.cfg.MaxMessage, stockFrame)
	for {
		select {
		case <-p.wake:
		case <-l.lost:
			return errLinkLost
		case <-ctx.Done():
			return ctx.Err()
		}
		for batch := p.take(limit); batch != nil; batch = p.take(limit) {
			late := time.AfterFunc(owedFor, func() { cancel(errNotReading) })
			err := l.stream.Send(batch.message())
			late.Stop()
			if err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
			p.sent(batch)
		}
	}
}

var (
	errLinkLost = errors.New("the peer has gone")
	errNoHello  = errors.New("the peer does not say hello")
)

// origin is whose link it is, where that connects from, and what is dialled. A
// peer of the configuration counts for itself.
func (p *peer) origin() (owner, host, dial string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept || p.dial == "" {
		return "", p.address, p.address
	}
	return p.owner, p.host, p.dial
}

// connect says hello and waits for the answer.
func (g *guard) connect(ctx context.Context, p *peer, conn *grpc.ClientConn) (*link, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(dialTimeout, func() { cancel(errNoHello) })
	defer late.Stop()
	if p.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+p.token)
	}
	stream, err := premote.NewRemotingClient(conn).Receive(ctx)
	if err != nil {
		return nil, err
	}
	hello := &premote.ServerConnection{SystemId: g.system.ID, Address: g.system.Address()}
	err = stream.Send(&premote.RemoteMessage{MessageType: &premote.RemoteMessage_ConnectRequest{ConnectRequest: &premote.ConnectRequest{
		ConnectionType: &premote.ConnectRequest_ServerConnection{ServerConnection: hello},
	}}})
	if err != nil {
		return nil, err
	}
	answer, err := stream.Recv()
	switch {
	case err != nil:
		return nil, err
	case answer.GetConnectResponse() == nil || answer.GetConnectResponse().GetBlocked():
		return nil, errNoHello
	}
	l := &link{stream: stream, lost: make(chan struct{})}
	go func() {
		defer close(l.lost)
		_, _ = stream.Recv() // nothing more comes but its end
	}()
	return l, nil
}

// parted tells those who wait for a peer that its link is lost.
func (g *guard) parted(p *peer, err error) {
	left, watchers := p.part()
	if err != nil && g.closing.Err() == nil && !p.removed() {
		owner, host, _ := p.origin()
		g.complain(host, owner, fmt.Errorf("the link to it: %w", err), "address", p.address)
	}
	for _, e := range left {
		e.undeliverable(g.system)
	}
	for _, w := range watchers {
		ref, ok := g.system.ProcessRegistry.GetLocal(w.watcher.GetId())
		if ok {
			ref.SendSystemMessage(w.watcher, &actor.Terminated{Who: w.watchee, Why: actor.TerminatedReason_AddressTerminated})
		}
	}
}

// process is an actor at a peer, as actors of ours send to it.
type process struct {
	guard *guard
}

// resolve is what our system asks about PIDs of other addresses.
func (g *guard) resolve(*actor.PID) (actor.Process, bool) { return process{g}, true }

func (r process) SendUserMessage(pid *actor.PID, message any) {
	header, body, sender := actor.UnwrapEnvelope(message)
	e := &outgoing{target: pid, sender: sender, body: r.guard.visibleAt(pid.GetAddress(), body)}
	if header != nil && header.Length() > 0 {
		e.header = header.ToMap()
	}
	r.guard.deliver(e)
}

func (r process) SendSystemMessage(pid *actor.PID, message any) {
	e := &outgoing{target: pid, body: message}
	switch m := message.(type) {
	case *actor.Watch:
		e.watcher = m.GetWatcher()
	case *actor.Unwatch:
		if p, ok := r.guard.peers.at(pid.GetAddress()); ok {
			p.unwatch(pid.GetId(), m.GetWatcher().GetId())
		}
	}
	r.guard.deliver(e)
}

func (r process) Stop(pid *actor.PID) { r.SendSystemMessage(pid, &actor.Stop{}) }

// deliver gives a message to the link of its peer. An address that is not a
// peer's is never dialled: in an envelope it is only a claim.
func (g *guard) deliver(e *outgoing) {
	if m, isProto := e.body.(proto.Message); isProto {
		e.body = g.discreet(m)
	}
	p, ok := g.peers.at(e.target.GetAddress())
	if !ok || !e.encode(g.cfg.MaxMessage-frameOverhead) {
		e.undeliverable(g.system)
		return
	}
	if !p.count(e, g.cfg.MaxMessage) {
		return
	}
	switch p.enqueue(e) {
	case refusedMail:
		p.uncount(e)
		e.undeliverable(g.system)
	case firstMail:
		if !g.enter() {
			g.parted(p, nil)
			return
		}
		go g.write(p)
	}
}
