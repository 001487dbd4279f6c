package remote

import (
	"crypto/tls"
	"log/slog"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/queue"
)

// settings are remote.Config, checked and with its defaults.
type settings struct {
	Address, Advertise         string
	TLS                        *tls.Config
	Tokens, TokenCertificates  map[string]string
	Token                      string
	MaxMessage, MaxConnections int
	Handler                    []wakebell.HandlerOption
	QueueHandler               []wakebell.QueueHandlerOption
	Operators                  []string
	Rights                     *Rights
	CeleryQueues               []string
	Queues                     []queue.Keys
	Peers                      []string
	Allow                      []allowed
	Logger                     *slog.Logger
}

// allowed is remote.Allow.
type allowed struct {
	Actor    string
	Messages []string
	Watch    bool
}

func (s settings) asksForCertificates() bool { return s.TLS != nil && s.TLS.ClientCAs != nil }
