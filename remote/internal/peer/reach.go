package peer

import (
	"net"
	"syscall"
	"time"

	"github.com/wakebell/wakebell/remote/internal/wire"
)

const (
	// peerIdle, peerProbe and peerProbes have the kernel find out that the
	// machine of a peer is gone. gRPC's own pings would do that too, but a stock
	// gRPC server answers more than one in five minutes with GOAWAY. Whether the
	// process of a peer answers is found out by the pings on the connection that
	// it made to here, which every gRPC client takes.
	peerIdle   = 10 * time.Second
	peerProbe  = 5 * time.Second
	peerProbes = 3

	// unacknowledged is how long what was sent may stay without acknowledgement.
	unacknowledged = 15 * time.Second
)

// peerDialer dials peers.
func peerDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         wire.DialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: peerIdle, Interval: peerProbe, Count: peerProbes},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(func(fd uintptr) { boundUnacknowledged(fd, unacknowledged) })
		},
	}
}

// Reach reports whether a peer is there, by a stream of its own, and whether
// the link to it is up.
func (b *peers) Reach(address string) (there, up bool) {
	p, ok := b.At(address)
	if !ok {
		return false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.streams > 0 && !p.gone, p.up
}

// isUp notes that the link to the peer is up.
func (p *peer) isUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = true
}
