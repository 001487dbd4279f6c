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
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote/internal/access"
	"github.com/wakebell/wakebell/remote/internal/peer"
	"github.com/wakebell/wakebell/remote/internal/wire"
	"github.com/wakebell/wakebell/remote/rights"
)

const (
	// DefaultAddress is loopback, with a port that the system chooses.
	DefaultAddress = "127.0.0.1:0"

	// DefaultMaxMessage is the largest frame that is taken or sent, in bytes.
	DefaultMaxMessage = 8 << 20

	minMessage = 64 << 10
	maxMessage = 1 << 30

	// DefaultMaxConnections is how many connections a listener serves at once.
	DefaultMaxConnections = 256
)

// Config says where to listen and whom to serve. The zero value listens on
// loopback and serves every program of this machine.
type Config struct {
	// Address to listen on, host:port; default DefaultAddress. On anything but
	// loopback Listen refuses to start without TLS, and without Tokens or client
	// certificates, unless Insecure says otherwise.
	Address string

	// Advertise is the host:port under which others reach this process, if it
	// is not the one listened on: peers dial it to answer, and messages that
	// name any other are not taken.
	Advertise string

	// Tokens are the bearer tokens that are taken, each with the name of its
	// owner, which is whose idempotency keys and subscriptions they are. A token
	// has 16 to 4,096 bytes of printable ASCII without spaces. Empty: none is
	// asked for.
	Tokens map[string]string

	// TokenCertificates bind tokens to the certificates that peers show: by the
	// token, "cn:" and the common name, or "sha256:" and the fingerprint in
	// hexadecimal digits. A token that is not among them is good with any. They
	// need TLS with ClientCAs.
	TokenCertificates map[string]string

	// Token is what Dial shows. Empty: the only one of Tokens, if there is one. A
	// Server that dials a peer to answer shows what the peer has shown.
	Token string

	// TLS is for serving and for dialling. With ClientCAs it asks peers for a
	// certificate (ClientAuth is then RequireAndVerifyClientCert); their owner is
	// the common name. Nil: no encryption.
	TLS *tls.Config

	// Insecure lets Listen serve other machines without TLS or credentials.
	Insecure bool

	// MaxMessage bounds a frame, in bytes, in both directions; default
	// DefaultMaxMessage, 64 KiB to 1 GiB. Both ends should have the same.
	MaxMessage int

	// MaxConnections bounds those served at once; default
	// DefaultMaxConnections. Half of them may be one owner's, three quarters one
	// host's. As many as half of it may wait for their first call beside them.
	MaxConnections int

	// Handler are the options of the topics that peers subscribe to, as of
	// wakebell.Handle. MaxConcurrent follows the credits of the subscribers.
	Handler []wakebell.HandlerOption

	// QueueHandler are the options of the queues that peers subscribe to, as of
	// wakebell.HandleQueue. MaxConcurrent follows the credits of the subscribers.
	QueueHandler []wakebell.QueueHandlerOption

	// Operators are the owners who may give orders and look at everything: the
	// service wakebell.v1.Operations, and those methods of Client. Nil: all who are
	// served; empty: nobody. A name that no token has is told to Logger.
	Operators []string

	// CeleryQueues are the Celery queues that peers may reach with recurring
	// schedules of Celery tasks: by putting or importing them, and by firing them
	// now. Nil: none.
	CeleryQueues []string

	// Rights say which principal may do what on which topics, queues, gates and
	// recurring schedules; they take the place of Operators. Nil: everybody who is
	// served may do all, but for Operators.
	Rights *rights.Grants

	// Queues are the queues that have another separator or key of dead letters than
	// the default ones, by their names without the System's prefix. Peers name
	// queues, not keys: those of any other queue are the default ones.
	Queues []queue.Keys

	// Allow are other actors of this process that peers may send to, and what.
	Allow []Allow

	// Peers are the addresses, host:port, of other Servers that this one dials
	// when it has something for their actors: reminders. It shows them Token. Any
	// other peer has to come first.
	Peers []string

	// Logger; nil means slog.Default().
	Logger *slog.Logger
}

