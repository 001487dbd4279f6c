package peer

import (
	"net"
	"syscall"
	"time"

	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	// peerIdle, peerProbe and peerProbes are TCP keepalive settings, which detect that a
	// peer's machine is gone. gRPC pings would do so too, but a stock gRPC server
	// answers more than one in five minutes with GOAWAY. Pings on the connection from
	// the peer, which every gRPC client answers, detect that its process hangs.
	peerIdle   = 10 * time.Second
	peerProbe  = 5 * time.Second
	peerProbes = 3

	// unacknowledged is how long sent bytes may stay without acknowledgement.
	unacknowledged = 15 * time.Second
)

// peerDialer returns the dialer for peers.
func peerDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         wire.DialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: peerIdle, Interval: peerProbe, Count: peerProbes},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { boundUnacknowledged(fd, unacknowledged) })
		},
	}
}

// Reach reports whether a peer has a stream to the node, and whether the link to it
// is up.
func (b *peers) Reach(address string) (there, up bool) {
	p, ok := b.At(address)
	if !ok {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.streams > 0 && !p.gone, p.up
}

// isUp records that the link to the peer is up.
func (p *peer) isUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = true
}
