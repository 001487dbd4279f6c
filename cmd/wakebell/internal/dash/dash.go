// Package dash has the command that serves the dashboard.
package dash

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

const (
	headerLimit = 5 * time.Second
	bodyLimit   = time.Minute
	idleLimit   = 2 * time.Minute
	// stopLimit bounds requests in flight at the end; streams end at once.
	stopLimit = 5 * time.Second
)

type flags struct {
	listen, prefix, users, traceURL string
	cert, key                       string
	queues, origins                 []string
	writable, hide, insecure        bool
	keys                            wakebelltype.QueueKeys
	health                          string
	metrics                         telemetry.Flags
	log                             cli.LogFlags
}

// Command returns the command dash.
func Command(a *cli.App) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "dash",
		Short: "Serve the web dashboard",
		Long: `Serves web pages on topics, timers, dead letters, queues, recurring schedules,
gates, nodes and checks, until it is stopped. It reads Redis or, with --remote, a
listening node.

By default it listens on loopback, serves this machine only, and changes nothing.
--writable permits changes. --users names a file with a line name:role:secret for
each user; the role is viewer or operator. Browsers sign in with name and secret,
programs with the secret as a bearer token.

An address other than loopback requires --users, and --http-cert with --http-key
unless --insecure-listen is given, for example behind a proxy with TLS.

/readyz of --health answers 200 while Redis, or the node, answers. The metrics are
those of the client: commands to Redis with their errors.

` + telemetry.Environment,
		Example: `  wakebell dash
  wakebell dash --writable --queue mails --queue exports
  wakebell dash --listen :8686 --users users.txt --http-cert cert.pem --http-key key.pem
  wakebell dash --remote node.internal:7070 --token-file token --path /wakebell`,
		Args: cli.NoArgs,
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.Keys.Beat, "key-prefix", "redbeat:", "prefix of the `keys` of recurring schedules")
	flags.BoolVar(&a.Celery, "celery", false, "run schedules of Python as Celery messages")
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error {
		if a.RemoteAddress() != "" {
			if err := cli.RejectNodeFlags(cmd, "key-prefix", "celery", "separator", "dead-letter-key"); err != nil {
				return err
			}
		}
		return serve(ctx, a, f)
	})
	return cmd
}

func (f *flags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8686", "`address` to listen at")
	flags.StringVar(&f.prefix, "path", "", "`path` under which browsers reach the dashboard, as /wakebell")
	flags.StringVar(&f.users, "users", "", "`file` with the users, a line name:role:secret each")
	flags.StringVar(&f.cert, "http-cert", "", "PEM `file` with the certificate of the dashboard")
	flags.StringVar(&f.key, "http-key", "", "PEM `file` with its key")
	flags.BoolVar(&f.insecure, "insecure-listen", false, "allow listening beyond loopback without TLS")
	flags.BoolVar(&f.writable, "writable", false, "permit changes to operators")
	flags.BoolVar(&f.hide, "hide-payloads", false, "show neither bodies nor values of headers")
	flags.StringArrayVar(&f.queues, "queue", nil, "`name` of a queue to list; can be repeated")
	flags.StringArrayVar(&f.origins, "trusted-origin", nil, "further `origin` of pages that may send changes, as https://ops.example.com; can be repeated")
	flags.StringVar(&f.traceURL, "trace-url", "", "`address` of a trace in your tracing system, with {trace} for its id")
	cli.SeparatorFlag(cmd, &f.keys)
	telemetry.HealthFlag(flags, &f.health)
	f.metrics.Register(cmd)
	f.log.Register(cmd)
	cli.CompleteFiles(cmd, "users", "http-cert", "http-key")
}

