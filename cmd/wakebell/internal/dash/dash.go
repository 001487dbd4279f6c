// Package dash has the command that serves the dashboard.
package dash

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/webserver"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/dashboard"
	"github.com/wakebell/wakebell/gate"
	"github.com/wakebell/wakebell/internal/opened"
	"github.com/wakebell/wakebell/remote"
	"github.com/wakebell/wakebell/wakebelltype"
)

type flags struct {
	server  webserver.Options
	queues  []string
	keys    wakebelltype.QueueKeys
	health  string
	metrics telemetry.Flags
	log     cli.LogFlags
}

// Command returns the command dash.
func Command(a *cli.App) *cobra.Command {
	f := &flags{server: webserver.Options{Names: webserver.Names{
		Address: "listen", Users: "users", Cert: "http-cert", Key: "http-key", Insecure: "insecure-listen",
	}}}
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
	flags.StringVar(&f.server.Address, "listen", "127.0.0.1:8686", "`address` to listen at")
	flags.StringVar(&f.server.Path, "path", "", "`path` under which browsers reach the dashboard, as /wakebell")
	flags.StringVar(&f.server.Users, "users", "", "`file` with the users, a line name:role:secret each")
	flags.StringVar(&f.server.Cert, "http-cert", "", "PEM `file` with the certificate of the dashboard")
	flags.StringVar(&f.server.Key, "http-key", "", "PEM `file` with its key")
	flags.BoolVar(&f.server.Insecure, "insecure-listen", false, "allow listening beyond loopback without TLS")
	flags.BoolVar(&f.server.Writable, "writable", false, "permit changes to operators")
	flags.BoolVar(&f.server.Hide, "hide-payloads", false, "show neither bodies nor values of headers")
	flags.StringArrayVar(&f.queues, "queue", nil, "`name` of a queue to list; can be repeated")
	flags.StringArrayVar(&f.server.Origins, "trusted-origin", nil, "further `origin` of pages that may send changes, as https://ops.example.com; can be repeated")
	flags.StringVar(&f.server.TraceURL, "trace-url", "", "`address` of a trace in your tracing system, with {trace} for its id")
	cli.SeparatorFlag(cmd, &f.keys)
	telemetry.HealthFlag(flags, &f.health)
	f.metrics.Register(cmd)
	f.log.Register(cmd)
	cli.CompleteFiles(cmd, "users", "http-cert", "http-key")
}

// config returns the configuration of the dashboard.
func (f *flags) config() (dashboard.Config, error) {
	if f.keys.DeadLetters != "" && len(f.queues) != 1 {
		return dashboard.Config{}, cli.Usagef("--dead-letter-key goes with one --queue")
	}
	cfg, err := f.server.Config()
	for _, name := range f.queues {
		keys := f.keys
		keys.Name = name
		cfg.QueueNames = append(cfg.QueueNames, keys)
	}
	return cfg, err
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
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stop, err := webserver.Start(ctx, &f.server, d, log, fail)
	if err != nil {
		return err
	}
	<-ctx.Done()
	err = stop()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}
