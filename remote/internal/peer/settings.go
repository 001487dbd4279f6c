package peer

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/metrics"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

// Settings is a validated remote.Config with defaults.
type Settings struct {
	Address, Advertise         string
	TLS                        *tls.Config
	Tokens, TokenCertificates  map[string]string
	Token                      string
	MaxMessage, MaxConnections int
	Insecure                   bool
	HandlerOptions             []wakebell.HandlerOption
	QueueHandlerOptions        []wakebell.QueueHandlerOption
	Operators                  []string
	Rights                     *rights.Grants
	CeleryQueues               []string
	Queues                     []wakebelltype.QueueKeys
	Peers                      []string
	Allow                      []AllowedActor
	Logger                     *slog.Logger
	Network                    testhook.Network
	Metrics                    *metrics.Metrics // nil measures nothing
}

// AllowedActor is remote.Allow.
type AllowedActor struct {
	Actor    string
	Messages []string
	Watch    bool
}

// listen listens for TCP.
func (s Settings) listen(address string) (net.Listener, error) {
	if s.Network.Listen != nil {
		return s.Network.Listen("tcp", address)
	}
	return net.Listen("tcp", address)
}

// dial connects to a peer.
func (s Settings) dial(ctx context.Context, address string) (net.Conn, error) {
	if s.Network.Dial != nil {
		return s.Network.Dial(ctx, "tcp", address)
	}
	return peerDialer().DialContext(ctx, "tcp", address)
}

func (s Settings) asksForCertificates() bool { return s.TLS != nil && s.TLS.ClientCAs != nil }