// config returns the configuration of the dashboard.
func (f *flags) config() (dashboard.Config, error) {
	cfg := dashboard.Config{
		Path: f.prefix, Writable: f.writable, HidePayloads: f.hide, TraceURL: f.traceURL, TrustedOrigins: f.origins,
	}
	for _, name := range f.queues {
		keys := f.keys
		keys.Name = name
		cfg.QueueNames = append(cfg.QueueNames, keys)
	}
	if f.keys.DeadLetters != "" && len(f.queues) != 1 {
		return cfg, cli.Usagef("--dead-letter-key goes with one --queue")
	}
	if f.users != "" {
		file, err := os.Open(f.users)
		if err != nil {
			return cfg, fmt.Errorf("--users: %w", err)
		}
		defer func() { _ = file.Close() }() // it is only read
		if cfg.Credentials, err = dashboard.ReadCredentials(file); err != nil {
			return cfg, fmt.Errorf("--users: %w", err)
		}
	}
	return cfg, f.check()
}

// check rejects an address that would serve other machines unsafely.
func (f *flags) check() error {
	if (f.cert == "") != (f.key == "") {
		return cli.Usagef("--http-cert and --http-key go together")
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return cli.Usagef("--listen: %q, want host:port", f.listen)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	switch {
	case f.users == "":
		return cli.Usagef("--listen %s serves other machines: give --users", f.listen)
	case f.cert == "" && !f.insecure:
		return cli.Usagef("--listen %s serves other machines: give --http-cert and --http-key, or --insecure-listen behind a proxy with TLS", f.listen)
	default:
		return nil
	}
}

// serve serves the dashboard of the node of --remote or, without it, of Redis.
func serve(ctx context.Context, a *cli.App, f *flags) (err error) {
	log := f.log.Logger(a.Stderr)
	cfg, err := f.config()
	if err != nil {
		return err
	}
	exported, err := telemetry.Start(ctx, f.metrics, log)
	if err != nil {
		return err
	}
	defer exported.Stop()
	chain, err := a.Reading()
	if err != nil {
		return err
	}
	shown, err := connection.WithoutRedis(connection.Config{Payloads: chain, Logger: log})
	if err != nil {
		return err
	}
	if a.RemoteAddress() != "" {
		for i := range cfg.QueueNames {
			cfg.QueueNames[i].Separator = "" // the node has the keys
		}
		return a.WithNode(ctx, func(c *remote.Client) error {
			return run(ctx, f, cfg, log, shown, dashboard.Operators{Timers: cli.Keyed(c), Queues: c.Queues(), Schedules: c.Schedules(), Gates: c.Gates()})
		})
	}
	conn, err := a.ConnectLogging(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	measured := conn.Config(log)
	measured.TracerProvider, measured.MeterProvider, measured.MetricTopics = exported.TracerProvider, exported.MeterProvider, f.metrics.Topics
	settings, err := connection.Switched(conn.Redis, measured, opened.Switches{MetricShards: f.metrics.Shards})
	if err != nil {
		return err
	}
	client, err := wakebell.NewClient(settings)
	if err != nil {
		return err
	}
	gates, err := gate.New(settings, gate.Config{})
	if err != nil {
		return err
	}
	err = run(ctx, f, cfg, log, shown, dashboard.Operators{Timers: client, Queues: client.Queues(), Schedules: client.Schedules(), Gates: gates})
	return errors.Join(err, gates.Close())
}

func run(ctx context.Context, f *flags, cfg dashboard.Config, log *slog.Logger, conn *connection.Connection, operators dashboard.Operators) error {
	d, err := dashboard.New(conn, operators, cfg)
	if err != nil {
		return err
	}
	defer d.Close()
	stopHealth, err := telemetry.ServeHealth(f.health, d.HealthHandler(), log)
	if err != nil {
		return err
	}
	defer stopHealth()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{
		Handler: d, ReadHeaderTimeout: headerLimit, ReadTimeout: bodyLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(d.Close)
	scheme, serveOn := "http", func() error { return server.Serve(listener) }
	if f.cert != "" {
		scheme, serveOn = "https", func() error { return server.ServeTLS(listener, f.cert, f.key) }
	}
	log.InfoContext(ctx, "dashboard runs", "address", scheme+"://"+listener.Addr().String()+strings.TrimRight(f.prefix, "/")+"/", "writable", f.writable)
	failed := make(chan error, 1)
	go func() { failed <- serveOn() }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	err = server.Shutdown(grace)
	log.InfoContext(grace, "dashboard ended")
	return err
}
