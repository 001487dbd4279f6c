// Package node has the command that handles timers and serves peers, and the
// commands for its rights file.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/process"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/connection"
	"github.com/wakebell/wakebell/internal/memorylimit"
	"github.com/wakebell/wakebell/internal/opened"
)

// nodeFlags are the flags of node.
type nodeFlags struct {
	config         string
	topics, queues []string
	handling                         // of what has no section in the file, and of subscribers
	handled        []*handled        // the topics and queues
	top            map[string]string // the fields outside of sections, as they were at the start
	given          map[string][]string

	listenFlags
	noCounts bool

	noDivision bool

	drain, wait time.Duration
	deadCap     int64
	health      string
	perHost     int // requests of webhooks
	dash        dashFlags
	metrics     telemetry.Flags

	log cli.LogFlags
}

// Command returns the command node.
func Command(a *cli.App) *cobra.Command {
	cmd, f := newCommand(a)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.configure(cmd) }
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error { return run(ctx, a, f) })
	return cmd
}

// newCommand returns the command with its flags.
func newCommand(a *cli.App) (*cobra.Command, *nodeFlags) {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "node (--topic TOPIC | --queue QUEUE | --listen ADDRESS | --http ADDRESS | --config FILE)...",
		Short: "Handle the timers of topics and the messages of queues",
		Long: `Handles the timers of topics and the messages of queues until SIGTERM or SIGINT.
Then it drains: it claims no more, waits up to --drain-timeout for running
handlers, returns the rest, and exits with 0. That takes at most 7 s more than
--drain-timeout, also while Redis is down. A second signal, 1 s after the first or
later, ends it immediately, with 1.

Each delivery is one JSON line on stdout, written before the timer is settled:
  topic, id, attempt, activation, delivered_at, lateness_ms, content_type,
  headers, correlation_id, reply_to (if any), and body: JSON as JSON, text as a
  string, null for none; anything else as body_base64. For a message, topic is
  the queue, activation the time of publishing, and the body's bytes tell its
  type. Only commands that show stored bodies print their encoding.
Without --exec, a timer is done once its line is written. If stdout cannot be
written, the timer is retried, and the node drains and exits with 1.

With --exec, sh -c COMMAND runs for each delivery, after its line:
  stdin        the body
  environment  WAKEBELL_TOPIC, _ID, _ATTEMPT, _ACTIVATION, _DELIVERED_AT,
               _LATENESS_MS, _CONTENT_TYPE, _CORRELATION_ID, _REPLY_TO, and a
               WAKEBELL_HEADER_<NAME> for each header, its name in upper case
               and all characters except letters and digits as _. NUL becomes
               U+FFFD.
  output       stdout and stderr go to the node's stderr
  exit status  0: done; 65: rejected, a dead letter immediately; 126 and 127, by
               which a shell says that a program cannot be run: left to other
               nodes, and the topic pauses on this one for 30 s; other: retried
If a timer is cancelled, its lease is lost or the drain times out, the process
group of its command is killed. On Linux the shell is killed too if the node is.

With --post URL, each delivery is posted after its line, signed as Standard Webhooks
says: 2xx is done; 408, 425, 429, 5xx and no answer are retried, after Retry-After if
the answer has it; others are rejected. The body is the stored one, and headers tell
topic, id, attempt and due instant. --post-secret-file is read again when it changes.
Addresses that are not public need --post-allow.

With --listen it also serves other processes: wakebell --remote, remote.Dial,
actors, and gRPC. Beyond loopback it requires --tls-cert and --tls-key and, to
authenticate peers, --token-file or --tls-client-ca; with both, peers need both.
A line of the token file is owner:token, or a token alone; # begins a comment.
With --tls-client-ca, a space and the certificate that the token is bound to can
follow: cn:NAME, its common name, or sha256:FINGERPRINT.
Changed files are read again: certificates for the next connection, tokens and
rights within a second. Connections whose token was removed are closed, and
subscriptions that the new rights do not permit end; all others stay. With
--listen and rediss://, the client certificate for Redis is --redis-tls-cert. Do
not name topics with --topic that subscribers should handle.

With --http it serves the same over HTTP and JSON, with the credentials, rights and
bounds of --listen: /docs shows the requests. Without --listen, the port for gRPC is
one of loopback that the system chooses.

A file of --config has the values of flags by their names, and topics and queues,
each with fields of its own:
  listen: 10.0.0.5:7070
  max-concurrent: 20
  topics:
    invoices: {exec: ./charge.sh, max-attempts: 5}
    reminders: {}
Flags precede variables (see wakebell --help), variables precede the file, also in
its topics and queues. --topic and --queue replace the topics and queues of the
file. SIGHUP reads it again: topics, queues, their fields and log-level change at
once; the log names what needs a restart.

` + telemetry.Environment,
		Example: `  wakebell node --topic invoices
  wakebell node --topic invoices --exec './charge.sh' --max-concurrent 20
  wakebell node --topic invoices --post https://billing.example/hooks --post-secret-file secret
  wakebell node --topic mail --rate-limit 100 --rate-per 1m --max-in-flight 10
  wakebell node -t a -t b --lease-ttl 1m --log-format json 2>node.log | jq .id
  wakebell node --listen 10.0.0.5:7070 --token-file tokens --tls-cert node.pem --tls-key node.key
  wakebell node --http 127.0.0.1:8081 --token-file tokens
  wakebell node --config wakebell.yaml`,
		Args: cli.NoArgs,
	}
	a.TopicsFlag(cmd, &f.topics, "`topic` to handle")
	cmd.Flags().StringArrayVar(&f.queues, "queue", nil, "`queue` to handle; can be repeated")
	f.handling.register(cmd)
	f.listenFlags.register(cmd)
	cmd.MarkFlagsOneRequired("topic", "queue", "listen", "http")
	f.register(cmd)
	return cmd, f
}