// Allow lets peers send messages of some types to an actor.
type Allow struct {
	Actor    string   // the id of its PID
	Messages []string // full names of protobuf messages
	Watch    bool     // peers may watch it
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
	if c.Logger == nil {
		c.Logger = slog.Default()
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
			errs = append(errs, argument.Invalid("Advertise", "%q is no host:port", c.Advertise))
		}
	} else if ip := net.ParseIP(host); err == nil && (host == "" || (ip != nil && ip.IsUnspecified())) {
		errs = append(errs, argument.Invalid("Advertise", "empty: nobody can answer to %s", net.JoinHostPort(host, strconv.Itoa(port))))
	}
	errs = append(errs, access.CheckTokens(c.Tokens))
	for _, queue := range c.CeleryQueues {
		if queue == "" || strings.ContainsAny(queue, "\x00\x06\x16") {
			errs = append(errs, argument.Invalid("CeleryQueues", "%q is no name of a queue", queue))
		}
	}
	errs = append(errs, access.ValidQueues(c.Queues)...)
	if c.Rights != nil && c.Operators != nil {
		errs = append(errs, argument.Invalid("Rights", "they and Operators exclude each other: grant operate and read instead"))
	}
	errs = append(errs, access.CheckCertificates(c.Tokens, c.TokenCertificates, c.TLS != nil && c.TLS.ClientCAs != nil))
	if c.Token != "" {
		errs = append(errs, access.CheckToken("Token", c.Token))
	}
	for _, peer := range c.Peers {
		if h, p, err := wire.HostPort(peer); err != nil || h == "" || p == 0 {
			errs = append(errs, argument.Invalid("Peers", "%q is no host:port", peer))
		}
	}
	if c.MaxMessage < minMessage || c.MaxMessage > maxMessage {
		errs = append(errs, argument.Invalid("MaxMessage", "%d is not within %d and %d", c.MaxMessage, minMessage, maxMessage))
	}
	if c.MaxConnections < 1 {
		errs = append(errs, argument.Invalid("MaxConnections", "%d, want at least 1", c.MaxConnections))
	}
	if err == nil {
		errs = append(errs, c.secure(host))
	}
	return errors.Join(errs...)
}

// Settings are what the parts of a Server need of it.
func (c Config) settings() peer.Settings {
	s := peer.Settings{
		Address: c.Address, Advertise: c.Advertise, TLS: c.TLS,
		Tokens: c.Tokens, TokenCertificates: c.TokenCertificates, Token: c.Token,
		MaxMessage: c.MaxMessage, MaxConnections: c.MaxConnections,
		Handler: c.Handler, QueueHandler: c.QueueHandler, Operators: c.Operators, Rights: c.Rights,
		CeleryQueues: c.CeleryQueues, Queues: c.Queues, Peers: c.Peers, Logger: c.Logger,
	}
	for _, a := range c.Allow {
		s.Allow = append(s.Allow, peer.AllowedActor(a))
	}
	return s
}

// ErrInsecure says that Listen would serve other machines without encryption,
// or without asking who they are.
var ErrInsecure = errors.New("insecure")

func (c Config) secure(host string) error {
	switch ip := net.ParseIP(host); {
	case c.Insecure, host == "localhost", ip != nil && ip.IsLoopback():
		return nil
	case c.TLS == nil:
		return fmt.Errorf("%w: %s is not loopback, and there is no TLS; Config.Insecure allows it", ErrInsecure, c.Address)
	case len(c.Tokens) == 0 && c.TLS.ClientCAs == nil:
		return fmt.Errorf("%w: %s is not loopback, and there are neither Tokens nor client certificates; Config.Insecure allows it", ErrInsecure, c.Address)
	}
	return nil
}
