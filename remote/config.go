package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/internal/argument"
	"github.com/wakebell/wakebell/internal/testhook"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	// DefaultAddress is a port of loopback that the operating system chooses.
	DefaultAddress = "127.0.0.1:0"

	// DefaultMaxMessage is the default of Config.MaxMessage, in bytes.
	DefaultMaxMessage = 8 << 20

	minMessage = 64 << 10
	maxMessage = 1 << 30

	// DefaultMaxConnections is the default of Config.MaxConnections.
	DefaultMaxConnections = 256
)

// Config configures a Server: its address, credentials, rights and bounds. The
// zero value listens on loopback and serves every program on this machine.
type Config struct {
	// Address is the host:port to listen on. Default: DefaultAddress. On an address
	// other than loopback, Serve returns ErrInsecure unless there are TLS and either
	// Tokens or client certificates, or Insecure is set.
	Address string

	// Advertise is the host:port under which peers reach this process. Set it if it
	// differs from Address, for example behind a proxy or if Address is 0.0.0.0.
	// Actors of peers send their answers to it; messages to any other address are
	// dropped.
	Advertise string

	// HTTPAddress is the host:port to serve HTTP at, with the same credentials, rights
	// and bounds. Empty: none. The rule for Address applies to it as well.
	HTTPAddress string

	// Tokens maps each valid bearer token to its owner, the principal of the peer:
	// idempotency keys, subscriptions and rights belong to it. A token has 16 to
	// 4,096 bytes of printable ASCII without spaces. Empty: no token is required.
	Tokens map[string]string

	// TokenCertificates binds tokens to client certificates. It maps a token to
	// "cn:" and a common name, or to "sha256:" and a fingerprint in hexadecimal
	// digits. A token that is not in the map is valid with any certificate. Requires
	// TLS with ClientCAs.
	TokenCertificates map[string]string

	// Token is the token that Dial sends. A Server sends it to Peers. Empty: the
	// token in Tokens, if there is exactly one. A Server that dials a peer to answer
	// it sends the peer's own token instead.
	Token string

	// TLS is the configuration for incoming and outgoing connections. If it has
	// ClientCAs, peers need a client certificate (ClientAuth becomes
	// RequireAndVerifyClientCert), and without Tokens the certificate's common name
	// is the principal. Nil: no encryption.
	TLS *tls.Config

	// Insecure allows Serve to serve other machines without TLS or credentials.
	Insecure bool

	// MaxMessage is the largest frame in both directions, in bytes, 64 KiB to 1 GiB.
	// Default: DefaultMaxMessage. Both ends should have the same value. A timer that does not
	// fit becomes a dead letter when a subscriber would get it; callers of HTTP take any.
	MaxMessage int

	// MaxConnections is how many connections are served at once, at least 1.
	// Default: DefaultMaxConnections. One principal may have half of them, one host
	// three quarters. Connections that have not made an authenticated call yet are
	// counted separately, up to half of MaxConnections.
	MaxConnections int

	// HandlerOptions are options of wakebell.Handle for the topics that peers subscribe
	// to. MaxConcurrent is set by the credits of the subscribers.
	HandlerOptions []wakebell.HandlerOption

	// QueueHandlerOptions are options of wakebell.HandleQueue for the queues that peers
	// subscribe to. MaxConcurrent is set by the credits of the subscribers.
	QueueHandlerOptions []wakebell.QueueHandlerOption

	// Operators are the principals that may use the service wakebell.v1.Operations
	// and the methods of Client that call it: overview, pause, retune, redrive,
	// delete and so on. Nil: every principal. Empty: none. A warning is logged for
	// each name without a token.
	Operators []string

	// CeleryQueues are the Celery queues that recurring schedules of peers may send
	// tasks to. It applies to putting, importing, running and backfilling a
	// schedule. Nil: none.
	CeleryQueues []string

	// Rights say what each principal may do on which topics, queues, gates and
	// recurring schedules. Rights and Operators exclude each other. Nil: every
	// principal may do everything, except as Operators restricts it.
	Rights *rights.Grants

	// Queues are the queues whose key separator or dead-letter key differs from the
	// default. Their names are without the System's prefix. Peers cannot choose
	// keys: all other queues have the default ones.
	Queues []wakebelltype.QueueKeys

	// Allow are the actors of this process, besides those of Wakebell, that peers
	// may send messages to.
	Allow []Allow

	// Peers are the addresses (host:port) of other Servers that this one may dial
	// to deliver reminders to their actors; it authenticates with Token. Any other
	// peer has to connect first.
	Peers []string

	logger  *slog.Logger     // of the Connection
	network testhook.Network // of tests
}

func init() {
	testhook.Connect = func(cfg any, n testhook.Network) { cfg.(*Config).network = n }
}

