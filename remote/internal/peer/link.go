package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	premote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	// RedialAfter is how long a peer is not dialled after its link failed. Messages to
	// it are dead letters meanwhile.
	RedialAfter = time.Second
)

// link is the stream on which a peer's actors receive messages.
type link struct {
	stream premote.Remoting_ReceiveClient
	lost   chan struct{} // closed when the stream ends
}

// write dials a peer and sends the messages to its actors until the link breaks. It
// runs in its own goroutine.
func (g *Guard) write(p *peer) {
	defer g.Running.Done()
	ctx, cancel := context.WithCancel(g.Closing)
	defer cancel()
	p.onCut(cancel)
	err := g.connectAndWrite(ctx, p)
	g.linkLost(p, err)
}

func (g *Guard) connectAndWrite(ctx context.Context, p *peer) error {
	owner, host, dial := p.origin()
	end, err := g.dials.begin(owner, host)
	if err != nil {
		return err
	}
	defer func() { end(false) }()
	options := append(wire.DialOptions(g.Cfg.TLS, g.Cfg.MaxMessage), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return g.Cfg.dial(ctx, dial)
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
	limit := min(g.Cfg.MaxMessage, stockFrame)
	for {
		select {
		case <-p.wake:
		case <-l.lost:
			return errLinkLost
		case <-ctx.Done():
			return ctx.Err()
		}
		for batch := p.Take(limit); batch != nil; batch = p.Take(limit) {
			late := time.AfterFunc(ReadTimeout, func() { cancel(ErrNotReading) })
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
	errLinkLost    = errors.New("the peer closed the link")
	errNoHandshake = errors.New("the peer does not complete the handshake")
)

// origin returns the owner and the host that are charged for the link, and the
// address to dial. A configured peer is charged itself.
func (p *peer) origin() (owner, host, dial string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.configured || p.dial == "" {
		return "", p.address, p.address
	}
	return p.owner, p.host, p.dial
}

// connect performs the handshake.
func (g *Guard) connect(ctx context.Context, p *peer, conn *grpc.ClientConn) (*link, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(wire.DialTimeout, func() { cancel(errNoHandshake) })
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
		return nil, errNoHandshake
	}
	l := &link{stream: stream, lost: make(chan struct{})}
	go func() {
		defer close(l.lost)
		_, _ = stream.Recv() // the peer sends nothing but the end of the stream
	}()
	return l, nil
}

// linkLost returns unsent messages as dead letters and notifies the watchers of the
// peer's actors.
func (g *Guard) linkLost(p *peer, err error) {
	left, watchers := p.closeLink()
	if err != nil && g.Closing.Err() == nil && !p.removed() {
		owner, host, _ := p.origin()
		g.logRefusal(host, owner, fmt.Errorf("the link to it: %w", err), "address", p.address)
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

// process is a remote actor, as local actors send to it.
type process struct {
	guard *Guard
}

// resolve returns the process of a PID with another address.
func (g *Guard) resolve(*actor.PID) (actor.Process, bool) { return process{g}, true }

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
		if p, ok := r.guard.Peers.At(pid.GetAddress()); ok {
			p.unwatch(pid.GetId(), m.GetWatcher().GetId())
		}
	}
	r.guard.deliver(e)
}

func (r process) Stop(pid *actor.PID) { r.SendSystemMessage(pid, &actor.Stop{}) }

// deliver queues a message for the link of its peer. Addresses other than those of
// peers are never dialled: in an envelope an address is only a claim.
func (g *Guard) deliver(e *outgoing) {
	if m, isProto := e.body.(proto.Message); isProto {
		e.body = g.Discreet(m)
	}
	p, ok := g.Peers.At(e.target.GetAddress())
	if !ok || !e.encodeWithin(g.Cfg.MaxMessage) {
		e.undeliverable(g.system)
		return
	}
	if !p.count(e, g.Cfg.MaxMessage) {
		return
	}
	switch p.enqueue(e) {
	case refusedMail:
		p.uncount(e)
		e.undeliverable(g.system)
	case firstMail:
		if !g.Enter() {
			g.linkLost(p, nil)
			return
		}
		go g.write(p)
	}
}
