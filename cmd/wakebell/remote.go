package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
)

// remoteFlags say which node a command asks, in the place of Redis.
type remoteFlags struct {
	address, tokenFile string
	turnTTL            time.Duration // of gate hold
}

func (f *remoteFlags) register(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&f.address, "remote", "", "`address` of a node that listens, in the place of Redis (default $WAKEBELL_REMOTE)")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the token to show it or, of node --listen, those to take (default $WAKEBELL_TOKEN_FILE)")
	root.MarkFlagsMutuallyExclusive("remote", "redis")
	completeFiles(root, "token-file")
}

// tokens is the file of --token-file or the environment; empty: none.
func (f *remoteFlags) tokens() string {
	if f.tokenFile != "" {
		return f.tokenFile
	}
	return os.Getenv("WAKEBELL_TOKEN_FILE")
}

// remoteAddress is that of the node to ask; empty: Redis is asked. A flag beats
// the environment, so --redis is obeyed whatever that says.
func (a *app) remoteAddress() string {
	if a.remote.address != "" || a.redisURL != "" {
		return a.remote.address
	}
	return os.Getenv("WAKEBELL_REMOTE")
}

// notRemote refuses --remote to a command that reads or writes Redis itself.
func (a *app) notRemote() error {
	switch {
	case a.remote.address != "":
		return usagef("this command needs Redis itself: give --redis instead of --remote")
	case a.remoteAddress() != "":
		return usagef("this command needs Redis itself: give --redis, or unset WAKEBELL_REMOTE")
	case a.remote.tokenFile != "":
		return usagef("--token-file goes with --remote, or with --listen of a node")
	default:
		return nil
	}
}

// asked is what commands ask: a Client of a Redis or of a node.
type asked interface {
	wakebell.Timers
	wakebell.Publisher
	wakebell.Operator
	wakebell.QueueOperator
}

// ask runs fn with a Client of the node of --remote or, without it, of the Redis
// that the flags name.
func (a *app) ask(ctx context.Context, fn func(asked) error) error {
	if a.remoteAddress() == "" {
		return a.withClient(func(c *wakebell.Client) error { return fn(c) })
	}
	return a.withNode(ctx, func(c *remote.Client) error { return fn(keyed{c}) })
}

// withNode runs fn with a client of the node of --remote.
func (a *app) withNode(ctx context.Context, fn func(*remote.Client) error) error {
	address, cfg, err := a.dialConfig()
	if err != nil {
		return err
	}
	said := a.sayAfter(fmt.Sprintf("no link to the node at %s yet; trying for another %v", address, remote.DefaultDeadLink-waitUnsaid))
	c, err := remote.Dial(ctx, address, cfg) // which gives up when the link has been down for a while
	said()
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

func (a *app) dialConfig() (address string, cfg remote.DialConfig, err error) {
	if a.prefix != "" || a.keys.Timeline != "" || a.keys.Payloads != "" || a.keys.HashTag {
		return "", cfg, usagef("--prefix and the names of keys are the node's: they go with --redis, not with --remote")
	}
	cfg.TurnTTL = a.remote.turnTTL
	cfg.Logger = slog.New(slog.DiscardHandler) // what it meets is in the errors it returns
	address, encrypted := splitRemote(a.remoteAddress(), a.tls)
	if err := a.tls.check("addresses that begin with tls://", encrypted); err != nil {
		return "", cfg, err
	}
	if encrypted {
		if cfg.TLS, err = a.tls.apply(&tls.Config{}); err != nil { //nolint:gosec // apply sets the least version
			return "", cfg, err
		}
	}
	if file := a.remote.tokens(); file != "" {
		if cfg.Token, err = readToken(file, a.warn); err != nil {
			return "", cfg, err
		}
	}
	return address, cfg, nil
}

// nodesOwn refuses flags that are for the node itself to be told.
func nodesOwn(cmd *cobra.Command, flags ...string) error {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			return usagef("--%s is the node's: it goes with --redis, not with --remote", flag)
		}
	}
	return nil
}

// splitRemote tells whether an address is to be spoken to over TLS: where it says
// so or flags of TLS are given, and wherever a token would leave this machine.
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

func (a *app) warn(text string) { a.notef("wakebell: %s\n", escape(text)) }

// keyed gives the calls that need one an idempotency key: one that is sent again,
// for its link broke, is not carried out again but answered as it was first. A
// batch replaces itself instead, for the node keeps answers for a day.
type keyed struct{ *remote.Client }

func (k keyed) Schedule(ctx context.Context, drafts ...wakebell.Draft) ([]wakebell.Scheduled, error) {
	if len(drafts) == 1 {
		ctx = remote.WithKey(ctx, rand.Text())
	}
	return k.Client.Schedule(ctx, drafts...)
}

func (k keyed) Cancel(ctx context.Context, topic string, ids ...string) ([]wakebell.Presence, error) {
	return k.Client.Cancel(remote.WithKey(ctx, rand.Text()), topic, ids...)
}
