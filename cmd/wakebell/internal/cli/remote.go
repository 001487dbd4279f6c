package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/queue"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

// remoteFlags name the node that a command calls instead of Redis.
type remoteFlags struct {
	address, tokenFile string
}

func (f *remoteFlags) register(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&f.address, "remote", "", "`address` of a listening node to use instead of Redis (default $WAKEBELL_REMOTE)")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the token to present or, for node --listen, the tokens to accept (default $WAKEBELL_TOKEN_FILE)")
	root.MarkFlagsMutuallyExclusive("remote", "redis")
	CompleteFiles(root, "token-file")
}

// tokens returns the file of --token-file or the environment; empty: none.
func (f *remoteFlags) tokens() string {
	if f.tokenFile != "" {
		return f.tokenFile
	}
	return os.Getenv("WAKEBELL_TOKEN_FILE")
}

// RemoteAddress returns the address of the node to call; empty: call Redis. Flags,
// --redis included, override the environment.
func (a *App) RemoteAddress() string {
	if a.remote.address != "" || a.RedisURL != "" {
		return a.remote.address
	}
	return os.Getenv("WAKEBELL_REMOTE")
}

// ForListener returns --tls-cert, --tls-key and the token file for the listener of a
// node. Redis gets the other certificate and its key.
func (a *App) ForListener(redisCert, redisKey string) (cert, key, tokens string) {
	cert, key, tokens = a.tls.cert, a.tls.key, a.remote.tokens()
	a.tls.cert, a.tls.key, a.remote.tokenFile = redisCert, redisKey, ""
	return cert, key, tokens
}

// notRemote rejects --remote for commands that need Redis itself.
func (a *App) notRemote() error {
	switch {
	case a.remote.address != "":
		return Usagef("this command needs Redis itself: give --redis instead of --remote")
	case a.RemoteAddress() != "":
		return Usagef("this command needs Redis itself: give --redis, or unset WAKEBELL_REMOTE")
	case a.remote.tokenFile != "":
		return Usagef("--token-file goes with --remote, or with --listen of a node")
	default:
		return nil
	}
}

// Client is the client of a command: of Redis or of a node.
type Client interface {
	wakebell.TimerClient
	wakebell.Operator
	wakebell.Waiter
	QueueOperator() queue.Operator
}

// local is the client of a Redis.
type local struct{ *wakebell.Client }

func (l local) QueueOperator() queue.Operator { return l.Queues() }

func (k keyed) QueueOperator() queue.Operator { return k.Queues() }

// Ask runs fn with a client of the node of --remote or, without it, of the Redis of
// --redis.
func (a *App) Ask(ctx context.Context, fn func(Client) error) error {
	if a.RemoteAddress() == "" {
		return a.WithClient(func(c *wakebell.Client) error { return fn(local{c}) })
	}
	return a.WithNode(ctx, func(c *remote.Client) error { return fn(Keyed(c)) })
}

// Keyed returns the client with idempotency keys on the calls that need one.
func Keyed(c *remote.Client) Client { return keyed{c} }

// WithNode runs fn with a client of the node of --remote.
func (a *App) WithNode(ctx context.Context, fn func(*remote.Client) error) error {
	address, conn, cfg, err := a.dialConfig()
	if err != nil {
		return err
	}
	said := a.sayAfter(fmt.Sprintf("node at %s does not answer; trying for another %v", address, remote.DefaultDeadLink-waitUnsaid))
	c, err := remote.Dial(ctx, address, conn, cfg) // gives up after DefaultDeadLink
	said()
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

func (a *App) dialConfig() (address string, conn *connection.Connection, cfg remote.DialConfig, err error) {
	if a.Prefix != "" || a.Keys.Timeline != "" || a.Keys.Payloads != "" || a.Keys.HashTag {
		return "", nil, cfg, Usagef("--prefix and the flags for names of keys are the node's: they go with --redis, not with --remote")
	}
	if err := a.loadPayloads(); err != nil {
		return "", nil, cfg, err
	}
	cfg.TurnTTL = a.TurnTTL
	conn, err = connection.WithoutRedis(connection.Config{
		Payloads: a.Payloads(), Logger: slog.New(slog.DiscardHandler), // the client returns its errors as well
	})
	if err != nil {
		return "", nil, cfg, err
	}
	address, encrypted := splitRemote(a.RemoteAddress(), a.tls)
	if err := a.tls.check("addresses that begin with tls://", encrypted); err != nil {
		return "", nil, cfg, err
	}
	if encrypted {
		if cfg.TLS, err = a.tls.apply(&tls.Config{}); err != nil { // apply sets the least version
			return "", nil, cfg, err
		}
	}
	if file := a.remote.tokens(); file != "" {
		if cfg.Token, err = files.Token(file, a.warn); err != nil {
			return "", nil, cfg, err
		}
	}
	return address, conn, cfg, nil
}

// RejectNodeFlags rejects flags that only the node itself can have.
func RejectNodeFlags(cmd *cobra.Command, flags ...string) error {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			return Usagef("--%s is the node's: it goes with --redis, not with --remote", flag)
		}
	}
	return nil
}

// splitRemote reports whether to use TLS for an address: if its scheme says so, if
// TLS flags are given, or if a token would leave this machine.
func splitRemote(address string, flags tlsFlags) (hostPort string, encrypted bool) {
	if hostPort, ok := strings.CutPrefix(address, "plain://"); ok {
		return hostPort, false
	}
	hostPort, encrypted = strings.CutPrefix(address, "tls://")
	return hostPort, encrypted || flags != (tlsFlags{}) || !onLoopback(hostPort)
}

func onLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	ip := net.ParseIP(host)
	return err != nil || host == "localhost" || (ip != nil && ip.IsLoopback())
}

func (a *App) warn(text string) { a.Notef("wakebell: %s\n", output.Escape(text)) }

// keyed adds an idempotency key to the calls that need one: a call that is retried
// after a broken connection is not executed twice. A batch needs none, because it
// replaces itself; the node would store its answer for a day.
type keyed struct{ *remote.Client }

func (k keyed) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebelltype.Scheduled, error) {
	if len(drafts) == 1 {
		ctx = remote.WithKey(ctx, rand.Text())
	}
	return k.Client.Schedule(ctx, drafts...)
}

func (k keyed) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebelltype.Presence, error) {
	return k.Client.Cancel(remote.WithKey(ctx, rand.Text()), topic, ids...)
}