func (f *nodeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "`file` with the values of flags, and with topics and queues; read again on SIGHUP (see config check)")
	cli.CompleteFiles(cmd, "config")
	flags.BoolVar(&f.noDivision, "no-division", false, "poll topics without regard to other nodes that handle them")
	flags.BoolVar(&f.noCounts, "no-counts", false, "do not count in Redis what stats --since shows")
	cli.DurationVar(flags, &f.drain, "drain-timeout", 20*time.Second, "how long to wait for running handlers at shutdown")
	cli.DurationVar(flags, &f.wait, "wait-for-redis", time.Hour, "how long to wait for Redis at startup")
	flags.Int64Var(&f.deadCap, "dead-letter-cap", 0, "dead letters kept per topic, or per shard of it, plus about 100; 0: all")
	perHostFlag(flags, &f.perHost)
	f.dash.register(cmd)
	telemetry.HealthFlag(flags, &f.health)
	f.metrics.Register(cmd)
	f.log.Register(cmd)
}

func run(ctx context.Context, a *cli.App, f *nodeFlags) (err error) {
	log := f.log.Logger(a.Stderr)
	grpcLog.to.Store(log)
	serving, err := f.take(a, log)
	if err != nil {
		return err
	}
	if serving != nil {
		serving.Queues = f.named()
	}
	conn, err := a.ConnectLogging(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	exported, err := telemetry.Start(ctx, f.metrics, log)
	if err != nil {
		return err
	}
	defer exported.Stop()

	defer process.KeepBrokenPipes()()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	shared, err := f.newWork(a, log, fail)
	if err != nil {
		return err
	}
	defer shared.end()
	handlers, err := shared.handlers(ctx, f.handled)
	if err != nil {
		return err
	}
	on := f.connection(conn.Config(log))
	on.MeterProvider, on.TracerProvider = exported.MeterProvider, exported.TracerProvider
	settings, err := connection.Switched(conn.Redis, on, opened.Switches{NoDivision: f.noDivision, MetricShards: f.metrics.Shards})
	if err != nil {
		return err
	}
	sys, err := wakebell.New(nil, settings, f.systemConfig(handlers))
	if err != nil {
		return err
	}
	shared.of(sys)
	if serving != nil {
		serving.HandlerOptions, serving.QueueHandlerOptions = f.topicOptions(), f.subscriberOptions()
	}
	server, err := f.serve(ctx, sys, serving, log)
	if err != nil {
		return err
	}
	attrs := []slog.Attr{slog.Any("topics", slices.Concat(f.topics, f.queues))}
	if server != nil {
		defer server.Stop()
		defer boundGarbage(ctx)()
		attrs = append(attrs, slog.String("listener", server.Address()))
	}
	stopHealth, err := telemetry.ServeHealth(f.health, sys.HealthHandler(), log)
	if err != nil {
		return err
	}
	defer stopHealth()
	stopDash, err := f.serveDash(ctx, a, sys, settings, log, fail)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDash()) }()
	defer (&reloading{node: f, sys: sys, work: shared, log: log}).onHangup(ctx)()
	return cli.RunSystem(ctx, sys, log, attrs...)
}

// connection returns on with what the flags of a node say about its Connection.
func (f *nodeFlags) connection(on connection.Config) connection.Config {
	on.MetricTopics, on.NoCounts = f.metrics.Topics, f.noCounts
	return on
}

// systemConfig returns what the flags say about the System.
func (f *nodeFlags) systemConfig(handlers []wakebell.Handler) wakebell.Config {
	drain := f.drain
	if drain == 0 {
		drain = -1 // Config takes 0 for the default
	}
	return wakebell.Config{
		Handlers:      handlers,
		DrainTimeout:  drain,
		WaitForRedis:  f.wait,
		DeadLetterCap: f.deadCap,
	}
}

// boundGarbage bounds the garbage of a node that serves peers until the returned
// function is called.
func boundGarbage(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var limiting sync.WaitGroup
	limiting.Go(func() { memorylimit.Keep(ctx) })
	return func() {
		cancel()
		limiting.Wait()
	}
}

// delivery is the JSON line of a node.
type delivery struct {
	Topic       string  `json:"topic"`
	ID          string  `json:"id"`
	Attempt     int     `json:"attempt"`
	Activation  string  `json:"activation"`
	DeliveredAt string  `json:"delivered_at"`
	LatenessMS  float64 `json:"lateness_ms"`
	output.Content
}

func newDelivery(t wakebell.Timer[[]byte]) delivery {
	return delivery{
		Topic:       t.Topic,
		ID:          t.ID,
		Attempt:     t.Attempt,
		Activation:  output.Stamp(t.Activation),
		DeliveredAt: output.Stamp(t.Delivered),
		LatenessMS:  output.Millis(t.Lateness()),
		Content: output.NewContent(wakebell.Content{
			CorrelationID: t.CorrelationID, ContentType: t.ContentType, ReplyTo: t.ReplyTo,
			Headers: t.Headers, Body: t.Body,
		}),
	}
}

// reporting writes each delivery to out, in one call. If the write fails it calls
// fail, because the node would otherwise use up the attempts of all its timers.
func reporting(out io.Writer, fail context.CancelCauseFunc) rawHandler {
	return func(_ context.Context, t wakebell.Timer[[]byte]) error {
		line, err := output.JSONLine(newDelivery(t))
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			err = fmt.Errorf("write to stdout: %w", err)
			fail(err)
			return err
		}
		return nil
	}
}
