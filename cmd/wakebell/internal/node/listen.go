package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/files"
	"github.com/wakebell/wakebell/remote"
)

// listenFlags configure the listener of a node.
type listenFlags struct {
	address, http, advertise, clientCA string
	redisCert, redisKey                string
	insecure                           bool
	celery                             string // queues with commas between them; empty: none
	operators                          string // names with commas between them; empty: all

	rights     rightsFlag
	peerQueues string // names with commas between them

	tokens string    // the file, once it is known; empty: none
	read   fileStamp // of it
}

func (f *listenFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, "listen", "", "`address` to listen at for other processes, as 10.0.0.5:7070; empty: none")
	flags.StringVar(&f.http, "http", "", "`address` to serve HTTP and JSON at, as 10.0.0.5:8081; empty: none")
	flags.StringVar(&f.advertise, "advertise", "", "`address` under which peers reach the node, if other than --listen")
	flags.StringVar(&f.clientCA, "tls-client-ca", "", "PEM `file` with the authorities for the certificates that peers must present")
	flags.StringVar(&f.redisCert, "redis-tls-cert", "", "with --listen or --http: PEM `file` with the certificate to present to Redis")
	flags.StringVar(&f.redisKey, "redis-tls-key", "", "PEM `file` with its key")
	flags.BoolVar(&f.insecure, "insecure-listen", false, "allow listening beyond loopback without TLS or without authenticating peers")
	flags.StringVar(&f.operators, "operators", "", "`names` of tokens or certificates, as a,b, that may inspect and operate everything (default all)")
	flags.StringVar(&f.celery, "celery-queues", "", "Celery `queues`, as a,b, to which schedules of peers may send (default none)")
	flags.StringVar(&f.rights.file, "rights", "", "`file` with the rights of peers, instead of --operators (see rights check)")
	flags.StringVar(&f.peerQueues, "peer-queues", "", "`names` of queues, as a,b, that use --separator and --dead-letter-key for peers")
	cli.MarkList(cmd, "operators", "celery-queues", "peer-queues")
	cli.CompleteFiles(cmd, "rights", "tls-client-ca", "redis-tls-cert", "redis-tls-key")
}

// combined checks which flags go together; cert and key are those of --tls-cert and
// --tls-key.
func (f *listenFlags) combined(cert, key string) error {
	switch {
	case f.address == "" && f.http == "":
		if *f != (listenFlags{}) {
			return cli.Usagef("--advertise, --tls-client-ca, --redis-tls-cert, --redis-tls-key, --insecure-listen, --celery-queues, --operators, --rights and --peer-queues go with --listen or --http")
		}
	case (cert == "") != (key == ""):
		return cli.Usagef("--tls-cert and --tls-key go together")
	case cert == "" && f.clientCA != "":
		return cli.Usagef("--tls-client-ca goes with --tls-cert")
	}
	return nil
}

// take uses the certificate of --tls-cert and the tokens for the listener, and
// returns its configuration, or nil if the node does not listen.
func (f *listenFlags) take(a *cli.App, log *slog.Logger) (*remote.Config, error) {
	if f.address == "" && f.http == "" {
		return nil, f.combined("", "")
	}
	cfg := &remote.Config{Address: f.address, HTTPAddress: f.http, Advertise: f.advertise, Insecure: f.insecure}
	if f.operators != "" {
		cfg.Operators = strings.Split(f.operators, ",")
	}
	if f.celery != "" {
		cfg.CeleryQueues = strings.Split(f.celery, ",")
	}
	if err := f.rights.take(cfg); err != nil {
		return nil, err
	}
	cert, key, tokens := a.ForListener(f.redisCert, f.redisKey)
	if tokens != "" {
		f.tokens, f.read = tokens, stampOf(tokens) // before reading: a later write is a change
		var err error
		if cfg.Tokens, cfg.TokenCertificates, err = files.Tokens(tokens, warner(log)); err != nil {
			return nil, err
		}
	}
	if err := f.combined(cert, key); err != nil || cert == "" {
		return cfg, err
	}
	var err error
	cfg.TLS, err = (&certificates{cert: cert, key: key, ca: f.clientCA, log: log}).config()
	return cfg, err
}

// serve starts the listener of sys, which is not started yet. It returns nil for a
// nil configuration.
func (f *listenFlags) serve(ctx context.Context, sys *wakebell.System, cfg *remote.Config, log *slog.Logger) (*remote.Server, error) {
	if cfg == nil {
		return nil, nil
	}
	server, err := remote.Serve(sys, *cfg)
	flags := "--listen"
	if f.http != "" {
		flags += ", --http"
	}
	switch {
	case errors.Is(err, remote.ErrInsecure):
		return nil, fmt.Errorf("%s: %w (--insecure-listen)", flags, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flags, err)
	}
	if f.http != "" {
		log.InfoContext(ctx, "node serves HTTP", "address", server.HTTPAddress())
	}
	log.InfoContext(ctx, "node listens", "address", server.Address(), "tls", cfg.TLS != nil, "tokens", len(cfg.Tokens), "client_certificates", f.clientCA != "")
	if f.rights.file != "" {
		go follow(ctx, f.rights.file, f.rights.read, func() { f.rights.reload(server, log) })
	}
	if f.tokens != "" {
		go follow(ctx, f.tokens, f.read, func() { f.reload(server, log) })
	}
	return server, nil
}

// reload reads the tokens from their changed file.
func (f *listenFlags) reload(server *remote.Server, log *slog.Logger) {
	tokens, certificates, err := files.Tokens(f.tokens, warner(log))
	if err == nil {
		err = server.SetTokens(tokens, certificates)
	}
	if err != nil {
		log.Warn("changed tokens cannot be used; keeping the previous ones", "err", err)
		return
	}
	log.Info("tokens were read again", "tokens", len(tokens))
}

// warner returns a function that logs a warning of ReadTokens.
func warner(log *slog.Logger) func(string) {
	return func(text string) { log.Warn("unsafe permissions of the token file", "warning", text) }
}
