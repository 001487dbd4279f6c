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
	// RedialAfter is how long after a link failed the peer is not dialled again:
	// what is for it meanwhile are dead letters.
	RedialAfter = time.Second
)

// link is a stream to a peer, for what goes to its actors.
type link struct {
	stream premote.Remoting_ReceiveClient
	lost   chan struct{} // closed when the peer has gone
}

// write sends a peer what is for its actors, from the first message on until
// the link is lost. It runs in a goroutine of its own.
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
	errLinkLost    = errors.New("the peer has gone")
	errNoHandshake = errors.New("the peer does not say hello")
)

// origin is whose link it is, where that connects from, and what is dialled. A
// peer of the configuration counts for itself.
func (p *peer) origin() (owner, host, dial string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.configured || p.dial == "" {
		return "", p.address, p.address
	}
	return p.owner, p.host, p.dial
}

// connect says hello and waits for the answer.
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
		_, _ = stream.Recv() // nothing more comes but its end
	}()
	return l, nil
}

// parted tells those who wait for a peer that its link is lost.
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

// process is an actor at a peer, as actors of ours send to it.
type process struct {
	guard *Guard
}

// resolve is what our system asks about PIDs of other addresses.
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

// deliver gives a message to the link of its peer. An address that is not a
// peer's is never dialled: in an envelope it is only a claim.
func (g *Guard) deliver(e *outgoing) {
	if m, isProto := e.body.(proto.Message); isProto {
		e.body = g.Discreet(m)
	}
	p, ok := g.Peers.At(e.target.GetAddress())
	if !ok || !e.encode(g.Cfg.MaxMessage-wire.FrameOverhead) {
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
