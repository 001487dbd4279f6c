package peer

import (
	"crypto/tls"
	"log/slog"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/metrics"
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
	Metrics                    *metrics.Metrics // nil measures nothing
}

// AllowedActor is remote.Allow.
type AllowedActor struct {
	Actor    string
	Messages []string
	Watch    bool
}

func (s Settings) asksForCertificates() bool { return s.TLS != nil && s.TLS.ClientCAs != nil }