// Allow permits peers to send messages of certain types to an actor.
type Allow struct {
	Actor    string   // id of the actor's PID
	Messages []string // full names of the permitted protobuf messages
	Watch    bool     // whether peers may watch the actor
}

func (c Config) withDefaults() Config {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = DefaultMaxMessage
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	if c.Token == "" && len(c.Tokens) == 1 {
		for token := range c.Tokens {
			c.Token = token
		}
	}
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		c.TLS.NextProtos = []string{"h2"}
		if c.TLS.MinVersion == 0 {
			c.TLS.MinVersion = tls.VersionTLS12
		}
		if c.TLS.ClientCAs != nil {
			c.TLS.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	host, port, err := wire.HostPort(c.Address)
	if err != nil {
		errs = append(errs, argument.Invalid("Address", "%v", err))
	}
	if c.Advertise != "" {
		if h, p, err := wire.HostPort(c.Advertise); err != nil || h == "" || p == 0 {
			errs = append(errs, argument.Invalid("Advertise", "%q, want host:port", c.Advertise))
		}
	} else if ip := net.ParseIP(host); err == nil && (host == "" || (ip != nil && ip.IsUnspecified())) {
		errs = append(errs, argument.Invalid("Advertise", "empty, want host:port: peers cannot send answers to %s", net.JoinHostPort(host, strconv.Itoa(port))))
	}
	errs = append(errs, access.CheckTokens(c.Tokens))
	for _, queue := range c.CeleryQueues {
		if queue == "" || strings.ContainsAny(queue, "\x00\x06\x16") {
			errs = append(errs, argument.Invalid("CeleryQueues", "%q is not a valid name of a queue", queue))
		}
	}
	errs = append(errs, access.ValidQueues(c.Queues)...)
	if c.Rights != nil && c.Operators != nil {
		errs = append(errs, argument.Invalid("Rights", "set together with Operators: grant operate and read in Rights instead"))
	}
	errs = append(errs, access.CheckCertificates(c.Tokens, c.TokenCertificates, c.TLS != nil && c.TLS.ClientCAs != nil))
	if c.Token != "" {
		errs = append(errs, access.CheckToken("Token", c.Token))
	}
	for _, peer := range c.Peers {
		if h, p, err := wire.HostPort(peer); err != nil || h == "" || p == 0 {
			errs = append(errs, argument.Invalid("Peers", "%q, want host:port", peer))
		}
	}
	if c.MaxMessage < minMessage || c.MaxMessage > maxMessage {
		errs = append(errs, argument.Invalid("MaxMessage", "%d bytes, want %d to %d", c.MaxMessage, minMessage, maxMessage))
	}
	if c.MaxConnections < 1 {
		errs = append(errs, argument.Invalid("MaxConnections", "%d, want at least 1", c.MaxConnections))
	}
	if err == nil {
		errs = append(errs, c.secure(c.Address, host))
	}
	if c.HTTPAddress != "" {
		host, _, err := wire.HostPort(c.HTTPAddress)
		if err != nil {
			errs = append(errs, argument.Invalid("HTTPAddress", "%v", err))
		} else {
			errs = append(errs, c.secure(c.HTTPAddress, host))
		}
	}
	return errors.Join(errs...)
}

// settings returns the configuration for the packages of the Server.
func (c Config) settings() peer.Settings {
	s := peer.Settings{
		Address: c.Address, Advertise: c.Advertise, TLS: c.TLS,
		Tokens: c.Tokens, TokenCertificates: c.TokenCertificates, Token: c.Token,
		Insecure: c.Insecure, MaxMessage: c.MaxMessage, MaxConnections: c.MaxConnections,
		HandlerOptions: c.HandlerOptions, QueueHandlerOptions: c.QueueHandlerOptions, Operators: c.Operators, Rights: c.Rights,
		CeleryQueues: c.CeleryQueues, Queues: c.Queues, Peers: c.Peers, Logger: c.logger, Network: c.network,
	}
	for _, a := range c.Allow {
		s.Allow = append(s.Allow, peer.AllowedActor(a))
	}
	return s
}

// ErrInsecure is returned by Serve and Run if other machines would be served
// without encryption or without authentication. Config.Insecure allows it.
var ErrInsecure = errors.New("insecure")

func (c Config) secure(address, host string) error {
	switch ip := net.ParseIP(host); {
	case c.Insecure, host == "localhost", ip != nil && ip.IsLoopback():
		return nil
	case c.TLS == nil:
		return fmt.Errorf("%w: address %s is not loopback and has no TLS; Config.Insecure allows it", ErrInsecure, address)
	case len(c.Tokens) == 0 && c.TLS.ClientCAs == nil:
		return fmt.Errorf("%w: address %s is not loopback and has neither Tokens nor client certificates; Config.Insecure allows it", ErrInsecure, address)
	}
	return nil
}
