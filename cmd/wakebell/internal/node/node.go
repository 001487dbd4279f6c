// Package node has the command that handles timers and serves peers, and the
// commands for its rights file.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wakebell/wakebell"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/cli"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/output"
	"github.com/wakebell/wakebell/cmd/wakebell/internal/telemetry"
	"github.com/wakebell/wakebell/internal/memorylimit"
	"github.com/wakebell/wakebell/internal/tuning"
	"github.com/wakebell/wakebell/wakebelltype"
)

// nodeFlags are the flags of node.
type nodeFlags struct {
	topics []string
	queueFlags
	listenFlags
	exec string

	tuned           wakebelltype.Settings
	discardRejected bool
	history         wakebelltype.HistoryPolicy
	noCounts        bool

	drain, wait time.Duration
	deadCap     int64
	health      string
	metrics     telemetry.Flags

	log cli.LogFlags
}

// Command returns the command node.
func Command(a *cli.App) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "node (--topic TOPIC | --queue QUEUE | --listen ADDRESS)...",
		Short: "Handle the timers of topics and the messages of queues",
		Long: `Handles the timers of topics and the messages of queues until SIGTERM or SIGINT.
Then it drains: it claims no more, waits up to --drain-timeout for running
handlers, returns the rest, and exits with 0. That takes at most 7 s more than
--drain-timeout, also while Redis is down. A second signal ends it immediately,
with 1.

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
  exit status  0: done; 65: rejected, a dead letter immediately; other: retried
If a timer is cancelled, its lease is lost or the drain times out, the process
group of its command is killed.

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

` + telemetry.Environment,
		Example: `  wakebell node --topic invoices
  wakebell node --topic invoices --exec './charge.sh' --max-concurrent 20
  wakebell node --topic mail --rate-limit 100 --rate-per 1m --max-in-flight 10
  wakebell node -t a -t b --lease-ttl 1m --log-format json 2>node.log | jq .id
  wakebell node --listen 10.0.0.5:7070 --token-file tokens --tls-cert node.pem --tls-key node.key`,
		Args: cobra.NoArgs,
	}
	a.TopicsFlag(cmd, &f.topics, "`topic` to handle")
	f.queueFlags.register(cmd)
	f.listenFlags.register(cmd)
	cmd.MarkFlagsOneRequired("topic", "queue", "listen")
	f.register(cmd)
	cmd.RunE = a.Does(func(ctx context.Context, _ []string) error { return run(ctx, a, f) })
	return cmd
}

func (f *nodeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.exec, "exec", "", "shell `command` to run for each delivery")
	f.tuned = tuning.Defaults()
	cli.TuneFlags(flags, &f.tuned)
	flags.BoolVar(&f.discardRejected, "discard-rejected", false, "remove rejected timers instead of making them dead letters")
	flags.TextVar(&f.history, "history", wakebelltype.HistoryFailures, "attempts to record for the command history: `policy` off, failures or all")
	flags.BoolVar(&f.noCounts, "no-counts", false, "do not count in Redis what stats --since shows")
	cli.DurationVar(flags, &f.drain, "drain-timeout", 20*time.Second, "how long to wait for running handlers at shutdown")
	cli.DurationVar(flags, &f.wait, "wait-for-redis", 0, "how long to wait for Redis at startup")
	flags.Int64Var(&f.deadCap, "dead-letter-cap", 0, "dead letters kept per topic, plus about 100; 0: all")
	flags.StringVar(&f.health, "health", "", "`address` to serve /livez and /readyz over HTTP, as 127.0.0.1:8080; empty: none")
	f.metrics.Register(cmd)
	f.log.Register(cmd)
}

func (f *nodeFlags) options() (topics []wakebell.HandlerOption, queues []wakebell.QueueHandlerOption) {
	options := []wakebell.CommonOption{
		wakebell.MaxConcurrent(f.tuned.MaxConcurrent),
		wakebell.LeaseTTL(f.tuned.LeaseTTL),
		wakebell.MaxLeaseAge(f.tuned.MaxLeaseAge),
		wakebell.PollingInterval(f.tuned.PollingInterval),
		wakebell.MaxPollingInterval(f.tuned.MaxPollingInterval),
		wakebell.MaxAttempts(f.tuned.MaxAttempts),
		wakebell.RetryBackoff(f.tuned.RetryInitial, f.tuned.RetryLimit),
	}
	if f.discardRejected {
		options = append(options, wakebell.DiscardRejected())
	}
	for _, option := range options {
		topics, queues = append(topics, option), append(queues, option)
	}
	return append(topics, wakebell.History(f.history),
		wakebell.RateLimit(f.tuned.RateLimit, f.tuned.RatePer, f.tuned.RateBurst),
		wakebell.MaxInFlight(f.tuned.MaxInFlight),
		wakebell.PerKey(f.tuned.PerKey)), queues
}

// rawHandler handles bodies of every kind.
type rawHandler = func(context.Context, wakebell.Timer[[]byte]) error

func run(ctx context.Context, a *cli.App, f *nodeFlags) (err error) {
	log := f.log.Logger(a.Stderr)
	grpcLog.to.Store(log)
	serving, err := f.take(a, log)
	if err != nil {
		return err
	}
	if serving != nil {
		serving.Queues = f.named(f.peerQueues)
	}
	conn, err := a.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	exported, err := telemetry.Start(ctx, f.metrics, log)
	if err != nil {
		return err
	}
	defer exported.Stop()

	defer cli.KeepBrokenPipes()()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	handle := reporting(output.NewLockedWriter(a.Stdout), fail)
	if f.exec != "" {
		handle = inTurn(handle, shellHandler(a, f.exec))
	}
	topicOptions, queueOptions := f.options()
	var handlers []wakebell.Handler
	for _, topic := range f.topics {
		handlers = append(handlers, wakebell.Handle(wakebell.NewTopic[[]byte](topic), handle, topicOptions...))
	}
	handlers = append(handlers, f.queueHandlers(f, handle)...)
	drain := f.drain
	if drain == 0 {
		drain = -1 // Config takes 0 for the default
	}
	sys, err := wakebell.New(cli.NewActorSystem(log), conn.Redis, wakebell.Config{
		Handlers:      handlers,
		NoCounts:      f.noCounts,
		Keys:          conn.Keys,
		Prefix:        conn.Prefix,
		Payloads:      a.Payloads(),
		DrainTimeout:  drain,
		WaitForRedis:  f.wait,
		DeadLetterCap: f.deadCap,
		Logger:        log,
		MeterProvider: exported.MeterProvider,
		MetricTopics:  f.metrics.Topics,

		TracerProvider: exported.TracerProvider,
	})
	if err != nil {
		return err
	}
	if serving != nil {
		serving.HandlerOptions, serving.QueueHandlerOptions = topicOptions, queueOptions
	}
	server, err := f.serve(ctx, sys, serving)
	if err != nil {
		return err
	}
	attrs := []slog.Attr{slog.Any("topics", append(f.topics, f.queues...))}
	if server != nil {
		defer server.Stop()
		defer boundGarbage(ctx)()
		attrs = append(attrs, slog.String("listener", server.Address()))
	}
	stopHealth, err := serveHealth(f.health, sys.HealthHandler(), log)
	if err != nil {
		return err
	}
	defer stopHealth()
	return cli.RunSystem(ctx, sys, log, attrs...)
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

func inTurn(first, second rawHandler) rawHandler {
	return func(ctx context.Context, t wakebell.Timer[[]byte]) error {
		if err := first(ctx, t); err != nil {
			return err
		}
		return second(ctx, t)
	}
}
