package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/remote"
)

// listenFlags say where a node serves other processes, and whom.
type listenFlags struct {
	address, advertise, clientCA string
	redisCert, redisKey          string
	insecure                     bool
	celery                       string // queues with commas between them; empty: none
	operators                    string // names with commas between them; empty: all

	rights     rightsFlag
	peerQueues string // names with commas between them

	tokens string    // the file, once it is known; empty: none
	read   fileStamp // of it
}

// tokensEvery is how often a listener looks whether its file of tokens is another.
const tokensEvery = time.Second

func (f *listenFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.address, "listen", "", "`address` to serve other processes at, as 10.0.0.5:7070; empty: none")
	flags.StringVar(&f.advertise, "advertise", "", "`address` under which they reach it, if it is not the one of --listen")
	flags.StringVar(&f.clientCA, "tls-client-ca", "", "PEM `file` with the authorities of the certificates that peers have to show")
	flags.StringVar(&f.redisCert, "redis-tls-cert", "", "with --listen: PEM `file` with the certificate that Redis is shown")
	flags.StringVar(&f.redisKey, "redis-tls-key", "", "PEM `file` with its key")
	flags.BoolVar(&f.insecure, "insecure-listen", false, "listen beyond loopback also without TLS, or without asking who peers are")
	flags.StringVar(&f.operators, "operators", "", "`names` of tokens or certificates, as a,b, that may look at all and give orders (default all)")
	flags.StringVar(&f.celery, "celery-queues", "", "Celery `queues`, as a,b, that peers may reach with recurring schedules (default none)")
	flags.StringVar(&f.rights.file, "rights", "", "`file` that says which peer may do what, in the place of --operators (see rights check)")
	flags.StringVar(&f.peerQueues, "peer-queues", "", "`names` of queues, as a,b, that have the keys of --separator and --dead-letter-key for peers")
	completeFiles(cmd, "rights", "tls-client-ca", "redis-tls-cert", "redis-tls-key")
}

// take has the certificate of --tls-cert and the tokens be those of the listener,
// and returns what serves them, or nil where the node does not listen.
func (f *listenFlags) take(a *app, log *slog.Logger) (*remote.Config, error) {
	if f.address == "" {
		if *f != (listenFlags{}) {
			return nil, usagef("--advertise, --tls-client-ca, --redis-tls-cert, --redis-tls-key, --insecure-listen, --celery-queues, --operators, --rights and --peer-queues go with --listen")
		}
		return nil, nil
	}
	cfg := &remote.Config{Address: f.address, Advertise: f.advertise, Insecure: f.insecure, Logger: log}
	if f.operators != "" {
		cfg.Operators = strings.Split(f.operators, ",")
	}
	if f.celery != "" {
		cfg.CeleryQueues = strings.Split(f.celery, ",")
	}
	if err := f.rights.take(cfg); err != nil {
		return nil, err
	}
	if file := a.remote.tokens(); file != "" {
		f.tokens, f.read = file, stampOf(file) // before: what is written meanwhile is read again
		var err error
		if cfg.Tokens, cfg.TokenCertificates, err = readTokens(file, warner(log)); err != nil {
			return nil, err
		}
	}
	cert, key := a.tls.cert, a.tls.key
	a.tls.cert, a.tls.key, a.remote.tokenFile = f.redisCert, f.redisKey, ""
	switch {
	case (cert == "") != (key == ""):
		return nil, usagef("--tls-cert and --tls-key go together")
	case cert == "" && f.clientCA != "":
		return nil, usagef("--tls-client-ca goes with --tls-cert")
	case cert == "":
		return cfg, nil
	}
	var err error
	cfg.TLS, err = (&certificates{cert: cert, key: key, ca: f.clientCA, log: log}).config()
	return cfg, err
}

// serve has other processes reach sys, which is not started yet. Nil stands for
// none.
func (f *listenFlags) serve(ctx context.Context, sys *wakebell.System, cfg *remote.Config, options []wakebell.HandlerOption) (*remote.Server, error) {
	if cfg == nil {
		return nil, nil
	}
	cfg.Handler = options
	server, err := remote.Serve(sys, *cfg)
	switch {
	case errors.Is(err, remote.ErrInsecure):
		return nil, fmt.Errorf("--listen: %w (--insecure-listen)", err)
	case err != nil:
		return nil, fmt.Errorf("--listen: %w", err)
	}
	cfg.Logger.InfoContext(ctx, "node listens", "addr", server.Address(), "tls", cfg.TLS != nil, "tokens", len(cfg.Tokens), "client_certificates", f.clientCA != "")
	if f.rights.file != "" {
		go f.rights.follow(ctx, server, cfg.Logger)
	}
	if f.tokens != "" {
		go f.follow(ctx, server, cfg.Logger)
	}
	return server, nil
}

// follow has the listener take the tokens that are in the file, until ctx ends.
func (f *listenFlags) follow(ctx context.Context, server *remote.Server, log *slog.Logger) {
	tick := time.NewTicker(tokensEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stampOf(f.tokens)
		if now == f.read {
			continue
		}
		f.read = now
		tokens, certificates, err := readTokens(f.tokens, warner(log))
		if err == nil {
			err = server.SetTokens(tokens, certificates)
		}
		if err != nil {
			log.Warn("changed tokens cannot be used; those before are taken", "err", err)
			continue
		}
		log.Info("tokens were read again", "tokens", len(tokens))
	}
}
